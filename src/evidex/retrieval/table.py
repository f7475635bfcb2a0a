"""The Lance table of a gallery's rows: which version is the newest, which files it needs, and what can go wrong."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from evidex.errors import EvidexError, GalleryError
from evidex.files import telling_full_disk
from evidex.retrieval.rows import LATER_COLUMNS, row_schema
from evidex.retrieval.soundness.checks import FileChecks
from evidex.retrieval.soundness.seal import damaged
from evidex.storage.objects import ObjectPlace, Place, lance_place

ROWS = "rows.lance"
_VERSIONS = f"{ROWS}/_versions"
_LARGEST = 2**64 - 1
_ROWS_IN_FRAGMENT = 65536


def new_table(folder: Place, dim: int) -> Any:
    """Make the table, without a row; one that a making which was cut short has left goes."""
    import lance
    import pyarrow as pa

    schema = row_schema(dim)
    _remove(folder / ROWS)
    empty = pa.table([pa.array([], field.type) for field in schema], schema=schema)
    with telling_full_disk(folder):
        return lance.write_dataset(empty, **lance_place(folder / ROWS))


def _remove(table: Place) -> None:
    if isinstance(table, ObjectPlace):
        table.remove_all()
    else:
        shutil.rmtree(table, ignore_errors=True)


def add_missing_columns(folder: Place, dataset: Any, dim: int) -> bool:
    """Bring the table of an earlier version to this one's columns, null for what was not noted then; whether it did."""
    import pyarrow as pa

    missing = [field for field in row_schema(dim) if field.name not in dataset.schema.names]
    if missing:
        with telling_full_disk(folder):
            dataset.add_columns(pa.schema(missing))
    return bool(missing)


def open_table(folder: Place, dim: int, checks: FileChecks) -> Any:
    """The newest version; DamagedError where it or one that was there is gone, or is not what was written."""
    import lance

    checks.take_up_seal()  # before the look at what is there, so that what it names is there already
    versions = manifests(folder)
    newest = max(versions, default=None)
    if newest is None and not isinstance(folder, ObjectPlace) and not folder.is_dir():
        raise GalleryError(f"'{folder}' is gone; bring it back (is its disk mounted?)")
    if newest is None:
        raise damaged(folder, f"its rows are gone ({_VERSIONS} names no version)")
    if checks.seal is not None and newest < checks.seal.version:
        raise damaged(
            folder, f"version {checks.seal.version} of its rows is gone, and {newest} is the last that is left"
        )
    checks.check([versions[newest]])
    with reading(folder):
        dataset = lance.dataset(**lance_place(folder / ROWS))
        if dataset.version < newest:  # Lance was led astray by its hint of the newest version
            dataset = lance.dataset(**lance_place(folder / ROWS), version=newest)
        _check_schema(folder, dataset, dim)
        checks.check(files_of(folder, dataset))
    checks.keep()
    return dataset


def newest_table(folder: Place) -> Any:
    """The newest version, unchecked."""
    import lance

    with reading(folder):
        return lance.dataset(**lance_place(folder / ROWS))


def open_at(folder: Place, version: int) -> Any:
    """One version, its files unchecked; DamagedError where Lance cannot open it."""
    import lance

    with reading(folder):
        return lance.dataset(**lance_place(folder / ROWS), version=version)


def manifests(folder: Place) -> dict[int, str]:
    """The versions that are there, with the name of the file that describes each."""
    found = {}
    for path in (folder / _VERSIONS).glob("*.manifest"):
        if path.stem.isdecimal():
            # Newer tables count down, so that the newest version comes first in a listing.
            number = int(path.stem)
            found[_LARGEST - number if len(path.stem) == 20 else number] = f"{_VERSIONS}/{path.name}"
    return found


def files_of(folder: Place, dataset: Any) -> list[str]:
    """Names, inside the gallery, of all files that reading this version needs."""
    version = int(dataset.version)
    names = [manifests(folder).get(version, f"{_VERSIONS}/{_LARGEST - version:020d}.manifest")]
    for fragment in dataset.get_fragments():
        names += [f"{ROWS}/data/{file.path}" for file in fragment.data_files()]
        deletions = fragment.deletion_file()
        if deletions is not None:
            names.append(f"{ROWS}/{deletions}")
    return names


def batches(folder: Place, dataset: Any, columns: Sequence[str] | None) -> Iterator[Any]:
    """All rows in their order as Arrow batches."""
    with reading(folder):
        found = dataset.to_batches(columns=columns, scan_in_order=True)
    while True:
        with reading(folder):
            batch = next(found, None)
        if batch is None:
            return
        yield batch


def compact(folder: Place, dataset: Any) -> None:
    """Join the many small pieces that commits leave."""
    with telling_full_disk(folder):
        dataset.optimize.compact_files(target_rows_per_fragment=_ROWS_IN_FRAGMENT, materialize_deletions_threshold=0.0)


@contextmanager
def reading(folder: Place) -> Iterator[None]:
    """Whatever Lance and Arrow say of files that they cannot read, as a DamagedError."""
    try:
        yield
    except EvidexError:
        raise
    except (OSError, ValueError, TypeError, KeyError, RuntimeError, OverflowError, MemoryError) as error:
        if isinstance(folder, ObjectPlace) and (trouble := folder.trouble(error)) is not None:
            raise trouble from None
        raise damaged(folder, f"its rows cannot be read ({_line(error)})") from None
    except BaseException as error:
        # How the Rust code below tells of a broken assumption; it is no Exception to Python.
        if type(error).__name__ != "PanicException":
            raise
        raise damaged(folder, f"its rows cannot be read ({_line(error)})") from None


def _check_schema(folder: Place, dataset: Any, dim: int) -> None:
    names, wanted = set(dataset.schema.names), set(row_schema(dim).names) - LATER_COLUMNS
    if not wanted <= names:
        raise damaged(folder, f"its rows lack the column '{min(wanted - names)}'")
    size = getattr(dataset.schema.field("vector").type, "list_size", None)
    if size != dim:
        raise damaged(folder, f"its vectors have {size} numbers, not the {dim} that gallery.json says")


def _line(error: BaseException) -> str:
    return (" ".join(str(error).split()) or type(error).__name__)[:120]
