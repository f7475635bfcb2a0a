"""The processes that hold a gallery's shards, as actors of Ray: placed on the nodes, asked, and asked again.

A call goes to one replica of each shard. Where that one is lost the call goes to another, or waits for Ray to start it
anew elsewhere; after ``patience`` seconds it is a ClusterError. An answer is thus of all shards or none.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evidex.cluster.connection import failure_of
from evidex.errors import ClusterError, InputError
from evidex.retrieval.scan.precision import Precision
from evidex.retrieval.sharded.holder import ShardHolder
from evidex.retrieval.sharded.span import MovedError

_LOOK_SECONDS = 0.5
_SECOND_SECONDS = 2.0
"""After which another replica is asked too: Ray takes longer to notice that a machine is gone."""
_TRACE = 0.001
"""Of a core: an actor that asks for nothing at all is put on any node, whichever was named. Scans take what is free."""
_MOST_SHARDS, _MOST_REPLICAS = 4096, 16


@dataclass(frozen=True)
class ShardOptions:
    """How a gallery is spread over a cluster."""

    shards: int | None = None
    """None: one for each node that has cores to lend."""
    replicas: int = 1
    """Of each shard, on as many nodes; with two, the loss of a node costs no query."""
    precision: Precision = "float32"
    patience: float = 60.0
    """Seconds that a query waits for what was lost to come back."""
    opening: float = 3600.0
    """Seconds that the first one waits for shards which open the gallery: each reads all of it once."""

    def __post_init__(self) -> None:
        if self.shards is not None and not 1 <= self.shards <= _MOST_SHARDS:
            raise InputError(f"shards is {self.shards}; give 1 to {_MOST_SHARDS}")
        if not 1 <= self.replicas <= _MOST_REPLICAS:
            raise InputError(f"replicas is {self.replicas}; give 1 to {_MOST_REPLICAS}")


@dataclass(frozen=True)
class _Node:
    id: str
    cores: int


class Fleet:
    """Actors for every shard of the gallery at ``place``, on the cluster that this process drives."""

    def __init__(self, place: str, options: ShardOptions) -> None:
        import ray

        self._ray: Any = ray
        self._place = place
        self._options = options
        self._nodes = _nodes(ray)
        self.shards = options.shards or len(self._nodes)
        self._replicas = [[_Replica(self, shard, n) for n in range(options.replicas)] for shard in range(self.shards)]
        self._turn = 0
        self._opened: set[int] = set()
        """The shards that have answered."""

    def each(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """What every named shard answers to ``method`` with its arguments."""
        start = time.monotonic()
        end, twice = start + self._options.patience, False
        self._turn += 1
        calls: dict[Any, _Asked] = {}

        def ask(shard: int) -> None:
            replica = self._choose(shard)
            calls[replica.call(method, arguments[shard])] = _Asked(shard, replica)

        for shard in arguments:
            ask(shard)
        answers: dict[int, Any] = {}
        while len(answers) < len(arguments):
            left = min(self._limit(asked.shard) for asked in calls.values()) - (time.monotonic() - start)
            seconds = min(_LOOK_SECONDS, max(left, 0.0))
            done, _ = self._ray.wait(list(calls), num_returns=1 if twice else len(calls), timeout=seconds)
            for call in done:
                asked = calls.pop(call)
                found = self._answer(call, asked)
                if not isinstance(found, _Lost):
                    answers[asked.shard] = found
                elif asked.shard not in answers:
                    self._pause(asked.shard, end, found)
                    ask(asked.shard)
            calls = {call: asked for call, asked in calls.items() if asked.shard not in answers}
            self._opened |= answers.keys()
            for shard in sorted(asked.shard for asked in calls.values()):
                if time.monotonic() - start > self._limit(shard):
                    raise self._gone(shard, "it does not answer", self._limit(shard))
            if self._options.replicas > 1 and not twice and time.monotonic() > start + _SECOND_SECONDS:
                twice = True
                for asked in list(calls.values()):
                    asked.replica.was_lost(for_good=False)
                    ask(asked.shard)
        return answers

    def _limit(self, shard: int) -> float:
        """Seconds for which a shard may be silent."""
        patience = self._options.patience
        return patience if shard in self._opened else max(patience, self._options.opening)

    def check(self, seconds: float) -> None:
        """ClusterError unless every shard has a replica that is there within ``seconds``."""
        calls = {shard: [one.call("alive", ()) for one in row] for shard, row in enumerate(self._replicas)}
        end = time.monotonic() + seconds
        for shard, row in calls.items():
            waiting, there = row, False
            while waiting and not there:  # one that is lost is told of at once, before another has answered
                done, waiting = self._ray.wait(waiting, timeout=max(end - time.monotonic(), 0.0))
                there = any(isinstance(self._answer(call, _Asked(shard, None)), int) for call in done)
                if not done:
                    break
            if not there:
                raise self._gone(shard, "it does not answer", seconds)

    def processes(self) -> list[list[int]]:
        """The process of each replica of each shard."""
        return [[self._ray.get(one.call("alive", ())) for one in row] for row in self._replicas]

    def put(self, value: Any) -> Any:
        """Something large that goes to many shards, put down once."""
        return self._ray.put(value)

    def close(self) -> None:
        for row in self._replicas:
            for one in row:
                one.end()

    def _choose(self, shard: int) -> _Replica:
        """In turns, those that were lost last."""
        row = self._replicas[shard]
        turned = [row[(self._turn + n) % len(row)] for n in range(len(row))]
        return min(turned, key=lambda one: one.is_away)

    def _answer(self, call: Any, asked: _Asked) -> Any:
        lost = self._ray.exceptions
        try:
            return self._ray.get(call)
        except lost.RayTaskError as error:
            if isinstance(error.cause, MovedError):
                raise error.cause from None
            raise failure_of(error, f"shard {asked.shard + 1} of {self.shards}") from None
        except (lost.RayActorError, lost.NodeDiedError, lost.ObjectLostError, lost.WorkerCrashedError) as error:
            if asked.replica is not None:
                asked.replica.was_lost(isinstance(error, lost.ActorDiedError))
            return _Lost(" ".join(str(error).split())[:200])

    def _pause(self, shard: int, end: float, found: _Lost) -> None:
        """Before a call is repeated where there is nobody else to ask."""
        if all(one.is_away for one in self._replicas[shard]):
            if time.monotonic() > end:
                raise self._gone(shard, found.why)
            time.sleep(_LOOK_SECONDS)

    def _gone(self, shard: int, why: str, seconds: float | None = None) -> ClusterError:
        seconds = self._options.patience if seconds is None else seconds
        return ClusterError(
            f"shard {shard + 1} of {self.shards} was not to be had in {seconds:g} s ({why}); 'ray status' says which "
            "nodes are left, and --replicas 2 outlives the loss of one"
        )

    def make(self, shard: int, replica: int) -> Any:
        """An actor on a node that no other replica of the shard is on, where there are enough."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        # Neighbours in the ring are different nodes, and each node gets as many actors as any other.
        node = self._nodes[(shard + replica) % len(self._nodes)]
        actors = self.shards * self._options.replicas
        threads = max(node.cores * len(self._nodes) // max(actors, len(self._nodes)), 1)
        actor = self._ray.remote(ShardHolder).options(
            num_cpus=_TRACE if node.cores else 0,
            max_restarts=-1,
            max_task_retries=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=True),
        )
        return actor.remote(self._place, threads, self._options.precision)


@dataclass(frozen=True)
class _Lost:
    why: str


@dataclass(frozen=True)
class _Asked:
    shard: int
    replica: Any


class _Replica:
    """One actor, made again where Ray gives it up."""

    def __init__(self, fleet: Fleet, shard: int, number: int) -> None:
        self._fleet, self._shard, self._number = fleet, shard, number
        self._actor = fleet.make(shard, number)
        self._sign: Any = None
        """Of life, asked for after it was lost."""

    def call(self, method: str, arguments: tuple[Any, ...]) -> Any:
        return getattr(self._actor, method).remote(*arguments)

    def was_lost(self, for_good: bool) -> None:
        if for_good:
            self._actor = self._fleet.make(self._shard, self._number)
        self._sign = self.call("alive", ())

    @property
    def is_away(self) -> bool:
        """Whether it was lost and gave no sign since."""
        if self._sign is None:
            return False
        ray = self._fleet._ray
        done, _ = ray.wait([self._sign], timeout=0)
        if not done:
            return True
        try:
            ray.get(self._sign)
        except ray.exceptions.RayError:
            self._sign = self.call("alive", ())
            return True
        self._sign = None
        return False

    def end(self) -> None:
        self._fleet._ray.kill(self._actor, no_restart=True)


def _nodes(ray: Any) -> list[_Node]:
    """Those that lend cores, or all if none does."""
    alive = [_Node(node["NodeID"], int(node["Resources"].get("CPU", 0))) for node in ray.nodes() if node["Alive"]]
    return [node for node in alive if node.cores] or alive
