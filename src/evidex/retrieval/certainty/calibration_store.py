"""Where a gallery keeps its calibrations, and how they are written and read."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np

from evidex.documents import parse_json
from evidex.errors import DataError, GalleryError, InputError
from evidex.files import write_atomic
from evidex.old_names import score_name, with_new_keys
from evidex.retrieval.certainty.calibration import Calibration
from evidex.retrieval.certainty.guarantee import Guarantee
from evidex.retrieval.certainty.learned_score_store import learned_score_from_json, learned_score_json
from evidex.retrieval.certainty.policy import Policy
from evidex.retrieval.filters import Target
from evidex.retrieval.gallery import Gallery
from evidex.retrieval.queries import Direction
from evidex.retrieval.sealing import CALIBRATION
from evidex.retrieval.soundness.seal import checksum_of, digest_of_bytes, drop, store
from evidex.storage.objects import Place

_FORMAT = 5
# Guarantees of format 1 do not say what they were tested for, and formats before 3 have no learned score.
_READABLE = (1, 2, 3, 4, 5)
_FIRST_WITH_CHECK = 4


def calibration_text(calibration: Calibration) -> str:
    """What `read_calibration` reads: JSON with a checksum of itself."""
    learned_score = calibration.learned_score
    content = {
        "format": _FORMAT,
        "model_fingerprint": calibration.model_fingerprint,
        "direction": calibration.direction,
        "gallery_size": calibration.gallery_size,
        "score": calibration.score,
        "scores": calibration.scores.tolist(),
        "guarantees": [asdict(guarantee) for guarantee in calibration.guarantees],
        "learned_score": None if learned_score is None else learned_score_json(learned_score),
        "domain_digest": calibration.domain_digest,
    }
    return json.dumps({**content, "check": checksum_of(content)}, indent=1, allow_nan=False) + "\n"


def read_calibration(path: Place) -> Calibration:
    """The calibration in the file; DataError where there is none that can be read."""
    try:
        content: Any = parse_json(path.read_text(encoding="utf-8"))
        version = content["format"]
        if isinstance(version, int) and version > _FORMAT:
            raise DataError(f"{str(path)!r} has calibration format {version}, newer than {_FORMAT}; update evidex")
        if version not in _READABLE:
            raise ValueError(f"format {version!r}")
        check = content.pop("check", None)
        if version >= _FIRST_WITH_CHECK and check != checksum_of(content):
            raise ValueError("its checksum is wrong")
        content = with_new_keys(content)
        learned_score, digest = content.get("learned_score"), content.get("domain_digest")
        return Calibration(
            str(content["model_fingerprint"]),
            content["direction"],
            int(content["gallery_size"]),
            score_name(str(content["score"])),
            np.array(content["scores"], np.float64),
            tuple(Guarantee(**guarantee) for guarantee in content["guarantees"]),
            None if learned_score is None else learned_score_from_json(learned_score),
            None if digest is None else str(digest),
        )
    except FileNotFoundError:
        raise DataError(f"{str(path)!r} does not exist; make it with evidex calibrate") from None
    except (OSError, KeyError, TypeError, ValueError, AttributeError, InputError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{str(path)!r} is no calibration ({error}); make it again with evidex calibrate") from None


def calibration_name(direction: Direction, target: Target, *, by_itself: bool = False) -> str:
    """Of a file in a gallery. ``by_itself``: that which it made of its own content, used where no other is given."""
    return f"{CALIBRATION}/{direction}-to-{target}{'-by-itself' * by_itself}.json"


def domain_digest(gallery: Gallery, direction: Direction) -> str | None:
    """What a calibration records of the model beside its fingerprint; "" for a model that tells no text out of domain.

    None for image queries: of these none is left out as out of domain.
    """
    if direction == "image":
        return None
    domain = gallery.model.domain
    return "" if domain is None else domain.digest


def store_calibration(gallery: Gallery, calibration: Calibration, target: Target, *, by_itself: bool = False) -> None:
    """Put a calibration into the gallery, and its checksum into the seal."""
    name = calibration_name(calibration.direction, target, by_itself=by_itself)
    content = calibration_text(calibration)
    (gallery.place / CALIBRATION).mkdir(exist_ok=True)
    store(gallery.place, name, lambda place: write_atomic(place, content), digest_of_bytes(content.encode()))


def forget(gallery: Gallery) -> None:
    """Drop the calibrations that were given; those that the gallery made of its own content stay."""
    names = [f"{CALIBRATION}/{path.name}" for path in (gallery.place / CALIBRATION).glob("*.json")]
    drop(gallery.place, [name for name in names if not name.endswith("-by-itself.json")])


def load_policy(
    gallery: Gallery, direction: Direction, target: Target, refine_ratio: float, abstain_ratio: float
) -> Policy | None:
    """The stored calibration's gates; None if the gallery has none for such queries."""
    names = [calibration_name(direction, target, by_itself=by_itself) for by_itself in (False, True)]
    name = next((name for name in names if (gallery.place / name).exists() or gallery.checks.expects(name)), None)
    if name is None:
        return None
    gallery.checks.check([name])
    try:
        calibration = read_calibration(gallery.place / name)
    except DataError as error:
        raise GalleryError(str(error)) from None
    digest = None if calibration.domain_digest is None else domain_digest(gallery, direction)
    calibration.check(gallery.info.model_fingerprint, direction, calibration.score, domain_digest=digest)
    return Policy.of(calibration, refine_ratio, abstain_ratio, given=name == names[0])
