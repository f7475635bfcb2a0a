"""A TorchScript archive gives the tensors that torch would give, and runs nothing."""

import pickle
import warnings
import zipfile
from pathlib import Path

import pytest
import torch
from torch import nn

from evidex.encoders.state_dicts import read_state_dict
from evidex.encoders.torchscript import is_torchscript, read_torchscript
from evidex.errors import ModelError


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Parameter(torch.randn(2, 3).half())
        self.attn_mask = torch.ones(2, 2)  # an attribute, as in OpenAI's modules

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x @ self.attn_mask) @ self.proj.float()


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.visual = Inner()
        self.resblocks = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.LayerNorm(3))
        self.logit_scale = nn.Parameter(torch.tensor(4.6))
        self.register_buffer("turned", torch.arange(6.0).view(2, 3).T)
        self.register_buffer("context_length", torch.tensor(77))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.resblocks(self.visual(x)) * self.logit_scale
        return out


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    path = tmp_path / "ViT.pt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.trace(Outer(), torch.randn(1, 2)).save(str(path))
    return path


def test_the_tensors_are_those_of_the_module(archive: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = torch.jit.load(str(archive)).state_dict()
    found = read_state_dict(archive)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].dtype == value.dtype
        assert torch.equal(found[name], value), name


def test_a_plain_file_of_tensors_is_none(tmp_path: Path) -> None:
    torch.save({"a": torch.zeros(2)}, tmp_path / "plain.pt")
    assert not is_torchscript(tmp_path / "plain.pt")
    (tmp_path / "text.pt").write_text("no archive")
    assert not is_torchscript(tmp_path / "text.pt")


class _Harm:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (print, ("never",))


@pytest.mark.parametrize(
    ("description", "compression", "cause"),
    [
        (pickle.dumps(_Harm(), protocol=4), zipfile.ZIP_STORED, "instruction"),
        (b"", zipfile.ZIP_STORED, "no TorchScript archive"),
        (b"\x80\x02N.", zipfile.ZIP_DEFLATED, "compressed"),
    ],
)
def test_anything_but_modules_of_tensors_is_refused(
    description: bytes, compression: int, cause: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.pt"
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("bad/data.pkl", description)
        archive.writestr("bad/code/__torch__.py", "")
    with pytest.raises(ModelError, match=cause):
        read_torchscript(path)
    assert capsys.readouterr().out == ""


def test_numbers_outside_of_a_storage_are_refused(archive: Path) -> None:
    content = {}
    with zipfile.ZipFile(archive) as source:
        content = {info.filename: source.read(info) for info in source.infolist()}
    shortened = {name: value[:2] if "/data/" in name else value for name, value in content.items()}
    with zipfile.ZipFile(archive, "w") as target:
        for name, value in shortened.items():
            target.writestr(name, value)
    with pytest.raises(ModelError, match="no TorchScript archive"):
        read_torchscript(archive)
