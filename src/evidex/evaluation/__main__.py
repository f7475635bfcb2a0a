"""``python -m evidex.evaluation MODEL DATASET [SPLIT]``: figures as JSON, where only torch is installed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from evidex.data.datasets import load_dataset
from evidex.encoders.model import load_model
from evidex.errors import EvidexError, outcome
from evidex.evaluation.protocol import evaluate


def main(arguments: list[str]) -> int:
    if len(arguments) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        print(json.dumps(_figures(*arguments)))
    except EvidexError as error:
        print(f"evidex: error: {error}", file=sys.stderr)
        return outcome(error).exit_code
    return 0


def _figures(model_path: str, dataset_path: str, split: str = "val") -> dict[str, Any]:
    model, dataset = load_model(model_path), load_dataset(Path(dataset_path), split)
    return {
        "clean": evaluate(model, dataset).to_json(),
        "noisy": evaluate(model, dataset, noisy_seed=0, absent=False).to_json(),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
