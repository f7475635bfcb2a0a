"""TorchScript archives: the tensors that torch reads, without torch, and nothing of the pickle carried out."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from evidex.errors import ModelError
from evidex.weights.torchscript import is_torchscript, read_torchscript


class _Tower(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 2, bias=False)
        self.layers = nn.Sequential(nn.Linear(4, 4).half(), nn.LayerNorm(4))
        self.positions = nn.Parameter(torch.randn(5, 4).T)  # strides that are not those of rows
        self.scale = nn.Parameter(torch.tensor(2.5))

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.conv1(pixels).sum() + self.positions.sum() * self.scale
        return result


class _Both(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.visual = _Tower()
        self.other = nn.Linear(2, 2)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.visual(pixels)
        return result


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("script") / "both.pt"
    torch.jit.trace(_Both(), torch.zeros(1, 3, 4, 4)).save(str(path))
    return path


def test_every_tensor_is_what_torch_reads(archive: Path) -> None:
    expected = torch.jit.load(str(archive)).state_dict()
    found = read_torchscript(archive)
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert found[name].dtype == value.numpy().dtype
        np.testing.assert_array_equal(found[name], value.numpy())


def test_one_part_comes_alone_under_its_own_names(archive: Path) -> None:
    assert {name.partition(".")[0] for name in read_torchscript(archive, "visual.")} == {
        "conv1", "layers", "positions", "scale",
    }  # fmt: skip


class _Harm:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


def test_what_a_pickle_asks_to_run_is_not_run(tmp_path: Path) -> None:
    made = tmp_path / "made"
    with zipfile.ZipFile(tmp_path / "bad.pt", "w") as archive:
        archive.writestr("bad/data.pkl", pickle.dumps(_Harm(made), protocol=2))
    with pytest.raises(ModelError, match="holds no tensor"):
        read_torchscript(tmp_path / "bad.pt")
    assert not made.exists()


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x03\x04" + b"\0" * 40])
def test_what_is_no_archive_is_told(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.pt").write_bytes(content)
    with pytest.raises(ModelError, match="fetch it again"):
        read_torchscript(tmp_path / "x.pt")


def test_a_tensor_that_reaches_beyond_its_numbers_is_refused(archive: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(archive) as whole, zipfile.ZipFile(tmp_path / "cut.pt", "w") as cut:
        for name in whole.namelist():
            cut.writestr(name, whole.read(name)[: None if name.endswith(".pkl") else 2])
    with pytest.raises(ModelError, match="multiple of element size"):
        read_torchscript(tmp_path / "cut.pt")


def test_a_compressed_archive_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb/data.pkl", b"\x80\x02N.")
    with pytest.raises(ModelError, match="compressed"):
        read_torchscript(tmp_path / "bomb.pt")


def test_a_plain_file_of_tensors_is_none(archive: Path, tmp_path: Path) -> None:
    assert is_torchscript(archive)
    torch.save({"a": torch.zeros(2)}, tmp_path / "plain.pt")
    assert not is_torchscript(tmp_path / "plain.pt")
    (tmp_path / "text.pt").write_text("no archive")
    assert not is_torchscript(tmp_path / "text.pt")
