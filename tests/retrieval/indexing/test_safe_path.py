"""An archive is data: Python files that lie in the folder one stands in are never run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.retrieval.archive import picture

TRAP = "import pathlib\npathlib.Path(__file__).with_suffix('.ran').touch()\nraise SystemExit(3)\n"


def test_modules_beside_the_pictures_are_not_run(tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    archive.mkdir()
    picture(0).save(archive / "scene.png")
    for name in ("glob", "tempfile", "selectors", "random", "signal", "numpy", "PIL", "rasterio", "evidex"):
        (archive / f"{name}.py").write_text(TRAP)
    command = Path(sys.executable).with_name("evidex")
    done = subprocess.run(
        [str(command), "index", ".", "--gallery", str(tmp_path / "g"), "--no-calibrate"],
        cwd=archive, capture_output=True, text=True, timeout=120, env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not list(archive.glob("*.ran"))
