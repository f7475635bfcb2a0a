"""evidex calibrate: teach a gallery's gate when to refine and when to abstain."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evidex.cli.terminal import say

if TYPE_CHECKING:
    import numpy as np

    from evidex.retrieval.certainty.calibrating import CalibrationOutcome, GuaranteeRequest, KnownQuery
    from evidex.retrieval.gallery import Gallery


def command(
    gallery: Annotated[str, typer.Option(help="Folder of the gallery, or s3://BUCKET/PREFIX.", metavar="PLACE")],
    queries: Annotated[
        Path | None,
        typer.Option(
            help='Text file, a query a line; or a JSON list of objects with "text" or "image", and "relevant".'
        ),
    ] = None,
    dataset: Annotated[Path | None, typer.Option(help="Dataset folder whose captions are the queries.")] = None,
    from_marks: Annotated[
        bool, typer.Option("--from-marks", help="Questions whose hits were marked right or wrong on the page.")
    ] = False,
    split: Annotated[str, typer.Option(help="Split of the dataset.")] = "val",
    alpha: Annotated[float, typer.Option(help="Largest share of wrong answers among those given.")] = 0.1,
    delta: Annotated[float, typer.Option(help="Chance that the guarantee does not hold.")] = 0.1,
    top: Annotated[int, typer.Option(min=1, help="An answer is right if a relevant item is among so many hits.")] = 10,
    score: Annotated[
        str | None,
        typer.Option(
            help="What queries are judged by: learned (from known answers), vacuity, similarity or belief. "
            "Without it: learned where there are answers enough to learn from, else vacuity."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same calibration.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Calibrate with queries of the kind that will be asked; without any, by what the gallery holds alone.

    Where the right answers are known and in the gallery, the chance of a right answer is learned from one half of them,
    and from the other a threshold is sought that guarantees --alpha and --delta; it is said if there is none.
    """
    import numpy as np

    from evidex.cli.console import print_json
    from evidex.errors import InputError
    from evidex.retrieval.certainty.calibrating import GuaranteeRequest
    from evidex.retrieval.gallery import Gallery

    if sum((queries is not None, dataset is not None, from_marks)) > 1:
        raise InputError("give one of --queries, --dataset and --from-marks")
    for name, value in (("--alpha", alpha), ("--delta", delta)):
        if not 0 < value < 1:
            raise InputError(f"{name} {value} is no share; give a number between 0 and 1")
    opened = Gallery.open(gallery)
    rng = np.random.default_rng(seed)
    if not from_marks and queries is None and dataset is None:
        outcomes = _by_itself(opened, rng, score)
    else:
        known = _known(opened, queries, dataset, split, rng)
        source = str(queries or dataset or "marks")
        outcomes = _by_queries(opened, known, source, GuaranteeRequest(alpha, delta, top), score, rng)
    if as_json:
        print_json([_content(outcome) for outcome in outcomes])
    else:
        for outcome in outcomes:
            _tell(outcome, chosen=score is not None)


def _known(
    gallery: Gallery, queries: Path | None, dataset: Path | None, split: str, rng: np.random.Generator
) -> dict[Any, list[KnownQuery]]:
    """The questions of a file or a dataset; else those whose hits were marked."""
    from evidex.retrieval.certainty.known_queries import dataset_queries, read_queries
    from evidex.retrieval.certainty.marked_queries import marked_queries

    if queries is not None:
        return dict(read_queries(queries))
    return dict(marked_queries(gallery) if dataset is None else dataset_queries(dataset, split, rng))


def _by_itself(gallery: Gallery, rng: np.random.Generator, score: str | None) -> list[CalibrationOutcome]:
    from evidex.errors import InputError
    from evidex.retrieval.certainty.calibration_store import forget
    from evidex.retrieval.certainty.self_calibrating import self_calibrate

    outcomes = self_calibrate(gallery, rng, score=score)
    if not outcomes:
        raise InputError(f"'{gallery.place}' holds no pictures to calibrate itself by; give --queries or --dataset")
    forget(gallery)  # only now: what was given stays where this fails
    return outcomes


def _by_queries(
    gallery: Gallery,
    known: dict[Any, list[KnownQuery]],
    source: str,
    guarantee: GuaranteeRequest,
    score: str | None,
    rng: np.random.Generator,
) -> list[CalibrationOutcome]:
    from dataclasses import replace

    from evidex.errors import InputError
    from evidex.retrieval.certainty.calibrating import calibrate

    if not any(known.values()):
        raise InputError(f"'{source}' holds no query; give at least twenty")
    return [
        replace(calibrate(gallery, part, direction, guarantee=guarantee, score=score, rng=rng), source=source)
        for direction, part in known.items()
        if part
    ]


def _content(outcome: CalibrationOutcome) -> dict[str, Any]:
    from dataclasses import asdict

    calibration, guarantee = outcome.calibration, outcome.guarantee
    return {
        "queries": calibration.direction,
        "among": outcome.target,
        "source": outcome.source,
        "count": len(calibration.scores) + outcome.taught,
        "taught": outcome.taught,
        "labelled": outcome.labelled,
        "out_of_domain": outcome.out_of_domain,
        "unknown": outcome.unknown,
        "score": calibration.score,
        "gallery_size": calibration.gallery_size,
        "worth": None if outcome.worth is None else {**asdict(outcome.worth), "sentence": outcome.worth.describe()},
        "guarantee": None if guarantee is None else {**asdict(guarantee), "sentence": guarantee.describe()},
    }


def _tell(outcome: CalibrationOutcome, *, chosen: bool) -> None:
    """``chosen``: whether somebody named the score."""
    from evidex.retrieval.certainty.learned_score import LEAST_OF_EACH
    from evidex.retrieval.certainty.learning import LEAST_KNOWN

    calibration = outcome.calibration
    say(
        f"{calibration.direction} queries among {outcome.target}: {len(calibration.scores) + outcome.taught} from "
        f"{outcome.source}, {outcome.labelled} with a known answer, judged by {calibration.score}"
    )
    if calibration.learned_score is not None:
        teachers = f"{outcome.taught} of them" if outcome.taught else "captions of the gallery"
        say(f"learned from {teachers}" + (f": {outcome.worth.describe()}" if outcome.worth else ""))
    elif chosen:
        pass  # nothing was to be learned
    elif outcome.worth is not None:
        say(f"what could be learned {outcome.worth.shortfall}, so it is not used")
    elif outcome.labelled >= LEAST_KNOWN:
        say(f"they teach nothing: that takes {LEAST_OF_EACH} right and {LEAST_OF_EACH} wrong answers in either half")
    elif outcome.labelled:
        say(f"with {LEAST_KNOWN} known answers or more it could learn how likely an answer is right")
    if outcome.out_of_domain:
        say(f"{outcome.out_of_domain} more were left out: the model was never taught what they are about")
    if outcome.unknown:
        say(f"the answers of {outcome.unknown} are not in the gallery; name rows by id, path or file name")
    if outcome.guarantee is not None:
        say(f"guarantee, for questions like these: {outcome.guarantee.describe()}")
    elif not outcome.labelled:
        say("no guarantee: it needs queries whose answers are known and in the gallery")
    else:
        say("no guarantee: it needs queries of your own with known answers (--queries or --dataset)")
