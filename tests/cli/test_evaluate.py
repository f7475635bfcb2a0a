from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from evidex.cli.app import main
from evidex.config import EncoderConfig
from evidex.data.datasets import load_dataset
from evidex.encoders.model import Model
from evidex.encoders.towers import new_compact
from tests.evaluation.colours import write_colours


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of colours and an untrained model beside it."""
    folder = write_colours(tmp_path_factory.mktemp("colours"))
    Model(new_compact(EncoderConfig(), load_dataset(folder, "val").captions), 0.1).save(folder / "model.safetensors")
    return folder


def evaluate(folder: Path, *options: str) -> int | str | None:
    """Run ``evidex evaluate`` and return its exit code."""
    usual = {"--model": str(folder / "model.safetensors"), "--dataset": str(folder)}
    given = [word for name, value in usual.items() if name not in options for word in (name, value)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["evidex", "evaluate", *given, *options])
        try:
            main()
        except SystemExit as stop:
            return stop.code
    return 0


def test_tables_json_and_pictures(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = ["--json", str(tmp_path / "out.json"), "--figures", str(tmp_path / "pictures")]
    code = evaluate(folder, "--noisy", "--noisy-seed", "4", "--defer", "0", "--defer", "0.1", *outputs)
    printed = capsys.readouterr().out
    assert not code, printed
    table = json.loads((tmp_path / "out.json").read_text())
    assert table["noisy_seed"] == 4
    assert [step["ratio"] for step in table["deferral"]] == [0.0, 0.1]
    assert f"{table['recall']['rsum']:.2f}" in printed
    assert f"{table['clean_recall']['rsum']:.2f}" in printed
    assert len(list((tmp_path / "pictures").glob("*.png"))) == 6


def test_belief_may_choose_what_is_refined(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    asked = ("--defer", "0.25", "--no-absent", "--json", str(tmp_path / "out.json"))
    for by in ("belief", "vacuity"):
        assert not evaluate(folder, "--defer-by", by, *asked)
        assert [step["by"] for step in json.loads((tmp_path / "out.json").read_text())["deferral"]] == [by]
        assert ("ρ = 0.25, by belief" in capsys.readouterr().out) == (by == "belief")
    assert evaluate(folder, "--defer-by", "belief") == 2
    assert "add --defer 0.1" in capsys.readouterr().err


def test_a_clean_evaluation_says_nothing_of_noise(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not evaluate(folder, "--no-absent", "--json", str(tmp_path / "out.json"))
    table = json.loads((tmp_path / "out.json").read_text())
    assert table["noisy_seed"] is None
    assert table["clean_recall"] is None
    assert table["uncertainty"]["i2t"]["scores"]["vacuity"]["out_of_domain_auroc"] is None
    assert "noisy" not in capsys.readouterr().out


@pytest.mark.parametrize(("option", "value"), [("--split", "spring"), ("--dataset", "nowhere"), ("--model", "nothing")])
def test_a_mistake_is_one_line_and_exit_code_2(
    folder: Path, option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate(folder, option, value) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("evidex: error: ")
    assert value in lines[0]


def test_a_ratio_beyond_one_is_refused(folder: Path) -> None:
    assert evaluate(folder, "--defer", "1.5") == 2


def test_a_val_part_that_had_to_be_drawn_is_said_and_so_is_the_fine_grain(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copied = shutil.copytree(folder, tmp_path / "undivided")
    document = json.loads((copied / "captions.json").read_text())
    for entry in document["images"]:
        entry["split"] = "train"
    (copied / "captions.json").write_text(json.dumps(document))
    assert not evaluate(copied, "--no-absent", "--json", str(tmp_path / "out.json"))
    assert "val (drawn: a tenth, by the hash of the file name)" in " ".join(capsys.readouterr().out.split())
    table = json.loads((tmp_path / "out.json").read_text())
    assert table["split_drawn"]
    assert 0 < table["images"] < len(document["images"]) / 2
    assert not evaluate(folder, "--no-absent", "--no-twins", "--json", str(tmp_path / "out.json"))
    table = json.loads((tmp_path / "out.json").read_text())
    assert (table["split_drawn"], table["fine_grain"]) == (False, None)
