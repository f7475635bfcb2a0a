"""The paper's weights: tiny files in the layouts of the published ones are tried, taken and then used."""

from __future__ import annotations

import dataclasses
import json
import sys
import warnings
from pathlib import Path

import fetch_weights
import pytest
import torch
from starting_weights.paper import PaperWeights, paper_weights, provide
from torch import nn

from evidex.config import load_config
from evidex.encoders.clip_file import load_clip_file
from evidex.encoders.mentors.pretrained import HuggingFaceTextMentor, TorchImageMentor
from evidex.errors import DataError, EvidexError, ModelError
from evidex.files import sha256_of
from evidex.weights.downloads import PublicFile, fetch
from tests.encoders.clip.test_open_clip_weights import PlainClip, plain_clip
from tests.encoders.clip.tiny_clip import write_vocabulary
from tests.encoders.mentors.test_pretrained import bert, unicom_state

__all__ = ["bert"]
ROOT = Path(__file__).parents[2]
NAMES = {"clip_vit_b32", "clip_tokenizer", "remoteclip_vit_b32", "unicom_vit_b_32", "gte_base"}


def published(name: str, path: Path) -> PaperWeights:
    """The paper's weights of ``name``, as if ``path`` were what their authors publish."""
    weights = paper_weights()[name]
    folder = path if path.is_dir() else None
    files = tuple(
        dataclasses.replace(
            file,
            address=(path if folder is None else folder / file.title).as_uri(),
            sha256=sha256_of(path if folder is None else folder / file.title),
        )
        for file in weights.files
    )
    return PaperWeights(name, files)


class _Whole(nn.Module):
    """CLIP with a forward pass, which an archive needs."""

    def __init__(self, clip: PlainClip) -> None:
        super().__init__()
        self.visual, self.transformer, self.ln_final = clip.visual, clip.transformer, clip.ln_final
        self.token_embedding, self.positional_embedding = clip.token_embedding, clip.positional_embedding
        self.text_projection, self.logit_scale = clip.text_projection, clip.logit_scale
        self.register_buffer("input_resolution", torch.tensor(32))

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return pixels * self.logit_scale


def openai_archive(folder: Path) -> Path:
    """OpenAI's layout: a TorchScript archive in half precision."""
    clip, _ = plain_clip("quick_gelu")
    path = folder / "ViT-B-32.pt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls its archives outdated
        torch.jit.trace(_Whole(clip), torch.zeros(1, 3, 32, 32)).half().save(str(path))
    return path


def open_clip_file(folder: Path) -> Path:
    """RemoteCLIP's layout: a bare state dict under open_clip's names."""
    clip, _ = plain_clip("gelu")
    torch.save(clip.state_dict(), folder / "RemoteCLIP-ViT-B-32.pt")
    return folder / "RemoteCLIP-ViT-B-32.pt"


def unicom_file(folder: Path) -> Path:
    state = unicom_state(torch.Generator().manual_seed(6))
    torch.save({name: value.half() for name, value in state.items()}, folder / "FP16-ViT-B-32.pt")
    return folder / "FP16-ViT-B-32.pt"


def test_the_table_names_the_papers_weights_and_the_configurations_use_their_places() -> None:
    weights = paper_weights()
    assert set(weights) == NAMES
    assert all(len(file.sha256) in (0, 64) for each in weights.values() for file in each.files)
    mentor = load_config(ROOT / "configs" / "paper_rsicd.toml").mentors.image
    assert mentor == f"weights/{weights['unicom_vit_b_32'].place}"


def test_clip_as_openai_publishes_it(tmp_path: Path) -> None:
    given = openai_archive(tmp_path)
    path = provide(published("clip_vit_b32", given), tmp_path / "weights", given)
    write_vocabulary(tmp_path / "published")
    tokenizer = provide(
        published("clip_tokenizer", tmp_path / "published"), tmp_path / "weights", tmp_path / "published"
    )
    model = load_clip_file(path, tokenizer=str(tokenizer), activation="quick_gelu", device="cpu")
    assert model.encode_texts(["many planes"]).shape == (1, 24)
    assert json.loads((tmp_path / "weights" / "clip_vit_b32.json").read_text())["sha256"] == {
        "ViT-B-32.pt": sha256_of(given)
    }


def test_remoteclip_unicom_and_gte_from_where_they_are_published(tmp_path: Path, bert: Path) -> None:
    (bert / "tokenizer.json").unlink(missing_ok=True)
    from transformers import AutoTokenizer

    AutoTokenizer.from_pretrained(bert).save_pretrained(bert)
    out = tmp_path / "weights"
    provide(published("remoteclip_vit_b32", open_clip_file(tmp_path)), out)
    write_vocabulary(tmp_path / "words")
    load_clip_file(
        out / "remoteclip_vit_b32.pt", tokenizer=str(tmp_path / "words"), activation="gelu", device="cpu"
    ).encode_texts(["ships"])
    assert TorchImageMentor.unicom(provide(published("unicom_vit_b_32", unicom_file(tmp_path)), out)).dim == 6
    assert HuggingFaceTextMentor(provide(published("gte_base", bert), out)).dim == 16


def test_another_file_than_the_published_one_is_refused(tmp_path: Path) -> None:
    given = unicom_file(tmp_path)
    out = tmp_path / "weights"
    with pytest.raises(DataError, match="as published"):
        provide(paper_weights()["unicom_vit_b_32"], out, given)
    with pytest.raises(ModelError, match="Unicom"):
        provide(published("unicom_vit_b_32", open_clip_file(tmp_path)), out, tmp_path / "RemoteCLIP-ViT-B-32.pt")
    with pytest.raises(DataError, match=r"gte.*is not there.*config\.json"):
        provide(paper_weights()["gte_base"], out, tmp_path / "gte")
    assert not [path for path in out.iterdir() if path.name != ".downloads"]


class _Harm:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("name", ["clip_vit_b32", "unicom_vit_b_32"])
def test_what_a_file_asks_to_run_is_not_run(name: str, tmp_path: Path) -> None:
    torch.save({"weights": _Harm(tmp_path / "made")}, tmp_path / "evil.pt")
    with pytest.raises(EvidexError):
        provide(published(name, tmp_path / "evil.pt"), tmp_path / "weights", tmp_path / "evil.pt")
    assert not (tmp_path / "made").exists()


def test_a_file_of_unknown_digest_is_fetched_once(tmp_path: Path) -> None:
    given = tmp_path / "config.json"
    given.write_text("{}")
    file = PublicFile(given.as_uri(), "")
    path = fetch(file, tmp_path / "cache")
    given.unlink()
    assert fetch(file, tmp_path / "cache") == path


def test_the_command_takes_a_local_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = unicom_file(tmp_path)
    monkeypatch.setattr(
        fetch_weights, "paper_weights", lambda: {"unicom_vit_b_32": published("unicom_vit_b_32", given)}
    )
    words = ["unicom_vit_b_32", "--from", str(given), "--out", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", ["fetch_weights.py", *words])
    assert fetch_weights.main() == 0
    assert "unicom_vit_b_32.pt" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["fetch_weights.py", "resnet50", "--from", str(given)])
    with pytest.raises(SystemExit):
        fetch_weights.main()
