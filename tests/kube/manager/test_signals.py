"""Signals end a command in an orderly way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import anyio
import anyio.lowlevel
import pytest

from trainer.kube.manager.signals import run_until_signal


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_cancels_and_gives_the_exit_code(number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal cancels the command, which cleans up undisturbed by a second one; the exit code is 128 + N."""
    steps: list[str] = []
    if signal.getsignal(number) is signal.SIG_IGN:  # the tests themselves run under nohup
        monkeypatch.setattr(signal, "getsignal", lambda _: signal.SIG_DFL)

    async def command() -> int:
        try:
            os.kill(os.getpid(), number)
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                os.kill(os.getpid(), number)
                await anyio.lowlevel.checkpoint()
                steps.append("cleaned up")
        return 0

    assert run_until_signal(command) == 128 + number
    assert steps == ["cleaned up"]


def test_command_that_ends_by_itself() -> None:
    """Without a signal the exit code is that of the command."""

    async def command() -> int:
        await anyio.lowlevel.checkpoint()
        return 7

    assert run_until_signal(command) == 7


def test_ignored_signal_stays_ignored() -> None:
    """What the parent chose to ignore, as nohup does, does not end the command."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:

        async def command() -> int:
            os.kill(os.getpid(), signal.SIGHUP)
            await anyio.sleep(0.01)
            return 0

        assert run_until_signal(command) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_second_signal_kills_if_asked_to() -> None:
    """A command that does not end is left to the kernel by the second signal, even when its event loop hangs."""
    program = """
import time, anyio
from trainer.kube.manager.signals import run_until_signal

async def command():
    print("ready", flush=True)
    try:
        await anyio.sleep_forever()
    finally:
        print("cleaning up", flush=True)
        time.sleep(60)

run_until_signal(command, second_kills=True)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        while process.stdout.readline() != "cleaning up\n":
            """The log tells of the signal."""
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == -signal.SIGTERM
