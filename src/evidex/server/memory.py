"""How memory is handed out to a process that runs for weeks."""

from __future__ import annotations

import os
import platform

# malloc.h
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8
# Every read from a connection asks for this much and gives all but a few hundred bytes back (asyncio's max_size).
_LARGE = 256 * 1024
# Room at the end of the heap that is kept for the next request: to give it back each time costs time.
_SPARE = 16 * 2**20


def steady_heap() -> bool:
    """Keep the heap from going to pieces; whether the C library took it. To be called before threads start.

    The C library of most Linux systems (glibc) gives each thread a heap of its own, and what one frees the others
    cannot use. It also learns to serve ever larger blocks from the heap, where a small block that happens to stay
    keeps the room around it. Both make a busy server grow for many thousand requests, though it holds no more than
    before. So all threads share one heap, which they hardly ever use at the same time, and large blocks come from the
    system and go back to it. Settings in the environment (``MALLOC_…``, ``GLIBC_TUNABLES``) are left to decide.
    """
    if platform.libc_ver()[0] != "glibc" or any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ):
        return False
    import ctypes

    library = ctypes.CDLL(None)
    one_heap = library.mallopt(_M_ARENA_MAX, 1)
    large_apart = library.mallopt(_M_MMAP_THRESHOLD, _LARGE)
    spare = library.mallopt(_M_TRIM_THRESHOLD, _SPARE)
    return bool(one_heap and large_apart and spare)


def few_readers() -> None:
    """Let the table's reader have two threads. To be called before it is imported.

    Left alone it has some forty under load, and with one a processor still more on large machines, each with a stack
    and small pieces of memory of its own; no query is answered faster for it. A number in the environment
    (``LANCE_IO_THREADS``) is left to decide.
    """
    os.environ.setdefault("LANCE_IO_THREADS", "2")
