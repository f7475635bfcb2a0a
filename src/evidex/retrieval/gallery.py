"""The archive as the search sees it: one row for each image, tile or text, in a Lance table.

gallery.json       format, and the model the vectors come from
rows.lance/        the rows with their vectors; what is committed survives any crash
vectors-*.f32      the vectors again, memory-mapped for the scan; derived
model.safetensors  the model itself, unless it is known by name or path
calibration/       what the gate knows about queries
seal.json          size and checksum of all that, but for what is derived
checked.json       which files were found to be as sealed, and when; derived
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evidex.errors import GalleryError, NotFoundError
from evidex.files import derived_folder, telling_full_disk
from evidex.progress import Progress, silent
from evidex.retrieval.gallery_folder import check_held, folder_of, held
from evidex.retrieval.gallery_info import GalleryInfo, read_info
from evidex.retrieval.gallery_making import make_gallery
from evidex.retrieval.gallery_model import check_model, load_model_of
from evidex.retrieval.rows import NOT_FOR_HITS, Row, WrittenRows, from_table, records_in, to_table
from evidex.retrieval.scan.precision import Precision, ScanVectors, scan_vectors
from evidex.retrieval.sealing import complete, seal_table
from evidex.retrieval.soundness.checks import FileChecks
from evidex.retrieval.soundness.mapped import DamagedVectors, MappedVectors
from evidex.retrieval.soundness.seal import Digest, Losses, Seal
from evidex.retrieval.table import add_missing_columns, batches, compact, files_of, newest_table, open_table, reading
from evidex.retrieval.taking import IDS_AT_ONCE, column, id_filter, take, with_ids
from evidex.retrieval.vector_file import map_vectors
from evidex.retrieval.written_rows import commit_fragments
from evidex.storage.objects import ObjectPlace, Place, place_of

if TYPE_CHECKING:
    from PIL.Image import Image

    from evidex.encoders.model import Model
    from evidex.retrieval.indexing import IndexOptions, IndexReport

_KEEP_VERSIONS = timedelta(hours=1)
_LOG = logging.getLogger("evidex.gallery")


class Gallery:
    """Rows at one version of the table; `refresh` moves on to the newest.

    What is read is held against the seal first (`evidex.retrieval.soundness`): damage is a DamagedError, but for the
    mapped vectors, which are made again from the table.
    """

    def __init__(self, place: Place, info: GalleryInfo, model: Model | None, seal: Seal | None) -> None:
        self.place = place
        self.derived = derived_folder(place)  # of what can be made again: the vectors as they are mapped
        self.info = info
        self.checks = FileChecks(place, seal)
        self._model = model
        self._dataset = open_table(place, info.dim, self.checks)
        self._version = int(self._dataset.version)
        self._files = files_of(place, self._dataset)
        self._mapped: MappedVectors | None = None
        self._scanned: dict[Precision, ScanVectors] = {}
        self._columns: dict[str, Any] = {}

    @classmethod
    def create(cls, path: str | Place, model: Model, *, source: str | Path | None = None) -> Gallery:
        """Make an empty gallery for vectors of ``model``, in a folder or at ``s3://BUCKET/PREFIX``.

        ``source`` is what `load_model` was given for it. Without one a copy of the model is put into the gallery, so
        that it can be opened again anywhere.
        """
        place = place_of(path)
        info, seal = make_gallery(place, model, source)
        return cls(place, info, model, seal)

    @classmethod
    def open(cls, path: str | Place, model: Model | None = None) -> Gallery:
        """Open a gallery; ``model`` must be the one it was made with and is loaded when needed if not given."""
        folder = place_of(path)
        info, seal = read_info(folder)
        if model is not None:
            check_model(folder, info, model)
        gallery = cls(folder, info, model, seal)
        if not gallery.checks.covers(gallery._files, gallery._version):  # a kill came between a commit and its seal
            with suppress(GalleryError, OSError), gallery.writing(at_once=True):
                pass  # or a writer is at work, and seals it itself
        return gallery

    @property
    def path(self) -> Path:
        """The folder of a gallery on this machine."""
        return folder_of(self.place)

    @property
    def model(self) -> Model:
        if self._model is None:
            self._model = load_model_of(self.place, self.info, self.checks)
        return self._model

    @property
    def dim(self) -> int:
        return self.info.dim

    @property
    def temperature(self) -> float:
        return self.info.temperature

    @property
    def version(self) -> int:
        return self._version

    @property
    def dataset(self) -> Any:
        """The Lance dataset at this version, its files not held against the seal."""
        return self._dataset

    def __len__(self) -> int:
        with reading(self.place):
            return int(self._dataset.count_rows())

    @property
    def mapped(self) -> MappedVectors:
        """The vectors as they lie on the disk, not yet held against their checksums."""
        if self._mapped is None:
            with reading(self.place):
                self._mapped = map_vectors(self.derived, self._table, self.dim)
        return self._mapped

    @property
    def vectors(self) -> NDArray[np.float32]:
        """(rows, dim), read-only and sound; row i is that of ``rows([i])``."""
        try:
            self.mapped.ensure_all()
        except DamagedVectors:
            self.remake_vectors()
        return self.mapped.values

    def remake_vectors(self) -> None:
        """Write the mapped vectors anew from the table, of which they are a copy."""
        _LOG.warning("the mapped vectors of '%s' were damaged and are made again from its table", self.place)
        self._scanned = {}
        with reading(self.place):
            self._mapped = map_vectors(self.derived, self._table, self.dim, anew=True)

    def scan_vectors(self, precision: Precision = "float32") -> ScanVectors:
        """The vectors as a scan reads them; rounded ones are made once a version and held in memory."""
        if precision not in self._scanned:
            values = self.mapped.values if precision == "float32" else self.vectors
            self._scanned[precision] = scan_vectors(values, precision)
        if precision == "float32":
            self.mapped.look()
            return replace(self._scanned[precision], ensure=self.mapped.ensure)
        self.mapped.recheck()  # the best rows are scored with what is mapped
        return self._scanned[precision]

    def check(self) -> None:
        """DamagedError if what was read so far has changed on the disk meanwhile and is not what was written."""
        self.checks.check(self._files)
        if self._mapped is not None:
            self._mapped.recheck()

    def patrol(self) -> Iterator[None]:
        """Read everything again though nothing tells of a change, piece by piece; DamagedError as `check`."""
        return chain(self.mapped.patrol(), self.checks.patrol(self._files))

    @property
    def _table(self) -> Any:
        """The dataset, its files held against the seal; those that did not change since are not read again."""
        self.checks.check(self._files)
        return self._dataset

    @property
    def _table_to_change(self) -> Any:
        """The table, asked for anew before each commit: another process may have taken the gallery over."""
        check_held(self.place)
        return self._table

    def refresh(self) -> bool:
        """Move to the newest version; whether anything is new."""
        before = self._version
        self._moved_to(open_table(self.place, self.dim, self.checks))
        return self._version != before

    def rows(self, positions: Sequence[int]) -> list[Row]:
        """The rows at these positions, in their order."""
        if not len(positions):
            return []
        names = [name for name in self._dataset.schema.names if name not in NOT_FOR_HITS]
        with reading(self.place):
            return from_table(take(self._table, positions, names))

    def find(self, row_id: str) -> Row:
        """The row with this id."""
        found = self.find_with_vectors([row_id])
        if not found:
            raise NotFoundError(f"'{row_id}' is not in the gallery; ids come with the hits of a search")
        return found[0][0]

    def find_with_vectors(self, ids: Sequence[str]) -> list[tuple[Row, NDArray[np.float32]]]:
        """The rows with these ids and their vectors, in the table's order."""
        with reading(self.place):
            return list(with_ids(self._table, ids))

    def column(self, name: str) -> Any:
        """One column of all rows as an Arrow array, kept until the gallery moves on."""
        if name not in self._columns:
            with reading(self.place):
                self._columns[name] = column(self._table, name)
        return self._columns[name]

    def records(self, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        """All rows, as far as ``columns`` go; paths come as the system names them."""
        names = [*columns, *(["raw_path"] if "path" in columns else [])]
        for batch in self.batches(names):
            yield from records_in(batch)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """All rows in their order as Arrow batches."""
        return batches(self.place, self._table, columns)

    def open_image(self, row: Row, *, longest: int = 512) -> Image:
        """The picture of a row as it was encoded, at most ``longest`` pixels a side."""
        from evidex.retrieval.pictures import picture_of_row

        return picture_of_row(row, longest, lambda: self.find(row.id).thumbnail)

    @property
    def rows_a_commit(self) -> int:
        """How many rows a commit is worth waiting for: in a store it is some twenty requests, half a second or more."""
        return 4096 if isinstance(self.place, ObjectPlace) else 256

    def add(
        self,
        paths: Iterable[str | Path] | str | Path,
        *,
        options: IndexOptions | None = None,
        progress: Progress = silent,
    ) -> IndexReport:
        """Index files, folders and patterns; files that are in the gallery already and unchanged are left alone."""
        from evidex.retrieval.indexing import IndexOptions, index_paths

        places = [paths] if isinstance(paths, (str, Path)) else list(paths)
        return index_paths(self, places, options or IndexOptions(), progress)

    def add_texts(self, texts: Sequence[str], *, source: str = "", progress: Progress = silent) -> int:
        """Put texts into the gallery, to be found by image queries; returns how many are new.

        ``source`` names where they come from. A text that is there already from the same source is left alone.
        """
        from evidex.retrieval.indexing import index_texts

        return index_texts(self, texts, source, progress)

    @contextmanager
    def writing(self, *, at_once: bool = False) -> Iterator[None]:
        """Hold the gallery for one writer; the hold ends with the process, however it ends.

        While another holds it this is a GalleryError; in an object store a wait, unless it must be ``at_once``.
        """
        with held(self.place, wait=isinstance(self.place, ObjectPlace) and not at_once):
            self.refresh()
            self.complete_seal()
            if add_missing_columns(self.place, self._table_to_change, self.dim):
                self._committed()
            yield

    @property
    def notes(self) -> dict[str, str]:
        """What is kept about the whole gallery, such as how its scenes were read."""
        return dict(self._dataset.config())

    def note(self, notes: dict[str, str]) -> None:
        self._table_to_change.update_config(notes)
        self._committed()

    def note_losses(self, lost: Losses) -> None:
        """What of the rows that repairs gave up is not back yet."""
        if self.checks.lost != lost:
            self._committed(self._dataset, lost=lost)

    def complete_seal(self) -> None:
        self.info = complete(self.place, self.info, self._dataset, self._files, self.checks)

    def append(self, rows: Sequence[Row], vectors: NDArray[np.float32]) -> None:
        """Commit new rows; when this returns they are there to stay."""
        import lance

        if rows:
            with telling_full_disk(self.place):
                newest = lance.write_dataset(to_table(rows, vectors), self._table_to_change, mode="append")
            self._committed(newest)

    def append_written(self, written: Sequence[WrittenRows]) -> None:
        """Commit rows that other processes wrote beside the table, all in one step."""
        if written:
            with telling_full_disk(self.place):
                newest = commit_fragments(self.place, self._table_to_change, [each.fragments for each in written])
            self._committed(newest, digests={name: digest for each in written for name, digest in each.digests.items()})

    def replace(self, rows: Sequence[Row], vectors: NDArray[np.float32]) -> None:
        """Commit rows in place of those with the same ids, in one step."""
        if rows:
            merge = self._table_to_change.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
            with telling_full_disk(self.place):
                merge.execute(to_table(rows, vectors))
            self._committed()

    def remove(self, ids: Sequence[str]) -> None:
        for start in range(0, len(ids), IDS_AT_ONCE):
            with telling_full_disk(self.place):
                self._table_to_change.delete(id_filter(ids[start : start + IDS_AT_ONCE]))
            self._committed()

    def compact(self) -> None:
        """Join the many small pieces that commits leave, and forget versions that nobody reads any more."""
        compact(self.place, self._table_to_change)
        self._committed()
        with telling_full_disk(self.place):
            self._dataset.cleanup_old_versions(older_than=_KEEP_VERSIONS)
        self._committed()

    def pieces(self) -> int:
        return len(self._dataset.get_fragments())

    def _committed(
        self, dataset: Any = None, *, lost: Losses | None = None, digests: Mapping[str, Digest] | None = None
    ) -> None:
        """Seal what this process has just written, and go on with it."""
        newest = newest_table(self.place) if dataset is None else dataset
        if (sealed := seal_table(self.place, newest, lost=lost, digests=digests)) is not None:
            self.checks.adopt(*sealed)
        self._moved_to(newest)

    def _moved_to(self, dataset: Any) -> None:
        """Look at another version. Lance moves a dataset itself along with its own changes, so ours is kept apart."""
        self._dataset = dataset
        if self._version != dataset.version:
            self._version = int(dataset.version)
            self._files = files_of(self.place, dataset)
            self._mapped, self._scanned, self._columns = None, {}, {}
