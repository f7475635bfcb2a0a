"""State dicts of TorchScript archives, as OpenAI published CLIP; other files are tested where they are loaded."""

import warnings
from pathlib import Path

import torch
from torch import nn

from evidex.encoders.state_dicts import read_state_dict


class _Attending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Parameter(torch.randn(2, 3).half())
        self.attn_mask = torch.ones(2, 2)  # an attribute, as in OpenAI's modules

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x @ self.attn_mask) @ self.proj.float()


def test_an_archive_gives_what_torch_would(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls its archives outdated
        torch.jit.trace(nn.Sequential(_Attending(), nn.LayerNorm(3)), torch.randn(1, 2)).save(str(tmp_path / "ViT.pt"))
        expected = torch.jit.load(str(tmp_path / "ViT.pt")).state_dict()
    found = read_state_dict(tmp_path / "ViT.pt")
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].dtype == value.dtype
        assert torch.equal(found[name], value), name
