"""Memory and processor time of this process, as Linux counts them.

Not tracemalloc: it sees neither what aiohttp and msgspec allocate in C nor fragmentation, and multiplies the time.
"""

from __future__ import annotations

import ctypes
import gc
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_PROC = Path("/proc/self")
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)
_RESET_PEAK = "5"
"""What proc(5) says to write to `clear_refs`."""


class _Heap(ctypes.Structure):
    """`struct mallinfo2` of glibc 2.33 and later, as mallinfo(3) describes it."""

    _fields_ = (
        ("arena", ctypes.c_size_t),
        ("ordblks", ctypes.c_size_t),
        ("smblks", ctypes.c_size_t),
        ("hblks", ctypes.c_size_t),
        ("hblkhd", ctypes.c_size_t),
        ("usmblks", ctypes.c_size_t),
        ("fsmblks", ctypes.c_size_t),
        ("uordblks", ctypes.c_size_t),
        ("fordblks", ctypes.c_size_t),
        ("keepcost", ctypes.c_size_t),
    )


def malloc_bytes() -> int:
    """Bytes that malloc has given to this process and not got back.

    C libraries take their memory from there, such as OpenSSL, and Python takes what is larger than 512 bytes. Some
    hundred KiB that a thread keeps for its next objects count as given. Linux with glibc 2.33 or later has it.
    """
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = _Heap
    heap = libc.mallinfo2()
    return int(heap.uordblks + heap.hblkhd)


def resident_bytes() -> int:
    """Resident set size once garbage and free heap pages have gone back to the system."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int((_PROC / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak_bytes() -> int:
    """Largest resident set size since `reset_peak`."""
    match = _PEAK.search((_PROC / "status").read_text())
    if match is None:
        raise RuntimeError("this kernel does not show VmHWM in /proc/self/status")
    return int(match[1]) * 1024


def reset_peak() -> None:
    """Let `peak_bytes` start from the present size."""
    (_PROC / "clear_refs").write_text(_RESET_PEAK)


@dataclass(frozen=True, slots=True)
class Effort:
    """Time that has passed, or a moment to take the difference to."""

    seconds: float
    """On the wall."""
    cpu_seconds: float
    """Of all threads of this process."""

    @classmethod
    def now(cls) -> Self:
        """The present moment."""
        return cls(time.perf_counter(), time.process_time())

    def since(self, start: Effort) -> Effort:
        """What has passed since then."""
        return Effort(self.seconds - start.seconds, self.cpu_seconds - start.cpu_seconds)
