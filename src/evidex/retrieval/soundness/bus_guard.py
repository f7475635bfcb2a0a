"""A mapped file that shrinks, or that the disk cannot read, must not end the process.

Reading such a page raises SIGBUS, which Python cannot handle: its handlers run after the instruction, which would
never end. The handler here is compiled. Within the ranges that were named to it, it puts zeros in the place of the
pages from the fault on and lets the thread go on; who reads such a map compares checksums afterwards and finds them
wrong (`evidex.retrieval.soundness.mapped`). Faults elsewhere go to whoever handled them before.

Linux with the C library of GNU only: elsewhere the layout of the structures differs, and no guard is set.
"""

from __future__ import annotations

import ctypes
import platform
import sys
import threading
import weakref
from typing import Any

import numpy as np

_MOST_RANGES = 256
_PAGE_MASK = ~0xFFFF  # no common page is larger; ranges begin at pages, and the handler stays within them
_SIGBUS = 7
_SA_SIGINFO, _SA_NODEFER = 0x4, 0x40000000

_lock = threading.Lock()
_ranges = np.zeros((_MOST_RANGES, 2), np.int64)
_faults = np.zeros(1, np.int64)
_kept: list[Any] = []


class _Sigaction(ctypes.Structure):
    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ulong * 16),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


def guard(values: np.ndarray) -> None:
    """Let faults within the memory of ``values``, a map of a file, read as zeros for as long as the array lives."""
    if not _available() or not values.nbytes:
        return
    with _lock:
        if not _kept:
            _install()
        free = np.flatnonzero(_ranges[:, 1] == 0)
        if len(free):
            place = int(free[0])
            start = values.ctypes.data
            _ranges[place] = start, start + values.nbytes
            weakref.finalize(values, _release, place)


def faults() -> int:
    """How often pages were replaced so far: whoever found a map sound before must look again."""
    return int(_faults[0])


def _release(place: int) -> None:
    _ranges[place] = 0


def _available() -> bool:
    return sys.platform == "linux" and platform.libc_ver()[0] == "glibc" and ctypes.sizeof(ctypes.c_void_p) == 8


def _install() -> None:
    from numba import cfunc, types

    mmap = types.ExternalFunction(
        "mmap", types.intp(types.intp, types.intp, types.int32, types.int32, types.int32, types.intp)
    )
    sigaction = types.ExternalFunction("sigaction", types.int32(types.int32, types.intp, types.intp))
    word_at, count_at = _word_at(), _count_at()
    former = _Sigaction()
    table, counter, former_at = _ranges.ctypes.data, _faults.ctypes.data, ctypes.addressof(former)

    @cfunc(types.void(types.int32, types.intp, types.intp))  # type: ignore[untyped-decorator]
    def handler(number: int, info: int, _context: int) -> None:
        address = word_at(info + 16)  # si_addr
        for i in range(_MOST_RANGES):
            first, stop = word_at(table + 16 * i), word_at(table + 16 * i + 8)
            if first <= address < stop:
                start = max(address & _PAGE_MASK, first)
                mmap(start, stop - start, 1, 0x32, -1, 0)  # readable; private, anonymous, in this very place
                count_at(counter)
                return
        sigaction(number, former_at, 0)  # the instruction is tried again, and this time it is theirs

    action = _Sigaction(handler.address, (ctypes.c_ulong * 16)(), _SA_SIGINFO | _SA_NODEFER, None)
    if ctypes.CDLL(None).sigaction(_SIGBUS, ctypes.byref(action), ctypes.byref(former)) == 0:
        _kept.extend((handler, former))


def _word_at() -> Any:
    """A function for compiled code: the 64-bit number at an address."""
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator]
    def word_at(_: Any, __: Any) -> Any:
        def read(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.load(builder.inttoptr(arguments[0], ir.IntType(64).as_pointer()))

        return types.intp(types.intp), read

    return word_at


def _count_at() -> Any:
    """A function for compiled code: one more in the 64-bit number at an address."""
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator]
    def count_at(_: Any, __: Any) -> Any:
        def count(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            place = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
            builder.store(builder.add(builder.load(place), ir.Constant(ir.IntType(64), 1)), place)
            return context.get_dummy_value()

        return types.void(types.intp), count

    return count_at
