"""evidex train: what it says of a run, above all of what the run learned from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evidex.scenes import render_archive
from tests.cli.running import runner

TOML = """
output = "run"
[data]
path = "archive"
[[data.source]]
path = "labels.json"
role = "labels"
terms = "rendered here"
[encoder]
image_size = 32
dim = 16
[loss]
relation = false
[train]
epochs = 1
batch_size = 16
"""


@pytest.mark.slow
def test_a_run_says_what_it_learnt_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = runner(monkeypatch, capsys)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVIDEX_CACHE", str(tmp_path / "cache"))
    render_archive(Path("archive"), count=62, seed=3, size=32)
    document = json.loads(Path("archive/captions.json").read_text())
    for entry in document["images"]:
        del entry["captions"]
        entry |= {"split": "train", "filename": f"archive/images/{entry['filename']}"}
    Path("labels.json").write_text(json.dumps(document | {"dataset": "marked"}))
    Path("run.toml").write_text(TOML)
    done = run("train", "run.toml")
    assert done.code == 0, done.err
    lines = [line for line in done.out.splitlines() if line.startswith("source:")]
    assert len(lines) == 2
    assert " captions; RSUM " in lines[0]
    assert "marked" in lines[1]
    assert "of val, drawn: a tenth, by the hash of the file name" in lines[1]
    told = json.loads(run("train", "run.toml", "--json").out)
    assert [row["terms"] for row in told["sources"]] == ["not stated", "rendered here"]
    assert told["sources"] == json.loads(Path("run/sources.json").read_text())
