"""Search remote-sensing archives by text or by image, and know when not to trust the answer."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evidex.encoders.model import Model, load_model
    from evidex.retrieval.gallery import Gallery
    from evidex.retrieval.retriever import Retriever

__all__ = ["Gallery", "Model", "Retriever", "load_model"]

_HOME = {
    "Gallery": "evidex.retrieval.gallery",
    "Model": "evidex.encoders.model",
    "Retriever": "evidex.retrieval.retriever",
    "load_model": "evidex.encoders.model",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: ``import evidex`` alone stays instant."""
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'evidex' has no attribute '{name}'")
