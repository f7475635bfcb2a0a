"""A tower as ONNX Runtime runs it: one item with all cores, several with one each, the same bits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from evidex.encoders.graphs.graph import Graph
from evidex.encoders.model import load_model
from evidex.encoders.onnx_encoder import OnnxEncoder
from evidex.encoders.runtime import Session


def test_one_alone_and_several_together_have_the_same_bits_on_any_number_of_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = ["ships", "a river", "many planes are parked near a terminal", "two rivers", "a green forest beside a lake"]
    pixels = np.random.default_rng(0).integers(0, 256, (3, 3, 192, 192), dtype=np.uint8)
    found = []
    for cores in ("1", "2", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", cores)
        encoder = load_model(device="cpu").encoder
        assert isinstance(encoder, OnnxEncoder)
        found.append(encoder.embed_texts(texts))
        found.append(np.concatenate([encoder.embed_texts([text]) for text in texts]))
        images = encoder.embed_pixels(pixels)
        assert np.array_equal(images, np.concatenate([encoder.embed_pixels(each[None]) for each in pixels]))
    assert all(np.array_equal(rows, found[0]) for rows in found)
    assert load_model(device="cpu").encoder.embed_texts([]).shape == (0, 512)


def test_a_text_alone_and_several_share_one_loaded_tower(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search asks one and several: a second tower would cost its time to load and its memory."""
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    encoder = load_model(device="cpu").encoder
    assert isinstance(encoder, OnnxEncoder)
    encoder.embed_texts(["ships"])
    encoder.embed_texts(["a ship", "ships", "many ships"])
    assert len(encoder._session("text")._made) == 1


class _Remembered:
    """A graph, and every array that was given along with it."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.given: list[NDArray[Any]] = []
        self.to_bytes = graph.to_bytes

    def weights(self) -> Iterator[tuple[str, NDArray[Any]]]:
        for name, values in self._graph.weights():
            self.given.append(np.array(values))
            yield name, self.given[-1]


@pytest.mark.parametrize("tower", ["image", "text"])
def test_a_loaded_tower_does_not_read_the_weights_it_was_given_any_more(tower: str) -> None:
    """Else they would have to be kept for as long as it runs, twenty megabytes each."""
    encoder = load_model(device="cpu").encoder
    assert isinstance(encoder, OnnxEncoder)
    graph = _Remembered(getattr(encoder._graphs, tower))
    session = Session(graph, "cpu")  # type: ignore[arg-type]
    shape, name, kind = ((1, 3, 192, 192), "pixels", np.uint8) if tower == "image" else ((1, 9), "input_ids", np.int64)
    item = np.random.default_rng(0).integers(0, 100, shape, dtype=kind)
    before = session.run(name, [item])
    for values in graph.given:
        values[...] = 0
    assert np.array_equal(session.run(name, [item]), before)
