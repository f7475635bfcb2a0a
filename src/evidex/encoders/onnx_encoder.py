"""A model's two towers, run by ONNX Runtime: what searching and indexing encode with."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from evidex.encoders.graphs.graph import Floats, Stored
from evidex.encoders.graphs.towers import graphs_of
from evidex.encoders.inputs import inputs_of
from evidex.encoders.rounding import RoundedTensor
from evidex.encoders.runtime import Device, Session, exact_in_bytes

if TYPE_CHECKING:
    from PIL.Image import Image


class OnnxEncoder:
    """The encoder that ``spec`` describes with the weights ``stored``; a tower is loaded when it is first asked.

    ``rounded`` lets a large image tower multiply in bytes (see graphs/rounded.py), on a CPU about twice as fast. A text
    tower that is stored in bytes is run so where that is exact (graphs/exact_bytes.py).
    A row depends on its own picture or text alone: on a CPU it is the same to the last bit in any batch.
    """

    def __init__(self, spec: dict[str, Any], stored: Stored, device: Device = "cpu", *, rounded: bool = False) -> None:
        self._spec, self._stored, self._device = spec, stored, device
        self._inputs = inputs_of(spec)
        in_bytes = any(isinstance(each, RoundedTensor) for each in stored.values()) and device == "cpu"
        self._graphs = graphs_of(spec, stored, rounded=rounded, in_bytes=in_bytes and exact_in_bytes())
        self._sessions: dict[str, Session] = {}
        self.tokenizer = self._inputs.tokenizer
        self.dim = self._inputs.dim
        self.image_size = self._inputs.image_size

    def prepare_image(self, image: Image) -> np.ndarray:
        return self._inputs.prepare_image(image)

    def embed_pixels(self, pixels: Any) -> Floats:
        if not len(pixels):
            return np.empty((0, self.dim), np.float32)
        return self._session("image").run("pixels", [np.ascontiguousarray(pixels, dtype=np.uint8)])

    def embed_texts(self, texts: Sequence[str]) -> Floats:
        if len(texts) == 1:  # a question, which should not wait for the sorting of one
            return self._session("text").run("input_ids", [np.array([self.tokenizer.encode(texts[0])], np.int64)])
        rows = np.empty((len(texts), self.dim), np.float32)
        if not texts:
            return rows
        ids = [self.tokenizer.encode(text) for text in texts]
        order = sorted(range(len(ids)), key=lambda place: len(ids[place]))
        alike = [list(places) for _, places in groupby(order, key=lambda place: len(ids[place]))]
        groups = [np.array([ids[place] for place in places], np.int64) for places in alike]
        rows[order] = self._session("text").run("input_ids", groups)
        return rows

    def reads_all(self, text: str) -> bool:
        encode = self.tokenizer.encode
        return encode(text) != encode(f"{text} a")

    def spec(self) -> dict[str, Any]:
        return self._spec

    def weights(self) -> Stored:
        return self._stored

    def eval(self) -> OnnxEncoder:
        return self

    def _session(self, tower: str) -> Session:
        if tower not in self._sessions:
            small = tower == "text" and self._spec["kind"] == "towers"  # CLIP's own is four times as much work
            self._sessions[tower] = Session(getattr(self._graphs, tower), self._device, small=small)
        return self._sessions[tower]
