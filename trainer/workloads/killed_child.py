"""Finds in the log of a container that a process of it was killed.

Exit code and reason of the container do not tell it: the launcher or the parent ends with an exit code of its own.
Lines come from programs: each is searched in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_ROOT_CAUSE: Final = "Root Cause (first observed failure):"
"""Of torchrun: what stands above it are the processes that it has killed itself."""
_OF_TORCHRUN = re.compile(r"\bexitcode {0,4}: -9\b|\bSignal 9 \(SIGKILL\) received by PID \d+")
_CERTAIN = tuple(
    re.compile(words)
    for words in (
        r"\bfailed \(exitcode: -9\) local_rank: \d+",  # torchrun
        r"\bSignal 9 \(SIGKILL\) received by PID \d+",
        r"\bDataLoader worker \(pid(?:\(s\))? [\d, ]{1,200}\) is killed by signal: Killed\b",  # PyTorch
        r"\bprocess \d+ terminated with signal SIGKILL\b",  # torch.multiprocessing
        r"\bdied with <Signals\.SIGKILL: 9>",  # subprocess, as accelerate starts processes
        r"\bexits? with return code = -9\b",  # deepspeed
        r"\bnoticed that process rank \d+ with PID \d+ on node \S{1,253} exited on signal 9\b",  # Open MPI
        r"\bKILLED BY SIGNAL: 9\b|\bEXIT STRING: Killed \(signal 9\)",  # MPICH and Intel MPI
        r"\boom[-_]kill\b|\bOut Of Memory\b|\bOOM Killed\b",  # Slurm
        r"\bTask was killed due to the node running low on memory\b",  # Ray
        r"\bkilled by the OOM killer\b|\bSIGKILL by the OOM killer\b",
    )
)
"""What a launcher or a parent says of the process that ended first."""
_LIKELY = tuple(
    re.compile(words)
    for words in (
        r"(?:^|[\]:|>] {0,64})Killed {0,64}$",  # a shell
        r"\bline \d+: {1,64}\d+ Killed {2,64}\S",  # bash, in a script
        r"^srun: error: \S{1,253}: tasks? [\d,-]{1,200}: Killed\b",
        r"\bProcess \d+ exit with status code (?:137|-9)\b",  # horovodrun
        r"\bexited? (?:with|on) (?:exit )?(?:code|signal) (?:137|-9|9 \(Killed\))(?!\d)",
    )
)
"""What they also say of processes that they have killed after the failure of another one."""


@dataclass(frozen=True, slots=True)
class KilledChild:
    """A process that SIGKILL has ended, in a container that has ended by itself."""

    line: str
    """The line of the log that says it."""
    is_first: bool
    """Whether it ended before the other processes of its container, and not because of them."""


def killed_child(lines: Sequence[str]) -> KilledChild | None:
    """The killed process that the last lines of a log tell of; None if they tell of none.

    A launcher kills the other processes once one has failed, so where only that may be meant, an error of the program
    counts more.
    """
    roots = [index for index, line in enumerate(lines) if line.rstrip().endswith(_ROOT_CAUSE)]
    reported = lines[roots[-1] :] if roots else ()
    for line in reversed(reported):
        if _OF_TORCHRUN.search(line):
            return KilledChild(line.strip(), is_first=True)
    if roots and any("exitcode" in line for line in reported):
        return None  # the root cause is another one
    for patterns, is_first in ((_CERTAIN, True), (_LIKELY, False)):
        for line in reversed(lines):
            if any(pattern.search(line) for pattern in patterns):
                return KilledChild(line.strip(), is_first)
    return None
