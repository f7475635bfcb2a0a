"""A sample archive that evidex renders itself: overhead scenes with captions, for demos and tests."""

from evidex.scenes.archive import Archive, render_archive
from evidex.scenes.scene import KINDS, Scene, render_scene

__all__ = ["KINDS", "Archive", "Scene", "render_archive", "render_scene"]
