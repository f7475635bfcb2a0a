"""The archive as the search sees it: one row for each image, tile or text, in a Lance table.

gallery.json       format, and the model the vectors come from
rows.lance/        the rows with their vectors; what is committed survives any crash
vectors-*.f32      the vectors again, memory-mapped for the scan; derived
model.safetensors  the model itself, unless it is known by name or path
calibration/       what the gate knows about queries
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evidex.errors import GalleryError, NotFoundError
from evidex.files import telling_full_disk, write_json_atomic
from evidex.progress import Progress, silent
from evidex.retrieval.gallery_folder import INFO, MODEL, OWN_MODEL, ROWS, check_free, held, known_source
from evidex.retrieval.precision import Precision, ScanVectors, scan_vectors
from evidex.retrieval.rows import Row, from_table, row_schema, stored_path, to_table, vectors_in
from evidex.retrieval.vector_file import map_vectors

if TYPE_CHECKING:
    from PIL.Image import Image

    from evidex.encoders.model import Model
    from evidex.retrieval.indexing import IndexOptions, IndexReport

FORMAT = 1
_ROWS_IN_FRAGMENT = 65536
_KEEP_VERSIONS = timedelta(hours=1)
_IDS_AT_ONCE = 1000


@dataclass(frozen=True)
class GalleryInfo:
    """What gallery.json says."""

    format: int
    model_fingerprint: str
    model: str
    """Where the model is: a name or path for `load_model`, or the gallery itself."""
    dim: int
    temperature: float


class Gallery:
    """Rows at one version of the table; `refresh` moves on to the newest."""

    def __init__(self, path: Path, info: GalleryInfo, model: Model | None) -> None:
        self.path = path
        self.info = info
        self._model = model
        self._dataset = _open_rows(path, info.dim)
        self._version = int(self._dataset.version)
        self._vectors: NDArray[np.float32] | None = None
        self._scanned: dict[Precision, ScanVectors] = {}
        self._columns: dict[str, Any] = {}

    @classmethod
    def create(cls, path: str | Path, model: Model, *, source: str | Path | None = None) -> Gallery:
        """Make an empty gallery for vectors of ``model``.

        ``source`` is what `load_model` was given for it. Without one a copy of the model is put into the gallery, so
        that it can be opened again anywhere.
        """
        folder = Path(path)
        check_free(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with held(folder, wait=True):
            check_free(folder)  # another process may have made it meanwhile
            where = known_source(model, source)
            info = GalleryInfo(FORMAT, model.fingerprint, where, model.dim, model.temperature)
            if where == OWN_MODEL:
                model.save(folder / MODEL)
            shutil.rmtree(folder / ROWS, ignore_errors=True)  # empty, of a making that was cut short
            _new_rows(folder, model.dim)
            write_json_atomic(folder / INFO, asdict(info))  # the last: with it the gallery is there
        return cls(folder, info, model)

    @classmethod
    def open(cls, path: str | Path, model: Model | None = None) -> Gallery:
        """Open a gallery; ``model`` must be the one it was made with and is loaded when needed if not given."""
        folder = Path(path)
        info = _read_info(folder)
        if model is not None:
            _check_model(folder, info, model)
        return cls(folder, info, model)

    @property
    def model(self) -> Model:
        if self._model is None:
            from evidex.encoders.model import load_model
            from evidex.errors import ModelError

            own = self.info.model == OWN_MODEL
            try:
                model = load_model(self.path / MODEL if own else self.info.model)
            except ModelError as error:
                raise GalleryError(
                    f"'{self.path}' was made with model '{self.info.model}', which cannot be loaded ({error}); "
                    "name it with --model"
                ) from None
            _check_model(self.path, self.info, model)
            self._model = model
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

    def __len__(self) -> int:
        return int(self._dataset.count_rows())

    @property
    def vectors(self) -> NDArray[np.float32]:
        """(rows, dim), read-only; row i is that of ``rows([i])``."""
        if self._vectors is None:
            self._vectors = map_vectors(self.path, self._dataset, self.dim)
        return self._vectors

    def scan_vectors(self, precision: Precision = "float32") -> ScanVectors:
        """The vectors as a scan reads them; rounded ones are made once a version and held in memory."""
        if precision not in self._scanned:
            self._scanned[precision] = scan_vectors(self.vectors, precision)
        return self._scanned[precision]

    def refresh(self) -> bool:
        """Move to the newest version; whether anything is new."""
        before = self._version
        self._reopen()
        return self._version != before

    def rows(self, positions: Sequence[int]) -> list[Row]:
        """The rows at these positions, in their order."""
        if not len(positions):
            return []
        names = [name for name in self._dataset.schema.names if name != "vector"]
        return from_table(self._dataset.take([int(position) for position in positions], columns=names))

    def find(self, row_id: str) -> Row:
        """The row with this id."""
        found = list(self._where([row_id]))
        if not found:
            raise NotFoundError(f"'{row_id}' is not in the gallery; ids come with the hits of a search")
        return found[0][0]

    def find_with_vectors(self, ids: Sequence[str]) -> list[tuple[Row, NDArray[np.float32]]]:
        """The rows with these ids and their vectors, in the table's order."""
        return list(self._where(ids))

    def column(self, name: str) -> Any:
        """One column of all rows as an Arrow array, kept until the gallery moves on."""
        if name not in self._columns:
            table = self._dataset.to_table(columns=[name])
            self._columns[name] = table.column(0).combine_chunks()
        return self._columns[name]

    def records(self, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        """All rows, as far as ``columns`` go; paths come as the system names them."""
        names = [*columns, *(["raw_path"] if "path" in columns else [])]
        for batch in self._dataset.to_batches(columns=names, scan_in_order=True):
            for record in batch.to_pylist():
                if "path" in record:
                    record["path"] = stored_path(record["path"], record.pop("raw_path"))
                yield record

    def open_image(self, row: Row, *, longest: int = 512) -> Image:
        """The picture of a row as it was encoded, at most ``longest`` pixels a side."""
        from evidex.data.items import read_window

        if row.kind == "text":
            raise NotFoundError(f"'{row.id}' is a text and has no picture")
        return read_window(row.path, row.window, row.rendering, longest)

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
    def writing(self) -> Iterator[None]:
        """Hold the gallery for one writer; the hold ends with the process, however it ends."""
        with held(self.path):
            self.refresh()
            self._add_missing_columns()
            yield

    def append(self, rows: Sequence[Row], vectors: NDArray[np.float32]) -> None:
        """Commit new rows; when this returns they are there to stay."""
        import lance

        if rows:
            with telling_full_disk(self.path):
                self._moved_to(lance.write_dataset(to_table(rows, vectors), self._dataset, mode="append"))

    def replace(self, rows: Sequence[Row], vectors: NDArray[np.float32]) -> None:
        """Commit rows in place of those with the same ids, in one step."""
        if rows:
            merge = self._dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
            with telling_full_disk(self.path):
                merge.execute(to_table(rows, vectors))
            self._reopen()

    def remove(self, ids: Sequence[str]) -> None:
        with telling_full_disk(self.path):
            for start in range(0, len(ids), _IDS_AT_ONCE):
                self._dataset.delete(_id_filter(ids[start : start + _IDS_AT_ONCE]))
        self._reopen()

    def compact(self) -> None:
        """Join the many small pieces that commits leave, and forget versions that nobody reads any more."""
        with telling_full_disk(self.path):
            self._dataset.optimize.compact_files(
                target_rows_per_fragment=_ROWS_IN_FRAGMENT, materialize_deletions_threshold=0.0
            )
            self._reopen()
            self._dataset.cleanup_old_versions(older_than=_KEEP_VERSIONS)

    def pieces(self) -> int:
        return len(self._dataset.get_fragments())

    def _where(self, ids: Sequence[str]) -> Iterator[tuple[Row, NDArray[np.float32]]]:
        for start in range(0, len(ids), _IDS_AT_ONCE):
            table = self._dataset.to_table(filter=_id_filter(ids[start : start + _IDS_AT_ONCE]))
            yield from zip(from_table(table), vectors_in(table), strict=True)

    def _add_missing_columns(self) -> None:
        """Bring the table of an earlier version to this one's columns; what was not noted then is null."""
        import pyarrow as pa

        missing = [field for field in row_schema(self.dim) if field.name not in self._dataset.schema.names]
        if missing:
            with telling_full_disk(self.path):
                self._dataset.add_columns(pa.schema(missing))
            self._reopen()

    def _reopen(self) -> None:
        import lance

        try:
            newest = lance.dataset(str(self.path / ROWS))
        except (OSError, ValueError) as error:
            cause = " ".join(str(error).split())[:120]
            raise GalleryError(f"'{self.path}' is gone or damaged ({cause}); bring it back") from None
        self._moved_to(newest)

    def _moved_to(self, dataset: Any) -> None:
        """Look at another version. Lance moves a dataset itself along with its own changes, so ours is kept apart."""
        self._dataset = dataset
        if self._version != dataset.version:
            self._version = int(dataset.version)
            self._vectors = None
            self._scanned = {}
            self._columns = {}


def _read_info(folder: Path) -> GalleryInfo:
    try:
        content = json.loads((folder / INFO).read_bytes())
        version = content["format"]
        if isinstance(version, int) and version > FORMAT:
            raise GalleryError(f"'{folder}' has gallery format {version}, newer than {FORMAT}; update evidex")
        return GalleryInfo(**content)
    except (FileNotFoundError, NotADirectoryError):
        if folder.is_dir() and any(folder.iterdir()):
            remedy = f"if these are pictures, put them into one: 'evidex index {folder} --gallery NEW_FOLDER'"
        else:
            remedy = f"make one with 'evidex index PATH --gallery {folder}'"
        raise GalleryError(f"'{folder}' is no gallery; {remedy}") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise GalleryError(f"'{folder}' is damaged: {INFO} cannot be read ({error}); index into a new one") from None


def _check_model(folder: Path, info: GalleryInfo, model: Model) -> None:
    if model.fingerprint != info.model_fingerprint:
        raise GalleryError(
            f"'{folder}' was made with another model ({info.model_fingerprint[:12]}, not {model.fingerprint[:12]}); "
            "use that one, or index into a new gallery"
        )


def _open_rows(folder: Path, dim: int) -> Any:
    import lance

    try:
        if any((folder / ROWS / "_versions").glob("*.manifest")):
            return lance.dataset(str(folder / ROWS))
    except (OSError, ValueError) as error:
        raise GalleryError(
            f"'{folder}' is damaged: its rows cannot be opened ({error}); index into a new folder"
        ) from None
    return _new_rows(folder, dim)


def _new_rows(folder: Path, dim: int) -> Any:
    import lance
    import pyarrow as pa

    schema = row_schema(dim)
    empty = pa.table([pa.array([], field.type) for field in schema], schema=schema)
    with telling_full_disk(folder):
        return lance.write_dataset(empty, str(folder / ROWS))


def _id_filter(ids: Sequence[str]) -> str:
    return "id IN (" + ", ".join("'" + row_id.replace("'", "''") + "'" for row_id in ids) + ")"
