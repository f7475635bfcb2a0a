"""Which engine runs a model, told from what is installed and what the machine has."""

from __future__ import annotations

import pytest

from evidex.encoders import engines, runtime
from evidex.encoders.engines import Chosen, choose
from evidex.errors import MissingPackageError, ModelError

PLAIN = {"onnxruntime"}
TRAINING = {"onnxruntime", "torch"}


def _machine(
    monkeypatch: pytest.MonkeyPatch, installed: set[str], *, card: bool = False, provider: bool = False
) -> None:
    """``card``: of NVIDIA's, which torch can use where it is; ``provider``: ONNX Runtime can, too."""
    monkeypatch.setattr(engines, "_installed", lambda package: package in installed)
    monkeypatch.setattr(engines, "has_card", lambda: card)
    monkeypatch.setattr(engines, "_torch_has_cuda", lambda: card and "torch" in installed)
    monkeypatch.setattr(runtime, "has_cuda", lambda: provider)


@pytest.mark.parametrize("installed", [PLAIN, TRAINING])
def test_without_a_card_it_is_onnx_runtime_and_torch_is_not_even_imported(
    monkeypatch: pytest.MonkeyPatch, installed: set[str]
) -> None:
    _machine(monkeypatch, installed)

    def imported() -> bool:
        raise AssertionError("torch would be imported")

    monkeypatch.setattr(engines, "_torch_has_cuda", imported)
    assert choose("towers", None) == choose("clip", "cpu") == Chosen("onnx", "cpu")


def test_a_card_is_used_by_whichever_engine_can(monkeypatch: pytest.MonkeyPatch) -> None:
    _machine(monkeypatch, TRAINING, card=True)
    assert choose("towers", None) == choose("towers", "cuda") == Chosen("torch", "cuda")
    assert choose("towers", "cpu") == Chosen("onnx", "cpu")
    _machine(monkeypatch, TRAINING, card=True, provider=True)
    assert choose("towers", None) == choose("towers", "cuda") == Chosen("onnx", "cuda")
    _machine(monkeypatch, PLAIN, card=True)
    assert choose("towers", None) == Chosen("onnx", "cpu")


def test_where_little_but_torch_is_installed_torch_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    _machine(monkeypatch, {"torch"})
    assert choose("towers", None) == choose("towers", "cpu") == Chosen("torch", "cpu")


def test_what_is_asked_for_is_given_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _machine(monkeypatch, TRAINING)
    assert choose("towers", "cpu", "torch") == Chosen("torch", "cpu")
    assert choose("committee", None) == Chosen("torch", "cpu")
    assert choose("towers", "mps").engine == "torch"
    with pytest.raises(ModelError, match="'committee' runs with torch only"):
        choose("committee", None, "onnx")
    with pytest.raises(ModelError, match="cannot use a card"):
        choose("towers", "cuda", "onnx")
    _machine(monkeypatch, PLAIN)
    for kind, device, engine in (("towers", "cuda", None), ("committee", None, None), ("towers", None, "torch")):
        with pytest.raises(
            MissingPackageError, match=r"needs torch, which is not installed; pip install 'evidex\[train"
        ):
            choose(kind, device, engine)  # type: ignore[arg-type]


def test_threads_are_those_that_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert runtime.threads() == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    assert runtime.threads() >= 1
