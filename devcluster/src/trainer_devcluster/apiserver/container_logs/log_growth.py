"""Log growth: one look, in one thread, at all log files that are being followed, instead of one look for each of them.

Following is nearly always waiting: a thread and a timer of their own would cost each silent container as much as a
talkative one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trainer.kube.clock import Clock
    from trainer_devcluster.apiserver.container_logs.cri_log import LogReader

POLL_INTERVAL = 0.1
"""Seconds between two looks."""


@dataclass(slots=True, eq=False)
class _Follower:
    reader: LogReader
    is_over: Callable[[], bool]
    text: bytes = b""
    awake: anyio.Event = field(default_factory=anyio.Event)


class LogGrowth:
    """Waits for text on behalf of all who follow a log."""

    def __init__(self) -> None:
        self._followers: set[_Follower] = set()
        self._arrival = anyio.Event()

    async def more(self, reader: LogReader, is_over: Callable[[], bool]) -> bytes:
        """The next text of a log file that has been read to its end.

        Args:
            reader: that of the file; nobody else may use it meanwhile.
            is_over: says, at each look, that nothing will be written any more.

        Returns:
            b"" if it is over, or if the caller had better read by itself to get the error.
        """
        follower = _Follower(reader, is_over)
        self._followers.add(follower)
        self._arrival.set()
        try:
            await follower.awake.wait()
        finally:
            self._followers.discard(follower)
        return follower.text

    async def run(self, clock: Clock) -> None:
        """Look at the files of those who wait, until cancelled."""
        while True:
            if not self._followers:
                self._arrival = anyio.Event()
                await self._arrival.wait()
            await clock.sleep(POLL_INTERVAL)
            for follower in await anyio.to_thread.run_sync(_with_news, list(self._followers)):
                follower.awake.set()
            for follower in self._followers:
                if follower.is_over():
                    follower.awake.set()


def _with_news(followers: Iterable[_Follower]) -> list[_Follower]:
    found = []
    for follower in followers:
        try:
            if follower.reader.has_more():
                follower.text = follower.reader.read()
        except OSError:
            found.append(follower)
        if follower.text:
            found.append(follower)
    return found
