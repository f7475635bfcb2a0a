"""What holds for all tests."""

from __future__ import annotations

import os

# Several workers share the cores: one thread each for what would else take them all. It is read when numpy and torch
# are first imported, and inherited by the processes that tests start.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
