"""A graph as it is written: nodes over weights that stay in the model file until the graph is loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidex.encoders.graphs import wire
from evidex.encoders.rounding import RoundedTensor

Floats = NDArray[np.float32]
Stored = Mapping[str, Any]
"""Arrays by name, or what numpy makes arrays of, with their shape and type."""

_SMALLEST_NORM = 1e-12  # what torch divides a shorter row by


@dataclass(frozen=True)
class Weight:
    """A stored tensor of the shape that the architecture gives it, read when it is asked for."""

    name: str
    shape: tuple[int, ...]
    read: Callable[[], Floats]
    half: bool
    """Whether it is stored in half precision."""
    rounded: RoundedTensor | None = None
    """The same where it is stored in bytes."""


class Graph:
    """One tower, from its inputs to unit rows. Every value is known by its name."""

    def __init__(self, stored: Stored, *, rounded: bool = False) -> None:
        self._stored = stored
        self.rounded = rounded
        """Whether large products may be of bytes: faster, and not quite the same."""
        self._nodes: list[bytes] = []
        self._tensors: list[bytes] = []
        self._inputs: list[bytes] = []
        self._outputs: list[bytes] = []
        self._given: dict[str, Callable[[], NDArray[Any]]] = {}
        self.used: set[str] = set()
        """Names of the stored tensors that the tower consists of."""

    def stored(self, name: str, *shape: int) -> Weight:
        """The tensor ``name`` of the file; ValueError where it is not there or of another shape."""
        found = self._stored.get(name)
        if found is None or found.shape != shape:
            raise ValueError(f"weights do not fit the architecture (first difference: '{name}')")
        self.used.add(name)
        half, rounded = found.dtype == np.float16, self.rounded_weight(name)
        return Weight(name, shape, lambda: np.asarray(found, dtype=np.float32), half, rounded)

    def rounded_weight(self, name: str) -> RoundedTensor | None:
        """The tensor ``name`` of the file where that is in bytes."""
        found = self._stored.get(name)
        return found if isinstance(found, RoundedTensor) else None

    def input(self, name: str, kind: str, *dims: int | str) -> str:
        self._inputs.append(wire.value(name, kind, dims))
        return name

    def output(self, rows: str, dim: int) -> None:
        """End the graph with ``rows`` (n, dim) at unit length."""
        length = self.node("ReduceL2", rows, self.integers(-1), keepdims=1)
        longest = self.node("Max", length, self.constant(np.array(_SMALLEST_NORM, np.float32)))
        self._add("Div", (rows, longest), "rows", {})
        self._outputs.append(wire.value("rows", "float32", ("n", dim)))

    def weight(self, weight: Weight) -> str:
        """A weight as it is stored."""
        return self.made(weight.name, weight.shape, weight.read)

    def made(self, name: str, shape: Sequence[int], make: Callable[[], Floats], *, half: bool = False) -> str:
        """A weight that ``make`` gives when the graph is loaded.

        ``half``: what it gives fits half precision and is handed over so. The runtime then widens it itself, packs it
        for its products, and holds no third copy.
        """
        if name not in self._given:
            self._tensors.append(wire.outside(name, "float16" if half else "float32", shape))
            self._given[name] = (lambda: make().astype(np.float16)) if half else make
        return self.floats(name) if half else name

    def in_bytes(
        self, name: str, shape: Sequence[int], make: Callable[[], NDArray[Any]], *, kind: str = "uint8"
    ) -> str:
        """The same for whole numbers of a byte."""
        if name not in self._given:
            self._tensors.append(wire.outside(name, kind, shape))
            self._given[name] = make
        return name

    def table(self, name: str, *shape: int) -> str:
        """Rows to choose from, left as they are stored: of half precision only the chosen ones become float32."""
        weight = self.stored(name, *shape)
        found = self._stored[name]
        if found.dtype == np.float16:
            self._tensors.append(wire.outside(name, "float16", shape))
            self._given[name] = lambda: np.asarray(found)
            return name
        return self.weight(weight)

    def constant(self, values: NDArray[Any]) -> str:
        name = f"constant{len(self._tensors)}"
        self._tensors.append(wire.tensor(name, values))
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def node(self, op: str, *inputs: str, domain: str = "", **attributes: wire.Attribute) -> str:
        """Add an operation; the name of what it gives."""
        return self._add(op, inputs, f"value{len(self._nodes)}", attributes, domain)

    def split(self, values: str, count: int) -> list[str]:
        """``values`` in parts of equal length along their last axis."""
        parts = [f"value{len(self._nodes)}_{part}" for part in range(count)]
        self._nodes.append(wire.node("Split", "", (values,), parts, {"axis": -1, "num_outputs": count}))
        return parts

    def linear(self, rows: str, name: str, inputs: int, outputs: int, *, bias: bool = True) -> str:
        """A dense layer over ``rows`` (n, inputs)."""
        given = [self.weight(self.stored(f"{name}.weight", outputs, inputs))]
        given += [self.weight(self.stored(f"{name}.bias", outputs))] if bias else []
        return self.node("Gemm", rows, *given, transB=1)

    def layer_norm(self, rows: str, name: str, width: int, epsilon: float) -> str:
        weight, bias = (self.weight(self.stored(f"{name}.{part}", width)) for part in ("weight", "bias"))
        return self.node("LayerNormalization", rows, weight, bias, epsilon=float(epsilon))

    def embedded(self, ids: str, words: str, positions: str) -> str:
        """The rows of ``words`` that ``ids`` (n, length) name, each with that of its place added."""
        chosen = self.floats(self.node("Gather", words, ids))
        length = self.node("Shape", ids, start=1, end=2)
        return self.node("Add", chosen, self.node("Slice", positions, self.integers(0), length, self.integers(0)))

    def floats(self, values: str) -> str:
        return self.node("Cast", values, to=wire.TYPES["float32"])

    def to_bytes(self) -> bytes:
        return wire.model(self._nodes, self._tensors, self._inputs, self._outputs)

    def weights(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """What the graph has to be given along: names and values, each made when its turn comes."""
        for name, make in self._given.items():
            yield name, np.ascontiguousarray(make())

    def _add(
        self, op: str, inputs: Sequence[str], output: str, attributes: Mapping[str, wire.Attribute], domain: str = ""
    ) -> str:
        self._nodes.append(wire.node(op, domain, inputs, (output,), attributes))
        return output
