"""Logs that tell of a process that was killed."""

from __future__ import annotations

import pytest

from trainer.workloads.killed_child import KilledChild, killed_child

TORCHRUN = """\
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
Failures:
[1]:
  rank      : 1 (local_rank: 1)
  exitcode  : {other} (pid: 72)
Root Cause (first observed failure):
[0]:
  rank      : 0 (local_rank: 0)
  exitcode  : {first} (pid: 71)
  error_file: <N/A>
  traceback : {said}
============================================================"""
SIGKILL = "Signal 9 (SIGKILL) received by PID 71"
WORKER = "RuntimeError: DataLoader worker (pid 42) is killed by signal: Killed. "


@pytest.mark.parametrize(
    ("log", "line"),
    [
        pytest.param(TORCHRUN.format(other=-15, first=-9, said=SIGKILL), f"traceback : {SIGKILL}", id="torchrun"),
        pytest.param(
            "E1128 api.py:869] failed (exitcode: -9) local_rank: 0 (pid: 71) of binary: x", None, id="its log"
        ),
        pytest.param(f"Traceback\n[rank0]: {WORKER}\n", f"[rank0]: {WORKER}".strip(), id="DataLoader"),
        pytest.param("ProcessExitedException: process 1 terminated with signal SIGKILL", None, id="torch.spawn"),
        pytest.param("CalledProcessError: Command 'x' died with <Signals.SIGKILL: 9>.", None, id="accelerate"),
        pytest.param("[ERROR] [launch.py:325] python train.py exits with return code = -9", None, id="deepspeed"),
        pytest.param(
            "mpirun noticed that process rank 1 with PID 7 on node demo-node-0-1 exited on signal 9 (Killed).",
            None,
            id="Open MPI",
        ),
        pytest.param("=   KILLED BY SIGNAL: 9 (Killed)", None, id="Intel MPI"),
        pytest.param("slurmstepd: error: Detected 1 oom_kill event in StepId=5.0.", None, id="Slurm"),
        pytest.param(
            "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.", None, id="Ray"
        ),
    ],
)
def test_killed_first(log: str, line: str | None) -> None:
    """Launchers and parents say which process was killed before all others."""
    assert killed_child(["epoch 1", *log.splitlines(), ""]) == KilledChild(line or log, is_first=True)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("Killed", id="shell"),
        pytest.param("[1,0]<stderr>: Killed", id="behind a prefix"),
        pytest.param("train.sh: line 3:    71 Killed                  python train.py", id="bash"),
        pytest.param("srun: error: gpu-1: task 0: Killed", id="srun"),
        pytest.param("Process 0 exit with status code 137.", id="horovodrun"),
    ],
)
def test_killed_perhaps_because_of_another(line: str) -> None:
    """They say so as well of those that they have killed themselves."""
    assert killed_child([line]) == KilledChild(line, is_first=False)


@pytest.mark.parametrize(
    "log",
    [
        pytest.param("", id="empty"),
        pytest.param("ValueError: lr", id="an error"),
        pytest.param(TORCHRUN.format(other=-9, first=1, said="x"), id="torchrun has killed the others"),
        pytest.param("Killed by a dragon", id="a sentence"),
        pytest.param("RuntimeError: DataLoader worker (pid 42) is killed by signal: Bus error.", id="another signal"),
        pytest.param("mpirun noticed that process rank 1 with PID 7 on node a exited on signal 11 (x).", id="a crash"),
    ],
)
def test_nobody_was_killed(log: str) -> None:
    """Other ends are none of SIGKILL."""
    assert killed_child(log.splitlines()) is None
