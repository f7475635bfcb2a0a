"""The val part of a dataset whose authors have none: a tenth of what trains, chosen by the names of the files.

The choice hangs on each name alone: it is the same on every machine, in every order, and images that are added later
move none of the others.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from evidex.data.records import Record

ONE_IN = 10
RULE = "a tenth, by the hash of the file name"


def is_drawn(filename: str) -> bool:
    """Whether the image of this name belongs to a val part that has to be drawn."""
    return int(hashlib.sha256(filename.encode()).hexdigest()[:8], 16) % ONE_IN == 0


def with_val_part(records: tuple[Record, ...]) -> tuple[Record, ...]:
    """``records`` with a val part drawn from those that train; themselves where others than train and test are known.

    A dataset with a split of an unusual name has been divided by somebody, who may mean that one by val.
    """
    splits = {record.split for record in records}
    chosen = [record.split == "train" and is_drawn(record.filename) for record in records]
    if not splits <= {"train", "test"} or sum(chosen) == sum(record.split == "train" for record in records):
        return records
    return tuple(
        replace(record, split="val") if drawn else record for record, drawn in zip(records, chosen, strict=True)
    )
