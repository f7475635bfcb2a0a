"""A split as features, and features as similarities in which equal things score exactly equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evidex.data.object_graphs import graphs_of
from evidex.errors import InputError
from evidex.progress import Progress, silent

if TYPE_CHECKING:
    from PIL.Image import Image

_IMAGES_IN_MEMORY = 256

Compare = Callable[[NDArray[np.float32], NDArray[np.float32]], NDArray[np.float32]]
"""Rows of images and rows of captions in, their similarities (images, captions) out."""


def inner_product(images: NDArray[np.float32], texts: NDArray[np.float32]) -> NDArray[np.float32]:
    return images @ texts.T


class EvaluatedModel(Protocol):
    """What the evaluation asks of a model."""

    @property
    def temperature(self) -> float: ...

    @property
    def fingerprint(self) -> str: ...

    def encode_images(
        self, images: Sequence[Any], *, batch_size: int = 64, progress: Progress = silent
    ) -> NDArray[np.float32]: ...

    def encode_texts(
        self, texts: Sequence[str], *, batch_size: int = 64, progress: Progress = silent
    ) -> NDArray[np.float32]: ...


class Images(Protocol):
    """Pictures that are opened one at a time."""

    def __len__(self) -> int: ...

    def open_image(self, index: int) -> Image: ...


class Split(Images, Protocol):
    """Pictures with captions: a dataset, or one half of which is degraded."""

    @property
    def captions(self) -> list[str]: ...

    @property
    def image_of_caption(self) -> NDArray[np.int64]: ...


@dataclass(frozen=True, eq=False)
class Encoded:
    """A split as unit features, with what the measurements need to know of it."""

    images: NDArray[np.float32]
    texts: NDArray[np.float32]
    image_of_caption: NDArray[np.int64]
    degraded_images: NDArray[np.bool_] | None = None
    degraded_captions: NDArray[np.bool_] | None = None
    compare: Compare = inner_product


@dataclass(frozen=True, eq=False)
class Matching:
    """Similarity of every image to every caption, with numbers that tell equal items."""

    similarity: NDArray[np.float32]
    image_identity: NDArray[np.int64]
    text_identity: NDArray[np.int64]


def match(
    image_features: NDArray[np.float32], text_features: NDArray[np.float32], compare: Compare = inner_product
) -> Matching:
    """Similarities (images, captions) in which equal features have bit-equal rows and columns.

    A matrix product may round two equal columns differently, depending on where in a block they fall, and would so
    break ties that recall has to see. Every distinct pair is therefore computed once.
    """
    if image_features.ndim != 2 or text_features.ndim != 2 or image_features.shape[1] != text_features.shape[1]:
        raise InputError(
            f"image features {image_features.shape} and text features {text_features.shape} do not fit; "
            "pass two matrices of equal width"
        )
    first_image, image_identity = _distinct_rows(image_features)
    first_text, text_identity = _distinct_rows(text_features)
    product = compare(image_features[first_image], text_features[first_text])
    return Matching(product[image_identity][:, text_identity], image_identity, text_identity)


def compare_of(model: object) -> Compare:
    """How ``model`` compares its rows: as its method says, or by inner product."""
    return getattr(model, "similarity", inner_product)


def encode_texts(
    model: EvaluatedModel, texts: Sequence[str], *, batch_size: int = 64, progress: Progress = silent
) -> NDArray[np.float32]:
    """Features of ``texts`` where each distinct text is encoded once, so that equal texts get equal features.

    An encoder's rounding depends on the batch a text falls into (padding, block sizes).
    """
    number = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    if not number:
        raise InputError("there are no texts to encode; give at least one")
    features = model.encode_texts(list(number), batch_size=batch_size, progress=progress)
    return features[[number[text] for text in texts]]


def encode_images(
    model: EvaluatedModel,
    images: Images,
    indices: Sequence[int] | None = None,
    *,
    batch_size: int = 64,
    progress: Progress = silent,
) -> NDArray[np.float32]:
    """Features of ``images`` (those at ``indices``), with a few hundred decoded pictures in memory at a time."""
    wanted = range(len(images)) if indices is None else indices
    if not len(wanted):
        raise InputError("there are no images to encode; give at least one")
    graphs = graphs_for(model, images)
    parts = []
    for start in range(0, len(wanted), _IMAGES_IN_MEMORY):
        places = [int(i) for i in wanted[start : start + _IMAGES_IN_MEMORY]]
        known: dict[str, Any] = {} if graphs is None else {"graphs": graphs[places]}
        parts.append(model.encode_images([images.open_image(i) for i in places], batch_size=batch_size, **known))
        progress(start + len(places), len(wanted))
    return np.concatenate(parts)


def graphs_for(model: object, images: Any) -> NDArray[np.float32] | None:
    """The graphs of the objects in all of ``images``, if ``model`` looks at them."""
    return graphs_of(images.records) if getattr(model, "object_graphs", False) else None


def _distinct_rows(features: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Index of the first row of each distinct value, and for every row the number of its value."""
    rows = np.ascontiguousarray(features)
    whole = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    _, first, identity = np.unique(whole, return_index=True, return_inverse=True)
    return first.astype(np.int64), identity.astype(np.int64)
