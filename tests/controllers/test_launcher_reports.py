"""Reports of launchers below what a process has said."""

from __future__ import annotations

import pytest

from trainer.controllers.launcher_reports import without_reports

TRACEBACK = """\
Traceback (most recent call last):
  File "/mnt/trainer/work/code/train.py", line 3, in <module>
    raise ValueError("no data")
ValueError: no data
"""
TORCHRUN = """\
E1127 19:50:11.713000 2111 torch/distributed/elastic/multiprocessing/api.py:984] failed (exitcode: 1)
Traceback (most recent call last):
  File "/usr/local/bin/torchrun", line 8, in <module>
    sys.exit(main())
  File "/usr/lib/python3/dist-packages/torch/distributed/launcher/api.py", line 317, in launch_agent
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-27_19:50:11
  host      : demo-node-0-0
  rank      : 0 (local_rank: 0)
  exitcode  : 1 (pid: 2120)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"""
RANKS = """\
[rank1]: Traceback (most recent call last):
[rank1]: ValueError: no data
[rank0]: Traceback (most recent call last):
[rank0]: RuntimeError: Connection closed by peer [127.0.0.1]:50852
"""
RULE = f"{'-' * 74}\n"
MPIRUN = (
    f"{RULE}Primary job  terminated normally, but 1 process returned\n"
    f"a non-zero exit code. Per user-direction, the job has been aborted.\n{RULE}"
    f"{RULE}mpirun detected that one or more processes exited with non-zero status, thus causing\n"
    f"the job to be terminated. The first process to do so was:\n"
    f"  Process name: [[43123,1],0]\n  Exit code:    1\n{RULE}"
)
HYDRA = f"""\
{"=" * 83}
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 120 RUNNING AT demo-node-0-0
=   EXIT CODE: 1
=   CLEANING UP REMAINING PROCESSES
=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES
{"=" * 83}
"""


def behind(prefix: str, log: str) -> str:
    return "".join(f"{prefix}{line}\n" for line in log.splitlines())


@pytest.mark.parametrize(
    ("log", "left"),
    [
        pytest.param(TRACEBACK, TRACEBACK, id="none"),
        pytest.param(
            behind("0: [default1]:", RANKS) + behind("0: ", TORCHRUN.replace("rank      : 0", "rank      : 1")),
            behind("0: [default1]:", "\n".join(RANKS.splitlines()[:2])),
            id="ranks of srun of torchrun",
        ),
        pytest.param(TRACEBACK + TORCHRUN.rpartition("=====")[0][:-60], TRACEBACK, id="torchrun's is cut off"),
        pytest.param(f"{RULE}epoch 1\n{RULE}{MPIRUN}", f"{RULE}epoch 1\n{RULE}", id="rules of both"),
        pytest.param(TRACEBACK + HYDRA, TRACEBACK, id="MPICH"),
    ],
)
def test_reports(log: str, left: str) -> None:
    """They are left out, whole or at the end that was read, and nothing else is."""
    assert without_reports(log.splitlines()) == left.splitlines()
