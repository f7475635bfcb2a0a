"""A trained model: an encoder with its temperature, in one safetensors file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from evidex.data.images import ENOUGH_TO_ENCODE, decode_image, to_rgb
from evidex.documents import is_file, is_folder
from evidex.encoders.domain import Domain
from evidex.encoders.encoder import Encoder
from evidex.encoders.engines import Chosen, EngineName, choose
from evidex.encoders.model_file import StoredModel, fingerprint_of, halved, read_model_file, write_model_file
from evidex.encoders.rounding import RoundedTensor, still_rounded, with_text_in_bytes
from evidex.encoders.shipped import DEFAULT, MODELS, NAMES, shipped_path
from evidex.encoders.unpacking import whole_model
from evidex.errors import MissingPackageError, ModelError
from evidex.progress import Progress, silent

if TYPE_CHECKING:
    from PIL.Image import Image

# What building a network from a description that describes none raises.
_WRONG_DESCRIPTION = (
    ValueError, LookupError, TypeError, AttributeError, RuntimeError, ArithmeticError, AssertionError,
)  # fmt: skip
SHIPPED = MODELS / f"{DEFAULT}.safetensors"


class Model:
    """Images and texts in, unit rows out; what retrieval and evaluation need to know besides."""

    def __init__(
        self,
        encoder: Encoder,
        temperature: float,
        *,
        card: dict[str, Any] | None = None,
        domain: Domain | None = None,
    ) -> None:
        self.encoder: Encoder = encoder.eval()
        self.temperature = temperature
        self.card = card or {}  # how the model came about and what it scored
        self.domain = domain  # which texts it can know about, where that was measured
        self._fingerprint: str | None = None
        self._in_bytes: dict[str, RoundedTensor] = {}  # weights that its file has in bytes

    @property
    def dim(self) -> int:
        return self.encoder.dim

    @property
    def fingerprint(self) -> str:
        """A digest of everything that shapes an embedding or its evidence; galleries carry it."""
        if self._fingerprint is None:
            self._fingerprint = fingerprint_of(self.encoder.spec(), self.temperature, self.encoder.weights())
        return self._fingerprint

    def encode_images(
        self,
        images: Sequence[str | Path | Image],
        *,
        batch_size: int = 64,
        progress: Progress = silent,
        graphs: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return one unit row (float32) for each image, given as a path or as a Pillow image of any size and mode.

        ``graphs`` are those of the images' objects, for a model that looks at them (`object_graphs`).
        """
        rows = np.empty((len(images), self.dim), dtype=np.float32)
        for start in range(0, len(images), batch_size):
            part = images[start : start + batch_size]
            pixels = np.stack([self.encoder.prepare_image(_open(image)) for image in part])
            known = None if graphs is None else graphs[start : start + len(part)]
            rows[start : start + len(part)] = self.encode_pixels(pixels, batch_size=batch_size, graphs=known)
            progress(start + len(part), len(images))
        return rows

    def encode_texts(self, texts: Sequence[str], *, batch_size: int = 256, progress: Progress = silent) -> np.ndarray:
        """Return one unit row (float32) for each text; equal texts get equal rows."""
        if len(texts) == 1:
            row = np.asarray(self.encoder.embed_texts(texts), np.float32)
            progress(1, 1)
            return row
        distinct = list(dict.fromkeys(texts))
        order = sorted(range(len(distinct)), key=lambda index: len(distinct[index]))  # little padding
        rows = np.empty((len(distinct), self.dim), dtype=np.float32)
        for start in range(0, len(order), batch_size):
            part = order[start : start + batch_size]
            rows[part] = self.encoder.embed_texts([distinct[index] for index in part])
            progress(start + len(part), len(distinct))
        where = {text: index for index, text in enumerate(distinct)}
        return rows[[where[text] for text in texts]]

    @property
    def inner_product(self) -> bool:
        """Whether rows are compared by inner product, as a gallery does it."""
        return bool(getattr(self.encoder, "inner_product", True))

    @property
    def object_graphs(self) -> bool:
        """Whether it looks at the graph of a picture's objects besides its pixels."""
        return bool(getattr(self.encoder, "object_graphs", False))

    def check_inner_product(self) -> None:
        if not self.inner_product:
            raise ModelError("this model compares pictures and texts pair by pair; a gallery needs one without that")
        if self.object_graphs:
            raise ModelError("this model looks at a detector's objects too; a gallery needs one for pixels alone")

    def similarity(self, images: np.ndarray, texts: np.ndarray) -> np.ndarray:
        """Compare rows of pictures with rows of texts as the model's method does it, (images, texts) float32."""
        if self.inner_product:
            return np.asarray(images @ texts.T, np.float32)
        compared: np.ndarray = self.encoder.compare_rows(images, texts)  # type: ignore[attr-defined]
        return compared

    def own_uncertainty(self, rows: np.ndarray, modality: Literal["image", "text"]) -> np.ndarray | None:
        """How unsure the model's method says it is of each query; None where it has no such measure."""
        doubt = getattr(self.encoder, "doubt", None)
        return None if doubt is None else doubt(rows, modality)

    def reads_all(self, text: str) -> bool:
        """Whether the encoder takes the whole of ``text``: one word more would make a difference."""
        return self.encoder.reads_all(text)

    def reranked(self, scores: np.ndarray) -> np.ndarray | None:
        """Similarities (queries, answers) as the model's method ranks them again; None where it does not."""
        again = getattr(self.encoder, "reranked", None)
        return None if again is None else again(scores)

    def encode_pixels(
        self, pixels: Any, *, batch_size: int = 64, progress: Progress = silent, graphs: np.ndarray | None = None
    ) -> np.ndarray:
        """Return unit rows for pictures that ``encoder.prepare_image`` made, (n, 3, s, s) uint8, numpy's or torch's."""
        rows = np.empty((len(pixels), self.dim), dtype=np.float32)
        for start in range(0, len(pixels), batch_size):
            part = pixels[start : start + batch_size]
            if graphs is None:
                rows[start : start + len(part)] = self.encoder.embed_pixels(part)
            else:
                known = graphs[start : start + len(part)]
                rows[start : start + len(part)] = self.encoder.embed_with(part, known)  # type: ignore[attr-defined]
            progress(start + len(part), len(pixels))
        return rows

    def save(self, path: Path, *, half: bool = False, text_in_bytes: bool = False) -> None:
        """Write the model as one file; ``half`` stores the weights in float16.

        ``text_in_bytes`` rounds the text tower's layers: texts are faster, and the model is another one.
        """
        spec, weights = self.encoder.spec(), still_rounded(self.encoder.weights(), self._in_bytes)
        if text_in_bytes:
            weights = with_text_in_bytes(weights)
        if half:
            weights = halved(weights)
        fingerprint = fingerprint_of(spec, self.temperature, weights)
        stored = StoredModel(spec, self.temperature, fingerprint, self.card, weights, self.domain)
        write_model_file(path, stored)


def load_model(
    name_or_path: str | Path | None = None, *, device: str | None = None, engine: EngineName | None = None
) -> Model:
    """Return the model in the file or run folder ``name_or_path``; without one, the compact model of evidex.

    ``compact`` names that model too, and ``large`` the larger one, whose published base is fetched the first time. A
    Hugging Face folder or hub name gives CLIP as it is there. ONNX Runtime runs it unless ``engine`` says "torch":
    then ``encoder`` is torch's module.
    """
    if name_or_path is None or str(name_or_path) in NAMES:
        path = shipped_path(str(name_or_path or DEFAULT))
    elif not str(name_or_path).strip():
        raise ModelError("the name of the model is empty; give a file, a run's folder or a hub name")
    else:
        path = Path(name_or_path)
    if is_folder(path) and not is_file(path / "config.json") and is_file(path / "model.safetensors"):
        path = path / "model.safetensors"  # a run's folder; Hugging Face's has a config.json
    if is_file(path) and path.suffix in (".pt", ".pth", ".bin"):
        raise ModelError(f"'{path}' comes without a tokenizer; name any CLIP's folder or hub name with --tokenizer")
    if is_file(path):
        return _read_whole(path, device, engine)
    if is_folder(path) and not is_file(path / "config.json"):
        raise ModelError(
            f"'{name_or_path}' holds no model: neither a run's model.safetensors nor a config.json of Hugging Face; "
            "train one with 'evidex train'"
        )
    if is_folder(path) or "/" in str(name_or_path):
        return _clip(str(name_or_path), device)
    raise ModelError(f"'{name_or_path}' is no model: no such file or folder; train one with 'evidex train'")


def _clip(name: str, device: str | None) -> Model:
    try:
        from evidex.encoders.clip.encoder import ClipEncoder
        from evidex.encoders.torch_engine import moved
    except ModuleNotFoundError as error:
        what = f"'{name}', a CLIP as Hugging Face keeps it and no file of 'evidex export',"
        raise MissingPackageError(what, str(error.name)) from None
    clip = ClipEncoder.from_pretrained(name)
    return Model(moved(clip, choose("clip", device, "torch").device), clip.native_temperature)


def _read_whole(path: Path, device: str | None, engine: EngineName | None) -> Model:
    """Read a model that may be packed; a copy in the cache that is damaged is made again."""
    whole = whole_model(path)
    try:
        return _read(whole, device, engine)
    except ModelError:
        if whole == path:
            raise
    whole.unlink(missing_ok=True)
    return _read(whole_model(path), device, engine)


def _read(path: Path, device: str | None, engine: EngineName | None) -> Model:
    from safetensors import SafetensorError

    try:
        stored = read_model_file(path)
        chosen = choose(stored.spec["kind"], device, engine)
        encoder = _encoder(stored, chosen)
        known = stored.domain
        if known is not None and len(known.mean) != encoder.dim:
            raise ValueError(f"the domain is of {len(known.mean)} dimensions, not {encoder.dim}")
        model = Model(encoder, stored.temperature, card=stored.card, domain=known)
        sound = stored.checked or model.fingerprint == stored.fingerprint
    except (SafetensorError, OSError, MemoryError, *_WRONG_DESCRIPTION) as error:
        cause = str(error).partition("\n")[0]
        raise ModelError(f"'{path}' is no readable model ({cause}); fetch or train it again") from None
    if not sound:
        raise ModelError(f"'{path}': the weights are not those that were saved; fetch or train it again")
    model._fingerprint = stored.fingerprint
    model._in_bytes = {name: each for name, each in stored.weights.items() if isinstance(each, RoundedTensor)}
    return model


def _encoder(stored: StoredModel, chosen: Chosen) -> Encoder:
    if chosen.engine == "onnx":
        from evidex.encoders.onnx_encoder import OnnxEncoder

        on_card = chosen.device == "cuda"
        return OnnxEncoder(stored.spec, stored.weights, "cuda" if on_card else "cpu", rounded=not on_card)
    from evidex.encoders.torch_engine import moved, torch_encoder

    return moved(torch_encoder(stored.spec, stored.weights), chosen.device)


def _open(image: str | Path | Image) -> Image:
    return decode_image(image, at_least=ENOUGH_TO_ENCODE) if isinstance(image, (str, Path)) else to_rgb(image)
