"""Refinement changes queries only: the gallery that they are asked of stays as it is."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from PIL import Image

from evidex.data.datasets import Dataset, load_dataset
from evidex.evaluation.deferral import GateName, Refinements, refine_and_rank
from evidex.evaluation.features import Encoded, encode_images, encode_texts
from evidex.evaluation.query_uncertainty import Scores, uncertainty_scores
from evidex.evaluation.result import Deferral
from tests.evaluation.colours import ColourModel, write_colours


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return load_dataset(write_colours(tmp_path_factory.mktemp("colours")), "val")


@dataclass(frozen=True)
class _Recoloured:
    """Asks for green instead of red, blue instead of green and red instead of blue, in queries of the one kind."""

    kind: str

    def texts(self, text: str, rng: np.random.Generator) -> list[str]:
        assert rng
        other = {"red": "green", "green": "blue", "blue": "red"}
        changed = " ".join(other.get(word, word) for word in text.split())
        return [changed] * 40 if self.kind == "text" else []

    def images(self, image: Image.Image, rng: np.random.Generator) -> list[Image.Image]:
        assert rng
        red, green, blue = image.split()
        return [Image.merge("RGB", (blue, red, green))] * 40 if self.kind == "image" else []


def _scores(queries: np.ndarray, gallery: np.ndarray) -> Scores:
    return uncertainty_scores(queries @ gallery.T, 0.1)


def _refined(dataset: Dataset, kind: str) -> tuple[Deferral, Deferral]:
    model = ColourModel()
    encoded = Encoded(encode_images(model, dataset), encode_texts(model, dataset.captions), dataset.image_of_caption)
    none, whole = refine_and_rank(
        model,
        dataset,
        encoded,
        Refinements((0.0, 1.0), _Recoloured(kind)),
        image_scores=_scores(encoded.images, encoded.texts),
        text_scores=_scores(encoded.texts, encoded.images),
    )
    return none, whole


def test_refined_images_are_no_gallery_of_text_queries(dataset: Dataset) -> None:
    none, whole = _refined(dataset, "image")
    assert whole.image_queries == 24
    assert whole.recall.t2i == none.recall.t2i
    assert whole.recall.i2t[10] < none.recall.i2t[10] - 20


def test_refined_texts_are_no_gallery_of_image_queries(dataset: Dataset) -> None:
    none, whole = _refined(dataset, "text")
    assert whole.text_queries == 72
    assert whole.recall.i2t == none.recall.i2t
    assert whole.recall.t2i[10] < none.recall.t2i[10] - 20


def test_the_uncertainty_that_is_named_chooses_the_queries(dataset: Dataset) -> None:
    model = ColourModel()
    encoded = Encoded(encode_images(model, dataset), encode_texts(model, dataset.captions), dataset.image_of_caption)
    chosen: list[list[int]] = []

    class _Watched(_Recoloured):
        def images(self, image: Image.Image, rng: np.random.Generator) -> list[Image.Image]:
            chosen[-1].append(image.tobytes().__hash__())
            return super().images(image, rng)

    # Every other picture is unsure by vacuity, the rest by belief.
    even = np.arange(len(encoded.images)) % 2 == 0
    scores = replace(_scores(encoded.images, encoded.texts), vacuity=1.0 * even, belief=1.0 * ~even)
    found: list[Deferral] = []
    names: tuple[GateName, ...] = ("vacuity", "belief")
    for by in names:
        chosen.append([])
        asked = Refinements((0.5,), _Watched("image"), by=by)
        texts = _scores(encoded.texts, encoded.images)
        found += refine_and_rank(model, dataset, encoded, asked, image_scores=scores, text_scores=texts)
    pictures = [dataset.open_image(i).convert("RGB").tobytes().__hash__() for i in range(len(dataset))]
    assert sorted(chosen[0]) == sorted(p for p, is_even in zip(pictures, even, strict=True) if is_even)
    assert sorted(chosen[1]) == sorted(p for p, is_even in zip(pictures, even, strict=True) if not is_even)
    assert [step.to_json()["by"] for step in found] == ["vacuity", "belief"]
