"""A mentor's features that were computed elsewhere: one safetensors file, sentence by sentence."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from evidex.encoders.mentors.protocol import TextMentor
from evidex.errors import ModelError
from evidex.files import sha256_of, write_atomic
from evidex.progress import Progress, silent


class StoredTextMentor:
    """Looks sentences up in a file that ``store_text_features`` wrote."""

    def __init__(self, path: Path) -> None:
        from safetensors.numpy import load_file

        tensors = load_file(path)
        if set(tensors) != {"digests", "features"}:
            raise ModelError(f"'{path}' holds no stored mentor features; write it with scripts/store_mentor.py")
        self._features = tensors["features"]
        self._rows = {digest.tobytes(): row for row, digest in enumerate(tensors["digests"])}
        self.dim = self._features.shape[1]
        self.fingerprint = f"stored-{sha256_of(path)}"

    def features(self, texts: Sequence[str]) -> np.ndarray:
        """Return (n, dim) float32; a sentence that is not in the file is an error."""
        try:
            rows = [self._rows[_digest(text)] for text in texts]
        except KeyError:
            unknown = next(text for text in texts if _digest(text) not in self._rows)
            raise ModelError(f"the stored mentor has no features of '{unknown}'; store them for this dataset") from None
        return self._features[rows].astype(np.float32)


def store_text_features(mentor: TextMentor, texts: Sequence[str], path: Path, progress: Progress = silent) -> None:
    """Write the features of the distinct ``texts`` in half precision."""
    from safetensors.numpy import save

    distinct = sorted(set(texts), key=len)  # texts of one length together: little padding
    parts = []
    for start in range(0, len(distinct), 256):
        parts.append(mentor.features(distinct[start : start + 256]))
        progress(min(start + 256, len(distinct)), len(distinct))
    digests = np.stack([np.frombuffer(_digest(text), dtype=np.uint8) for text in distinct])
    write_atomic(path, save({"digests": digests, "features": np.concatenate(parts).astype(np.float16)}))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:16]
