"""A Ray cluster of several nodes on this machine, each of processes of its own, and the end of some of them."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
# A node that is gone is noticed in two seconds rather than half a minute.
_SYSTEM = {"health_check_initial_delay_ms": 1000, "health_check_period_ms": 500, "health_check_failure_threshold": 4}
_STORE_BYTES = 80 * 2**20


@contextmanager
def cluster_of(nodes: int) -> Iterator[Any]:
    """A head that lends no cores, and ``nodes`` more with one core each; this process drives it."""
    import ray
    from ray.cluster_utils import Cluster

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "lance is not fork-safe", UserWarning)
        made = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 0, "object_store_memory": _STORE_BYTES, "_system_config": _SYSTEM},
        )
        for _ in range(nodes):
            add_node(made)
    try:
        ray.init(made.address, log_to_driver=False, logging_level="ERROR")
        made.wait_for_nodes()
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


def add_node(cluster: Any) -> Any:
    return cluster.add_node(num_cpus=1, object_store_memory=_STORE_BYTES)


def kill_process(process: int) -> None:
    os.kill(process, signal.SIGKILL)


def kill_node(node: Any) -> None:
    """As when its plug is pulled: the node's daemon and its workers end at once."""
    for started in node.all_processes["raylet"]:
        daemon = started.process.pid
        workers = Path(f"/proc/{daemon}/task/{daemon}/children").read_text().split()
        for process in (daemon, *map(int, workers)):
            kill_process(process)
