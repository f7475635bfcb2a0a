"""Data parallel training whose Dirichlet spans the batch of all processes.

Each process encodes its share of the pairs, all see all features, and each computes the whole loss. The
gradient of that loss with respect to a process's own features is exact, so the sum of the parameters'
gradients over the processes is the gradient of one process with the whole batch.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn


@dataclass(frozen=True)
class World:
    """This process among all."""

    rank: int = 0
    size: int = 1

    @staticmethod
    def start() -> World:
        """Join the processes that torchrun started; alone if it did not."""
        size = int(os.environ.get("WORLD_SIZE", "1"))
        if size == 1:
            return World()
        if torch.cuda.is_available():
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        if not dist.is_initialized():
            if torch.cuda.is_available():
                dist.init_process_group("nccl")
            else:
                dist.init_process_group("gloo")
                atexit.register(_leave)  # its threads abort the process if they still run when the interpreter goes
        return World(dist.get_rank(), size)

    @property
    def main(self) -> bool:
        return self.rank == 0

    def share(self, count: int) -> slice:
        """Return this process's part of ``count`` items; parts differ by one item at most."""
        return self._shares(count)[self.rank]

    def gather(self, own: torch.Tensor, count: int) -> torch.Tensor:
        """Return the rows of all processes in order, ``count`` in all; gradient flows to ``own`` alone."""
        if self.size == 1:
            return own
        shares = [part.stop - part.start for part in self._shares(count)]
        rows = own.detach().new_zeros(max(shares), *own.shape[1:])
        rows[: len(own)] = own.detach()
        parts = [torch.empty_like(rows) for _ in shares]
        dist.all_gather(parts, rows)
        return torch.cat([own if rank == self.rank else parts[rank][:length] for rank, length in enumerate(shares)])

    def _shares(self, count: int) -> list[slice]:
        ends = [count * (rank + 1) // self.size for rank in range(self.size)]
        return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Add up the gradients of all processes; what a loss does not use has none in any of them."""
        if self.size == 1:
            return
        for parameter in parameters:
            if parameter.grad is not None:
                dist.all_reduce(parameter.grad)

    def barrier(self) -> None:
        if self.size > 1:
            dist.barrier()


def _leave() -> None:
    """Leave the group of processes, if nobody has yet."""
    if dist.is_initialized():
        dist.destroy_process_group()
