"""Parent-death watch: `python -m trainer.cli.processes.parent_death PARENT_PID COMMAND...` ends with its parent.

Linux sends the chosen signal when the parent dies (prctl(2), PR_SET_PDEATHSIG), even by SIGKILL. It is set here, in the
child, and survives exec; setting it between fork and exec of a program with threads is not safe.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def ending_with_parent(command: list[str]) -> list[str]:
    """The command line that runs `command` and sends it SIGTERM when this process dies."""
    return [sys.executable, "-m", "trainer.cli.processes.parent_death", str(os.getpid()), *command]


def _main() -> None:
    parent, command = int(sys.argv[1]), sys.argv[2:]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:  # it died before the signal was set
        sys.exit(0)
    os.execvp(command[0], command)  # noqa: S606 - no shell is the point


if __name__ == "__main__":
    _main()
