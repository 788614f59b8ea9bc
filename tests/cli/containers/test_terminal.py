"""The user's terminal."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import termios
from collections.abc import Iterator

import anyio
import pytest

from trainer.cli.containers.terminal import Terminal


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    master, slave = os.openpty()
    yield Terminal(slave)
    os.close(master)
    os.close(slave)


def test_raw(terminal: Terminal) -> None:
    """All keys arrive while it is handed over, and it is as before after any end."""
    before = termios.tcgetattr(terminal.descriptor)

    def use() -> None:
        with terminal.raw():
            flags = termios.tcgetattr(terminal.descriptor)[3]
            assert not flags & (termios.ISIG | termios.ECHO | termios.ICANON)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        use()
    assert termios.tcgetattr(terminal.descriptor) == before


async def test_sizes(terminal: Terminal) -> None:
    """The size comes at once, and again when it changes."""
    fcntl.ioctl(terminal.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    seen: list[tuple[int, int]] = []
    with anyio.fail_after(30):
        async for size in terminal.sizes():
            seen.append(size)
            if len(seen) == 2:
                break
            fcntl.ioctl(terminal.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 80, 0, 0))
            os.kill(os.getpid(), signal.SIGWINCH)
    assert seen == [(100, 30), (80, 20)]
