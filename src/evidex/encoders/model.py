"""A trained model: an encoder with its temperature, in one safetensors file."""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from evidex.data.images import decode_image, to_rgb
from evidex.documents import is_file, is_folder, parse_json
from evidex.encoders.domain import Domain
from evidex.encoders.protocol import DualEncoder
from evidex.errors import ModelError
from evidex.files import write_atomic
from evidex.old_names import tensor_name
from evidex.progress import Progress, silent
from evidex.weights.shipped import DEFAULT, MODELS, NAMES, shipped_path
from evidex.weights.unpacking import whole_model

if TYPE_CHECKING:
    from PIL.Image import Image

    from evidex.encoders.inference import InferenceTowers

FORMAT = 2
_READABLE = (1, 2)
_DOMAIN = "domain/"  # before the names of tensors that are no weights
_MOST_LAYERS = 1024
# What building a network from a description that describes none raises.
_WRONG_DESCRIPTION = (
    ValueError, LookupError, TypeError, AttributeError, RuntimeError, ArithmeticError, AssertionError,
)  # fmt: skip
SHIPPED = MODELS / f"{DEFAULT}.safetensors"


class Model:
    """Images and texts in, unit rows out; what retrieval and evaluation need to know besides."""

    def __init__(
        self,
        encoder: DualEncoder,
        temperature: float,
        *,
        card: dict[str, Any] | None = None,
        domain: Domain | None = None,
    ) -> None:
        self.encoder = encoder.eval()
        self.temperature = temperature
        self.card = card or {}  # how the model came about and what it scored
        self.domain = domain  # which texts it can know about, where that was measured
        self._fingerprint: str | None = None
        self._inference: InferenceTowers | None = None

    def prepare_for_inference(self) -> None:
        """Encode with a faster form of the towers from now on, where there is one: for towers on a CPU.

        The encoder's weights must not change any more.
        """
        from evidex.encoders.inference import InferenceTowers
        from evidex.encoders.towers import TowerEncoder

        if isinstance(self.encoder, TowerEncoder) and self.encoder.device.type == "cpu":
            self._inference = InferenceTowers(self.encoder)

    @property
    def _running(self) -> DualEncoder | InferenceTowers:
        """The form of the encoder that encodes: the plain one where none was prepared or the encoder has moved."""
        if self._inference is None or self.encoder.device.type != "cpu":
            return self.encoder
        return self._inference

    @property
    def dim(self) -> int:
        return self.encoder.dim

    @property
    def fingerprint(self) -> str:
        """A digest of everything that shapes an embedding or its evidence; galleries carry it."""
        if self._fingerprint is None:
            self._fingerprint = _digest(self.encoder, self.temperature)
        return self._fingerprint

    def encode_images(
        self, images: Sequence[str | Path | Image], *, batch_size: int = 64, progress: Progress = silent
    ) -> np.ndarray:
        """Return one unit row (float32) for each image, given as a path or as a Pillow image of any size and mode."""
        rows = np.empty((len(images), self.dim), dtype=np.float32)
        for start in range(0, len(images), batch_size):
            part = images[start : start + batch_size]
            pixels = np.stack([self.encoder.prepare_image(_open(image)) for image in part])
            rows[start : start + len(part)] = self.encode_pixels(pixels, batch_size=batch_size)
            progress(start + len(part), len(images))
        return rows

    def encode_texts(self, texts: Sequence[str], *, batch_size: int = 256, progress: Progress = silent) -> np.ndarray:
        """Return one unit row (float32) for each text; equal texts get equal rows."""
        distinct = list(dict.fromkeys(texts))
        order = sorted(range(len(distinct)), key=lambda index: len(distinct[index]))  # little padding
        rows = np.empty((len(distinct), self.dim), dtype=np.float32)
        with torch.inference_mode():
            for start in range(0, len(order), batch_size):
                part = order[start : start + batch_size]
                tokens = self.encoder.tokenize([distinct[index] for index in part])
                moved = {name: ids.to(self.encoder.device) for name, ids in tokens.items()}
                rows[part] = self._running.text_features(moved).float().cpu().numpy()
                progress(start + len(part), len(distinct))
        where = {text: index for index, text in enumerate(distinct)}
        return rows[[where[text] for text in texts]]

    def reads_all(self, text: str) -> bool:
        """Whether the encoder takes the whole of ``text``: one word more would make a difference."""
        whole, longer = (self.encoder.tokenize([each])["input_ids"] for each in (text, f"{text} a"))
        return not torch.equal(whole, longer)

    def encode_pixels(
        self, pixels: np.ndarray | torch.Tensor, *, batch_size: int = 64, progress: Progress = silent
    ) -> np.ndarray:
        """Return unit rows for pictures that ``encoder.prepare_image`` made, (n, 3, s, s) uint8."""
        rows = np.empty((len(pixels), self.dim), dtype=np.float32)
        with torch.inference_mode():
            for start in range(0, len(pixels), batch_size):
                part = torch.as_tensor(
                    np.array(chunk) if isinstance(chunk := pixels[start : start + batch_size], np.ndarray) else chunk
                )
                rows[start : start + len(part)] = (
                    self._running.image_features(part.to(self.encoder.device)).float().cpu()
                )
                progress(start + len(part), len(pixels))
        return rows

    def save(self, path: Path, *, half: bool = False) -> None:
        """Write the model as one file; ``half`` stores the weights in float16."""
        from safetensors.torch import save

        stored = _halved(self) if half else self
        description = {
            "format": FORMAT,
            "spec": stored.encoder.spec(),
            "temperature": stored.temperature,
            "fingerprint": stored.fingerprint,
            "card": self.card,
        }
        weights = {name: value.contiguous().cpu() for name, value in stored.encoder.state_dict().items()}
        if half:
            weights = {name: value.half() if value.is_floating_point() else value for name, value in weights.items()}
        if self.domain is not None:
            weights |= _domain_tensors(self.domain)
        write_atomic(path, save(weights, {"evidex": json.dumps(description, allow_nan=False)}))


def _halved(model: Model) -> Model:
    """Return a copy with the weights that half precision keeps, so that its fingerprint is that of what is stored."""
    encoder = copy.deepcopy(model.encoder).cpu()
    encoder.load_state_dict(
        {name: v.half().to(v.dtype) if v.is_floating_point() else v for name, v in encoder.state_dict().items()}
    )
    return Model(encoder, model.temperature)


def load_model(name_or_path: str | Path | None = None, *, device: str | None = None) -> Model:
    """Return the model in the file or run folder ``name_or_path``; without one, the compact model of evidex.

    ``compact`` names that model too, and ``large`` the larger one, whose published base is fetched the first time. A
    Hugging Face folder or hub name gives CLIP as it is there.
    """
    if name_or_path is None or str(name_or_path) in NAMES:
        path = shipped_path(str(name_or_path or DEFAULT))
    elif not str(name_or_path).strip():
        raise ModelError("the name of the model is empty; give a file, a run's folder or a hub name")
    else:
        path = Path(name_or_path)
    if is_folder(path) and not is_file(path / "config.json") and is_file(path / "model.safetensors"):
        path = path / "model.safetensors"  # a run's folder; Hugging Face's has a config.json
    if is_file(path):
        model = _read_whole(path)
    elif is_folder(path) and not is_file(path / "config.json"):
        raise ModelError(
            f"'{name_or_path}' holds no model: neither a run's model.safetensors nor a config.json of Hugging Face; "
            "train one with 'evidex train'"
        )
    elif is_folder(path) or "/" in str(name_or_path):
        from evidex.encoders.clip.encoder import ClipEncoder

        clip = ClipEncoder.from_pretrained(str(name_or_path))
        model = Model(clip, clip.native_temperature)
    else:
        raise ModelError(f"'{name_or_path}' is no model: no such file or folder; train one with 'evidex train'")
    target = device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        if torch.device(target).type == "meta":
            raise AssertionError("a device without memory")
        model.encoder.to(target)
    except (RuntimeError, AssertionError, NotImplementedError):  # the middle one where torch was built without it
        raise ModelError(f"device '{target}' is not to be had here; use cpu, or leave it out") from None
    model.prepare_for_inference()
    return model


def holds_model(path: Path) -> bool:
    """Tell whether ``path`` is a whole evidex model, and not the weights of a tower or a mentor's features."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as stream:
            description = parse_json((stream.metadata() or {}).get("evidex", "{}"))
    except (SafetensorError, OSError, ValueError):
        return False
    return isinstance(description, dict) and "spec" in description


def build_encoder(spec: dict[str, Any]) -> DualEncoder:
    """Return the encoder that ``spec`` describes, its weights random."""
    kind = spec.get("kind")
    if kind == "towers":
        from evidex.encoders.towers import TowerEncoder

        return TowerEncoder(spec)
    if kind == "clip":
        from evidex.encoders.clip.encoder import ClipEncoder

        return ClipEncoder.from_spec(spec)
    if kind == "committee":
        from evidex.encoders.committee import CommitteeEncoder

        return CommitteeEncoder.from_spec(spec)
    raise ModelError(f"encoder kind '{kind}' is unknown to this version; update evidex")


def _read_whole(path: Path) -> Model:
    """Read a model that may be packed; a copy in the cache that is damaged is made again."""
    whole = whole_model(path)
    try:
        return _read(whole)
    except ModelError:
        if whole == path:
            raise
    whole.unlink(missing_ok=True)
    return _read(whole_model(path))


def _read(path: Path) -> Model:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as stream:
            metadata = (stream.metadata() or {}).get("evidex")
            if metadata is None:
                raise ModelError(f"'{path}' holds weights but no evidex model; train one with 'evidex train'")
            description = _checked(parse_json(metadata), path)
            stored = {tensor_name(name): name for name in stream.keys()}  # noqa: SIM118
            shapes = {name: tuple(stream.get_slice(stored[name]).get_shape()) for name in stored}
            _check_shapes(description["spec"], shapes, path)
            encoder = build_encoder(description["spec"])
            weights = {name: stream.get_tensor(stored[name]) for name in stored}
            domain = _take_domain(weights, encoder.dim)
    except (SafetensorError, OSError, MemoryError, *_WRONG_DESCRIPTION) as error:
        cause = str(error).partition("\n")[0]
        raise ModelError(f"'{path}' is no readable model ({cause}); fetch or train it again") from None
    state = encoder.state_dict()
    encoder.load_state_dict({name: value.to(state[name].dtype) for name, value in weights.items()})
    model = Model(encoder, description["temperature"], card=description.get("card"), domain=domain)
    if model.fingerprint != description["fingerprint"]:
        raise ModelError(f"'{path}': the weights are not those that were saved; fetch or train it again")
    return model


def _domain_tensors(known: Domain) -> dict[str, torch.Tensor]:
    words = np.frombuffer("\n".join(sorted(known.words)).encode(), np.uint8)
    parts: dict[str, np.ndarray] = {
        "words": words, "mean": known.mean, "directions": known.directions, "lengths": known.lengths,
    }  # fmt: skip
    if known.matches is not None:
        parts["matches"] = known.matches
    return {f"{_DOMAIN}{name}": torch.from_numpy(value.copy()) for name, value in parts.items()}


def _take_domain(weights: dict[str, torch.Tensor], dim: int) -> Domain | None:
    """Take what is no weight out of ``weights``; ValueError, KeyError or TypeError if it is not whole."""
    parts = {name: weights.pop(name).numpy() for name in list(weights) if name.startswith(_DOMAIN)}
    if not parts:
        return None
    words, mean, directions, lengths = (
        parts[f"{_DOMAIN}{name}"] for name in ("words", "mean", "directions", "lengths")
    )
    if len(mean) != dim:
        raise ValueError(f"the domain is of {len(mean)} dimensions, not {dim}")
    matches = parts.get(f"{_DOMAIN}matches")
    return Domain(frozenset(words.tobytes().decode().split("\n")), mean, directions, lengths, matches)


def _checked(description: Any, path: Path) -> dict[str, Any]:
    """Return the header's description if it is whole."""
    if not isinstance(description, dict) or description.get("format") not in _READABLE:
        found = description.get("format") if isinstance(description, dict) else None
        raise ModelError(f"'{path}' has model format {found}, this version reads {FORMAT}; update evidex")
    temperature = description.get("temperature")
    if not isinstance(temperature, float) or not (math.isfinite(temperature) and temperature > 0):
        raise ModelError(f"'{path}' has temperature {temperature!r}, no positive number; the file is damaged")
    if not isinstance(description.get("spec"), dict) or not isinstance(description.get("fingerprint"), str):
        raise ModelError(f"'{path}' lacks its architecture or fingerprint; the file is damaged")
    if not isinstance(description.get("card", {}), dict):
        raise ModelError(f"'{path}' has a card that is none; the file is damaged")
    _check_layers(description["spec"], path)
    return description


def _check_layers(part: dict[str, Any], path: Path) -> None:
    """Refuse more layers than any model has: even without weights they take their time."""
    for key, value in part.items():
        if isinstance(value, dict):
            _check_layers(value, path)
        elif key.endswith("layers") and isinstance(value, (int, float)) and not value <= _MOST_LAYERS:
            raise ModelError(f"'{path}' has {value} {key}, more than any model; the file is damaged")


def _check_shapes(spec: dict[str, Any], found: dict[str, tuple[int, ...]], path: Path) -> None:
    """Compare the description with the weights before anything of the described size is made: a number may be wrong."""
    with torch.device("meta"):
        expected = {name: tuple(value.shape) for name, value in build_encoder(spec).state_dict().items()}
    weights = {name: shape for name, shape in found.items() if not name.startswith(_DOMAIN)}
    wrong = [name for name in sorted({*expected, *weights}) if expected.get(name) != weights.get(name)]
    if wrong:
        raise ModelError(f"'{path}': weights do not fit the architecture (first difference: '{wrong[0]}')")


def _digest(encoder: DualEncoder, temperature: float) -> str:
    digest = hashlib.sha256(json.dumps([encoder.spec(), temperature], sort_keys=True).encode())
    for name, value in sorted(encoder.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _open(image: str | Path | Image) -> Image:
    return decode_image(image) if isinstance(image, (str, Path)) else to_rgb(image)
