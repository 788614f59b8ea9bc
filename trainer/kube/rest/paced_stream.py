"""Reading a stream now and then, for a thousand logs at once.

A log of a hundred lines a second arrives in as many packets. A reader that is woken by each does a hundred times the
work of one that reads twice a second and finds what the kernel has kept. Back-pressure follows from it: while nobody
reads, TCP holds up the server, and the log stays on the node's disk.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator

import aiohttp
import anyio.lowlevel

from trainer.kube.clock import Clock
from trainer.kube.memory import shrink_tls_buffer
from trainer.kube.rest.fair_scheduler import FairScheduler

READ_SIZE = 16 * 1024
"""Bytes that one read takes before it has to pause, though more has come: a millisecond of work."""

MAX_SPEED_UP = 128
"""How many times as often a stream is read that has more than one read takes.

At a pace of 0.5 s that is at most 4 MiB/s, so one pod that floods its log cannot keep the event loop busy, and a reader
that is an hour behind an ordinary log has caught up within seconds.
"""


async def paced_chunks(
    response: aiohttp.ClientResponse, pace: float, *, clock: Clock, scheduler: FairScheduler
) -> AsyncGenerator[bytes, None]:
    """The body of a response, in chunks between whose reads there are `pace` seconds.

    Closed before the end of the body, it closes the connection.
    """
    body = response.content
    # Streams that were opened together do not stay together.
    pause = pace * random.random()  # noqa: S311 - not a secret
    if (transport := _transport(response)) is not None:
        shrink_tls_buffer(transport)
    try:
        while chunk := await body.readany():
            # What the kernel has kept comes in the next rounds of the event loop.
            while len(chunk) < READ_SIZE:
                await anyio.lowlevel.checkpoint()
                more = body.read_nowait()
                if not more:
                    break
                chunk += more
            else:
                pause = pace / MAX_SPEED_UP
            if (transport := _transport(response)) is not None:
                transport.pause_reading()
            yield chunk
            # Not kept during the pause.
            del chunk
            await clock.sleep(pause)
            pause = pace
            await scheduler.next_turn()
            if transport is not None:
                transport.resume_reading()
    finally:
        if (transport := _transport(response)) is not None:
            transport.abort()


def _transport(response: aiohttp.ClientResponse) -> asyncio.Transport | None:
    """None once the whole body has come."""
    return response.connection.transport if response.connection is not None else None
