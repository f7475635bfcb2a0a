"""What an index run has done, as the commands tell it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from evidex.cli.terminal import say
from evidex.storage.objects import Place
from evidex.visible import visible

if TYPE_CHECKING:
    from evidex.errors import InputError
    from evidex.retrieval.indexing import IndexReport

_SHOWN_SKIPS = 10
_PACKED = (".tar", ".tar.gz", ".tgz", ".zip", ".7z", ".rar")


def _content(outcome: IndexReport, gallery: Place, sources: list[str]) -> dict[str, Any]:
    from dataclasses import asdict

    content = asdict(outcome)
    content["gallery"] = str(gallery)
    content["calibrated_by"] = sources
    return content


def came_to_nothing(outcome: IndexReport) -> bool:
    return not (outcome.added or outcome.updated or outcome.unchanged or outcome.moved or outcome.pruned)


def told(
    outcome: IndexReport,
    gallery: Place,
    sources: list[str],
    report: Path | None,
    how: Literal["json", "text"] | None,
) -> None:
    """Write the report to a file if one is named, and print it, if at all, as JSON or in words."""
    from evidex.cli.console import print_json
    from evidex.files import write_json_atomic

    content = _content(outcome, gallery, sources)
    if report is not None:
        write_json_atomic(report, content)
    if how == "json":
        print_json(content)
    elif how == "text":
        _tell(outcome, gallery, sources)


def _tell(outcome: IndexReport, gallery: Place, sources: list[str]) -> None:
    from evidex.cli.console import error_console

    console = error_console()
    told = [f"skipped {skip.name}: {skip.reason}" for skip in outcome.skipped]
    told += [f"{remark.name}: {remark.reason}" for remark in outcome.remarks]
    for line in told[:_SHOWN_SKIPS]:
        console.print(visible(line), style="yellow", markup=False, highlight=False, soft_wrap=True)
    if len(told) > _SHOWN_SKIPS:
        rest = len(told) - _SHOWN_SKIPS
        console.print(f"… and {rest} more; --report FILE lists all of them", style="yellow", highlight=False)
    pruned = f"; {outcome.pruned} pruned" if outcome.pruned else ""
    rate = f", {outcome.encoded / outcome.seconds:.0f} pictures/s" if outcome.encoded else ""
    say(f"{outcome.found} files found: {_counts(outcome)}{pruned}; {outcome.seconds:.1f} s{rate}")
    if outcome.read_otherwise:
        one = outcome.read_otherwise == 1
        them = "it" if one else "them"
        why = (
            f" ({outcome.read_before}); index again with what was given then to have {them} as before"
            if outcome.read_before
            else ", since what a catalog tells or what lies beside is not the same"
        )
        say(
            f"{outcome.read_otherwise} of them {'has' if one else 'have'} not changed, but {'is' if one else 'are'} "
            f"read otherwise than before{why}"
        )
    if outcome.gone:
        one = outcome.gone == 1
        say(
            f"{outcome.gone} {'file is' if one else 'files are'} gone from there and still found by searches; "
            f"index again with --prune to drop {'it' if one else 'them'}"
        )
    if outcome.unplaced:
        one = outcome.unplaced == 1
        say(
            f"{outcome.unplaced} {'raster has' if one else 'rasters have'} coordinates that lead to no place on earth, "
            f"wholly or in part: {'it is' if one else 'they are'} indexed, but --bbox does not find what has no place"
        )
    if outcome.blank:
        one = outcome.blank == 1
        say(
            f"{_count(outcome.blank, 'picture')} {'shows' if one else 'show'} nothing, as all pixels are alike: "
            f"{'it is' if one else 'they are'} indexed, and may stand among hits that fit nothing"
        )
    if outcome.passed_over:
        say(_passed_over(outcome))
    say(
        f"{outcome.rows} rows in {gallery}: {_kinds(outcome)}"
        + (f"; calibrated for {', '.join(sources)}" if sources else "")
    )


def _passed_over(outcome: IndexReport) -> str:
    """Which pictures were not looked at, and why."""
    from evidex.data.discover import HIDDEN

    others = {kind: count for kind, count in outcome.passed_over.items() if kind != HIDDEN}
    told = []
    if others:
        kinds = ", ".join(f"{kind} {count}" for kind, count in others.items())
        told.append(f"{_count(sum(others.values()), 'file')} of kinds that are not indexed: {kinds}")
    if hidden := outcome.passed_over.get(HIDDEN, 0):
        dot = "whose name begins" if hidden == 1 else "whose names begin"
        told.append(f"{_count(hidden, 'picture')} {dot} with a dot; name such a file itself to index it")
    return "passed over " + ", and ".join(told)


def _counts(outcome: IndexReport) -> str:
    """What became of the files; copies are among those that were written now, so they are told with these."""
    written = _listed({"added": outcome.added, "updated": outcome.updated})
    if written and outcome.duplicates:
        written[-1] += f" ({len(outcome.duplicates)} of them copies of others)"
    rest = _listed({"unchanged": outcome.unchanged, "moved": outcome.moved, "skipped": len(outcome.skipped)})
    return ", ".join([*written, *rest]) or "none"


def _listed(counts: dict[str, int]) -> list[str]:
    return [f"{count} {name}" for name, count in counts.items() if count]


def _kinds(outcome: IndexReport) -> str:
    """What the rows are, so that they can be compared with the files."""
    tiles = f"{_count(outcome.tiles, 'tile')} of {_count(outcome.scenes, 'scene')}"
    kinds = [(outcome.images, _count(outcome.images, "image")), (outcome.tiles, tiles)]
    kinds.append((outcome.texts, _count(outcome.texts, "text")))
    return ", ".join(words for count, words in kinds if count) or "none"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def complaint(paths: list[str], outcome: IndexReport) -> InputError:
    from evidex.data.discover import printable
    from evidex.data.images import KINDS
    from evidex.errors import InputError

    shown = "'" + "', '".join(printable(path) for path in paths[:3]) + ("', …" if len(paths) > 3 else "'")
    if not outcome.skipped:
        packed = _packed(paths)
        unpack = "" if packed is None else f"; unpack '{printable(packed)}' first, packed files are not read"
        over = f"; {_passed_over(outcome)}" if outcome.passed_over else ""
        return InputError(f"{shown}: nothing to index was found{over}; give {KINDS} files, or folders of them{unpack}")
    reason, often = Counter(skip.reason for skip in outcome.skipped).most_common(1)[0]
    example = next(skip for skip in outcome.skipped if skip.reason == reason)
    count = f"all {len(outcome.skipped)} files were skipped, {often} like" if len(outcome.skipped) > 1 else "skipped"
    return InputError(f"{shown}: nothing was indexed; {count}: {Path(example.name).name}: {reason}")


def _packed(paths: list[str]) -> str | None:
    """A packed file right in one of these folders, which somebody may have meant."""
    folders = [path for path in map(Path, paths) if path.is_dir()]
    names = (file.name for folder in folders for file in sorted(folder.iterdir()))
    return next((name for name in names if name.lower().endswith(_PACKED)), None)
