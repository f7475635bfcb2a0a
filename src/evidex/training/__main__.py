"""``python -m evidex.training CONFIG [section.key=value …]``: for torchrun, or where only torch is there."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from evidex.config import load_config
from evidex.errors import EvidexError, outcome
from evidex.training.loop import Report, train
from evidex.visible import visible


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m evidex.training", description="Train one configuration.")
    parser.add_argument("config", type=Path)
    parser.add_argument("overrides", nargs="*", metavar="section.key=value")
    parser.add_argument("--restart", action="store_true", help="start anew instead of going on from the checkpoint")
    arguments = parser.parse_args()
    try:
        train(load_config(arguments.config, arguments.overrides), restart=arguments.restart, watch=_print_epoch)
    except EvidexError as error:
        print(visible(f"evidex: error: {error}"), file=sys.stderr)
        return outcome(error).exit_code
    return 0


def _print_epoch(report: Report) -> None:
    if report.epoch_summary:
        print(json.dumps(report.epoch_summary), flush=True)


if __name__ == "__main__":
    sys.exit(main())
