"""Turns: which request is read and answered when, so that large ones take neither the memory nor the time of others.

Decoded JSON takes up to thirty times the memory of its text, and decoding 3 MiB of it a tenth of a second.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from aiohttp import web

from trainer.kube.clock import Clock, move_on_after
from trainer.kube.webhook.body import HttpError, read_body

SMALL = 64 * 1024
"""Bytes of a body that waits for no large one: most reviews have some kilobytes."""
MAX_BODY_BYTES = 3 * 1024 * 1024 + SMALL
"""An object and an old object of 1.5 MiB each, the most that an API server stores by default, and what is around."""
SMALL_AT_ONCE = 100
"""Small requests that are answered; others wait as long as they can."""
_LARGE_AT_ONCE = 8
"""Large bodies that are read, or wait to be answered."""
_ARRIVAL = 2.0
"""Seconds within which a large body arrives: an API server sends it at once, and others wait for its place."""
_REST = 3.0
"""Length of the pause after a large request, in that of its answer: large ones get a quarter of the time. A mere
checkpoint would not do, since an exchange with a peer takes several turns of the event loop."""
_LONGEST_REST = 1.0
"""Seconds; an answer takes longer when it waits for the API server, which takes no time of others."""


class Turns:
    """Reads bodies, and lets their requests be answered; the clock measures the pauses."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._small = anyio.Semaphore(SMALL_AT_ONCE, fast_acquire=True)
        self._large = anyio.Semaphore(_LARGE_AT_ONCE, fast_acquire=True)
        self._answering_large = anyio.Lock(fast_acquire=True)
        self._rests_until = 0.0

    @asynccontextmanager
    async def take(self, request: web.BaseRequest) -> AsyncIterator[bytearray]:
        """The body of a request, which may be answered within the context; waits without a limit.

        A body that does not arrive takes no turn of the small ones that are complete.

        Raises:
            HttpError: see `read_body`; or a large body did not arrive in time.
        """
        # A body that does not say how large it is may be as large as allowed.
        if (request.content_length or MAX_BODY_BYTES) <= SMALL:
            body = await read_body(request, MAX_BODY_BYTES)
            async with self._small:
                yield body
            return
        async with self._large:
            async with move_on_after(self._clock, _ARRIVAL) as arrival:
                body = await read_body(request, MAX_BODY_BYTES)
            if arrival.cancelled_caught:
                raise HttpError(408, "Timeout", f"the body did not arrive within {_ARRIVAL:g} seconds")
            async with self._answering_large, self._resting():
                yield body

    @asynccontextmanager
    async def _resting(self) -> AsyncIterator[None]:
        await self._clock.sleep(self._rests_until - self._clock.monotonic())
        began = self._clock.monotonic()
        try:
            yield
        finally:
            now = self._clock.monotonic()
            self._rests_until = now + min((now - began) * _REST, _LONGEST_REST)
