"""The notebook runs from its beginning to its end, and shows what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "first_search.ipynb"


@pytest.mark.slow
def test_the_notebook_runs_and_shows_hits_a_map_and_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    book = nbformat.read(NOTEBOOK, as_version=4)
    assert all(not cell.get("outputs") for cell in book.cells), "the notebook is kept without outputs"
    nbclient.NotebookClient(book, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in book.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in shown) == 5
    said = _text(shown)
    assert "93 scenes indexed" in said
    assert "planes next to a runway: answered, " in said
    assert "a bowl of tomato soup: abstained, out_of_domain" in said
    assert not list(tmp_path.glob("first_search_*"))


def _text(outputs: list[Any]) -> str:
    return "".join(output.get("text", "") for output in outputs if output["output_type"] == "stream")
