"""Facts about the machine and the versions that are compared."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import version
from pathlib import Path

from benchmarks.results import Machine
from benchmarks.subjects import SUBJECTS

_MODEL = re.compile(r"^model name\s*:\s*(.+)$", re.MULTILINE)

_LIBRARIES = ("aiohttp", "anyio", "msgspec")


def this_machine() -> Machine:
    """The machine at present."""
    model = _MODEL.search(Path("/proc/cpuinfo").read_text())
    return Machine(
        cpu=model[1] if model else platform.machine(),
        cpus=len(os.sched_getaffinity(0)),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        load_average=round(os.getloadavg()[0], 2),
        kernel=platform.release(),
        python=platform.python_version(),
        versions={name: version(name) for name in (*(subject.distribution for subject in SUBJECTS), *_LIBRARIES)},
    )
