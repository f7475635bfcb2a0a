"""Compute a text mentor's features of the training captions of datasets once, for machines without the mentor.

``python scripts/store_mentor.py weights/mpnet DATASET [DATASET …] weights/mpnet_rsicd.safetensors``
"""

from __future__ import annotations

import sys
from pathlib import Path

from evidex.data.datasets import load_dataset
from evidex.encoders.mentors.pretrained import HuggingFaceTextMentor
from evidex.encoders.mentors.stored import store_text_features


def main() -> int:
    if len(sys.argv) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    mentor, *datasets, target = sys.argv[1:]
    captions = [text for dataset in datasets for text in load_dataset(Path(dataset), "train").captions]
    store_text_features(HuggingFaceTextMentor(mentor), captions, Path(target))
    return 0


if __name__ == "__main__":
    sys.exit(main())
