"""What ``make demo`` does: render an archive and ask it, then train ELC on another, measure it, and serve the page.

Every step is a command that works as well by hand; each is printed before it runs. What was done already is
kept, so a second demo starts where the first one ended.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from pathlib import Path

DEMO = Path("demo")
EVIDEX = Path(sys.executable).parent / "evidex"
QUESTIONS = (
    "planes next to a runway",
    "boats in a harbor",
    "round storage tanks",
    "a river with trees on both sides",
    "a bowl of tomato soup",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-serve", action="store_true", help="end without serving the page")
    arguments = parser.parse_args()

    if not (DEMO / "scenes").exists():
        run("sample", DEMO / "scenes", "--count", 310, "--seed", 7, "--georeferenced")
    run("index", DEMO / "scenes" / "images", "--gallery", DEMO / "gallery")
    for number, question in enumerate(QUESTIONS, start=1):
        run("search", question, "--gallery", DEMO / "gallery", "--top", 5, "--sheet", DEMO / f"question_{number}.png")

    if not (DEMO / "archive").exists():
        run("sample", DEMO / "archive", "--count", 1200)
    run("train", "configs/sample.toml", "--set", f"data.path={DEMO / 'archive'}", "--output", DEMO / "run")
    run(
        "evaluate", "--model", DEMO / "run", "--dataset", DEMO / "archive", "--split", "val", "--noisy",
        "--json", DEMO / "evaluation.json", "--figures", DEMO / "pictures",
    )  # fmt: skip

    print(f"\nPictures: {DEMO / 'pictures'} and {DEMO}/question_*.png")
    print(f"Training curve: {DEMO / 'run' / 'training_curve.png'}")
    if not arguments.no_serve:
        run("serve", "--gallery", DEMO / "gallery")
    return 0


def run(*words: object) -> None:
    """Print a command and run it; its failure ends the demo."""
    command = [str(word) for word in words]
    print(f"\n$ evidex {shlex.join(command)}", flush=True)
    try:
        code = subprocess.run([EVIDEX, *command], check=False).returncode
    except KeyboardInterrupt:
        code = 130
    if code:
        sys.exit(code)


if __name__ == "__main__":
    sys.exit(main())
