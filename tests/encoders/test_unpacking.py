"""The large model as a user has it: fetched once, kept, made again where it is damaged, told where it cannot be had."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evidex
from evidex.encoders import unpacking
from evidex.encoders.shipped import MODELS, known_models
from evidex.encoders.unpacking import whole_model
from evidex.errors import ModelError
from evidex.weights import bases
from evidex.weights.bases import BASES, digest_of
from evidex.weights.packing import Packed, Tensors, read_packed, unpacked_tensors
from tests.encoders.tiny_large import Tiny, make_tiny


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    return make_tiny(tmp_path, monkeypatch)


def test_the_large_model_is_the_one_that_was_packed_and_needs_its_base_once(tiny: Tiny) -> None:
    large = evidex.load_model("large", device="cpu")
    texts = ["many planes", "a river"]
    np.testing.assert_allclose(large.encode_texts(texts), tiny.model.encode_texts(texts), atol=0.02)
    tiny.take_away()
    again = evidex.load_model("large", device="cpu")
    assert again.fingerprint == large.fingerprint
    np.testing.assert_array_equal(again.encode_texts(texts), large.encode_texts(texts))


def test_a_packed_file_is_loaded_by_its_path_too(tiny: Tiny) -> None:
    assert evidex.load_model(tiny.packed, device="cpu").fingerprint == evidex.load_model("large").fingerprint


def test_a_damaged_copy_in_the_cache_is_made_again(tiny: Tiny) -> None:
    fingerprint = evidex.load_model("large", device="cpu").fingerprint
    (whole,) = (tiny.cache / "models").iterdir()
    content = bytearray(whole.read_bytes())
    content[-8:] = bytes(8)
    for damaged in (content, content[:500], b""):
        whole.write_bytes(damaged)
        assert evidex.load_model("large", device="cpu").fingerprint == fingerprint


def test_without_a_network_one_line_says_what_to_bring_and_where(tiny: Tiny) -> None:
    kept = {path.name: path.read_bytes() for path in tiny.published.iterdir()}
    tiny.take_away()
    with pytest.raises(ModelError, match="needs tiny_image, which cannot be fetched") as told:
        evidex.load_model("large")
    place = Path(str(told.value).partition("into '")[2].partition("'")[0])
    place.mkdir(parents=True, exist_ok=True)
    (place / "tiny_image.safetensors").write_bytes(kept["tiny_image.safetensors"])
    with pytest.raises(ModelError, match="needs tiny_text"):
        evidex.load_model("large")


def test_what_was_brought_is_checked(tiny: Tiny) -> None:
    tiny.take_away()
    for ways in bases.BASES.values():
        place = tiny.cache / "downloads" / ways[0].source.folder
        place.mkdir(parents=True)
        (place / "file.safetensors").write_bytes(b"something else")
    with pytest.raises(ModelError, match="cannot be fetched"):
        evidex.load_model("large")


def test_a_download_that_is_not_the_pinned_one_is_refused(tiny: Tiny) -> None:
    for path in tiny.published.iterdir():
        path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(ModelError, match=r"has sha256 \w+, not \w+; the release changed"):
        evidex.load_model("large")
    assert not list((tiny.cache / "downloads").rglob("*.safetensors"))


def test_two_at_once_make_it_once(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def counted(packed: Packed, read_base: Any) -> Tensors:
        made.append(packed)
        return unpacked_tensors(packed, read_base)

    monkeypatch.setattr(unpacking, "unpacked_tensors", counted)
    paths: list[Path] = []
    threads = [threading.Thread(target=lambda: paths.append(whole_model(tiny.packed))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(made), len(set(paths)), len(paths)) == (1, 1, 3)


def test_a_difference_to_numbers_that_nobody_publishes_is_told(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bases, "BASES", {})
    with pytest.raises(ModelError, match=r"a difference to tiny_image \w+, unknown to this version; update evidex"):
        whole_model(tiny.packed)


def test_what_is_known_of_the_models_changes_when_one_is_fetched(tiny: Tiny) -> None:
    compact, large = known_models()
    assert (compact.name, compact.included, compact.here) == ("compact", False, False)
    assert (large.name, large.dim, large.here) == ("large", 16, False)
    assert (large.clean_rsum, large.noisy_rsum) == (181.25, 179.5)
    assert large.carried_bytes == tiny.packed.stat().st_size
    assert large.fetched_bytes == sum(path.stat().st_size for path in tiny.published.iterdir())
    assert "--model large fetches it" in large.remedy
    evidex.load_model("large")
    now = known_models()[1]
    assert (now.here, now.remedy) == (True, "")


def test_the_package_carries_no_model_larger_than_thirty_megabytes() -> None:
    sizes = {path.name: path.stat().st_size for path in MODELS.glob("*.safetensors")}
    assert {name: size for name, size in sizes.items() if size > 30_000_000} == {}


def test_a_carried_difference_is_one_to_numbers_that_can_be_fetched() -> None:
    found = [packed for path in MODELS.glob("*.safetensors") if (packed := read_packed(path)) is not None]
    for packed in found:
        for name, digest in packed.bases.values():
            assert digest in {way.digest for way in BASES[name]}


def test_the_digest_of_a_base_sees_names_shapes_types_and_numbers() -> None:
    one: dict[str, np.ndarray] = {"a": np.zeros((2, 3), np.float16), "b": np.ones(1, np.float32)}
    others: list[dict[str, np.ndarray]] = [
        {"a": one["a"]},
        {"c": one["a"], "b": one["b"]},
        {"a": one["a"].reshape(3, 2), "b": one["b"]},
        {"a": one["a"].astype(np.float32), "b": one["b"]},
        {"a": one["a"] + np.float16(1), "b": one["b"]},
    ]
    assert len({digest_of(each) for each in [one, *others]}) == 6
    assert digest_of(dict(reversed(one.items()))) == digest_of(one)
