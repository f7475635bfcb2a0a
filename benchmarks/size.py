"""What ``pip install evidex`` puts on the disk: the wheel is built and installed into fresh environments.

    python benchmarks/size.py [--extras train] [--json]

Measures a plain install, and one with each of the ``--extras`` named (several in one: ``train+bench``), and names the
largest packages; megabytes of 10^6 bytes, compiled Python files included. The packages come from where pip is set up
to find them. Exit status 1 where the plain install is larger than 450 MB.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import Distribution, distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST_MB = 450.0
SHOWN = 14


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--extras", nargs="*", default=[])
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wheel = built(Path(folder))
        wanted = ["", *(f"[{names.replace('+', ',')}]" for names in arguments.extras)]
        found = {
            f"evidex{extras}": measured(Path(folder) / f"env{i}", wheel, extras) for i, extras in enumerate(wanted)
        }
    if arguments.json:
        print(json.dumps(found))
    else:
        for name, sizes in found.items():
            show(name, sizes)
    return 0 if sum(found["evidex"].values()) <= MOST_MB else 1


def built(folder: Path) -> Path:
    """The wheel, built from a copy: a build beside the source would pack what an earlier one left there."""
    copy = folder / "source"
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--no-index"]
    subprocess.run([*command, "-w", folder, copy], check=True)
    (wheel,) = folder.glob("evidex-*.whl")
    return wheel


def measured(environment: Path, wheel: Path, extras: str) -> dict[str, float]:
    """Megabytes of each package of a fresh environment that holds the wheel with ``extras``, the largest first."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python"), "install", "--quiet"]
    subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), f"evidex{extras} @ {wheel.as_uri()}"], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    sizes = {each.name: size_of(each) for each in distributions(path=[str(packages)])}
    shutil.rmtree(environment)
    return dict(sorted(sizes.items(), key=lambda pair: -pair[1]))


def size_of(package: Distribution) -> float:
    """Megabytes of all files that came with ``package``."""
    places = {Path(str(file.locate())) for file in package.files or []}
    return sum(place.stat().st_size for place in places if place.is_file()) / 1e6


def show(name: str, sizes: dict[str, float]) -> None:
    """Print the sum and the largest packages."""
    print(f"{name}: {sum(sizes.values()):.0f} MB in {len(sizes)} packages")
    for package, size in list(sizes.items())[:SHOWN]:
        print(f"  {package:28}{size:8.1f}")
    print(f"  {'others':28}{sum(list(sizes.values())[SHOWN:]):8.1f}")


if __name__ == "__main__":
    sys.exit(main())
