"""From a model file's description to the encoder it describes."""

from __future__ import annotations

from typing import Any

from evidex.encoders.protocol import DualEncoder
from evidex.errors import ModelError


def build_encoder(spec: dict[str, Any]) -> DualEncoder:
    """Return the encoder that ``spec`` describes, its weights random."""
    kind = spec.get("kind")
    if kind == "towers":
        from evidex.encoders.towers import TowerEncoder

        return TowerEncoder(spec)
    if kind == "clip":
        from evidex.encoders.clip.encoder import ClipEncoder

        return ClipEncoder.from_spec(spec)
    if kind == "committee":
        from evidex.encoders.committee import CommitteeEncoder

        return CommitteeEncoder.from_spec(spec)
    if kind == "method":
        from evidex.methods.protocol import implementation

        return implementation(spec["method"]).rebuild(build_encoder(spec["base"]), spec["options"])
    raise ModelError(f"encoder kind '{kind}' is unknown to this version; update evidex")
