"""Processes known by more than their number."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

import pytest

from trainer.cli.processes.process import describe_exit, stop_process
from trainer.cli.processes.supervisor import ProcessIdentity

StartProgram: TypeAlias = Callable[[str], subprocess.Popen[bytes]]

OBEDIENT = "import time; print('ready', flush=True); time.sleep(60)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {OBEDIENT}"


@pytest.fixture
def start() -> Iterator[StartProgram]:
    """Starts Python programs that print a line when they are ready, and ends what is left of them."""
    started: list[subprocess.Popen[bytes]] = []

    def starter(program: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        return process

    yield starter
    for process in started:
        process.kill()
        process.communicate()


def identity_of(process: subprocess.Popen[bytes]) -> ProcessIdentity:
    identity = ProcessIdentity.of(process.pid)
    assert identity is not None
    return identity


def test_identity_of_a_child_that_has_ended() -> None:
    """Until its parent has waited for it, a process that has ended has an identity for the parent, and runs no more."""
    child = subprocess.Popen(["/bin/true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    identity = ProcessIdentity.of_child(child.pid)

    assert identity.pid == child.pid
    assert ProcessIdentity.of(child.pid) is None
    assert not identity.is_running()
    child.wait()


def test_identity_of_this_process() -> None:
    """A running process is the one that was remembered, another start time is another process."""
    identity = ProcessIdentity.of(os.getpid())

    assert identity is not None
    assert identity.is_running()
    assert not replace(identity, start_time=identity.start_time - 1).is_running()
    assert not replace(identity, boot_id="an earlier boot").is_running()


async def test_stop_asks_first(start: StartProgram) -> None:
    """A process that heeds SIGTERM is not killed."""
    process = start(OBEDIENT)

    assert await stop_process(identity_of(process), grace_seconds=60)
    assert process.wait() == -signal.SIGTERM


async def test_stop_kills_after_grace(start: StartProgram) -> None:
    """A process that ignores SIGTERM is killed when the grace time is over."""
    process = start(STUBBORN)

    assert not await stop_process(identity_of(process), grace_seconds=0.05)
    assert process.wait() == -signal.SIGKILL


async def test_stop_never_hits_a_recycled_pid(start: StartProgram) -> None:
    """The pid of a process that has ended may belong to another one, which is left alone."""
    process = start(OBEDIENT)
    earlier = replace(identity_of(process), start_time=1)

    assert await stop_process(earlier, grace_seconds=0)
    assert process.poll() is None


@pytest.mark.parametrize(
    ("status", "words"),
    [
        pytest.param(0, "exited with code 0", id="success"),
        pytest.param(3, "exited with code 3", id="failure"),
        pytest.param(-signal.SIGKILL, "was ended by SIGKILL", id="signal"),
    ],
)
def test_describe_exit(status: int, words: str) -> None:
    """An exit status is reported in words."""
    assert describe_exit(status) == words
