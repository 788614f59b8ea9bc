"""Endpoint: answers the admission requests to one path.

| what happens | HTTP status | the API server |
|---|---|---|
| the handler answers | 200 | allows, changes or refuses |
| the handler raises a `KubeError` | 200 | refuses: 500 InternalError with its text |
| the handler raises anything else | 200 | refuses: 500 InternalError that says where to look; never with a traceback |
| the handler takes too long | 200 | refuses: 504 Timeout |
| the request makes no sense, or its body does not come | 4xx | follows the webhook's failurePolicy |
| too many requests are being answered | 503, Retry-After | tries again, then follows the webhook's failurePolicy |

So a handler that fails closes the door, also where failurePolicy is Ignore, as in controller-runtime.

Log events of a handler carry `webhook`, `request_id` (the uid of the review), `operation`, `resource`, `namespace`,
`name` and `user`.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import anyio
import structlog
from aiohttp import web

from trainer.kube.clock import move_on_after
from trainer.kube.errors import KubeError, causes_of
from trainer.kube.serving.sparse_log import SparseLog
from trainer.kube.webhook.admission import AdmissionResponse
from trainer.kube.webhook.body import JSON, HttpError, failure, overloaded
from trainer.kube.webhook.memory_budget import LIGHT, MemoryBudget, weight_of
from trainer.kube.webhook.review import AdmissionReview, ReviewError
from trainer.kube.webhook.steps import Steps, at_once, with_pauses

if TYPE_CHECKING:
    from trainer.kube.clock import Clock
    from trainer.kube.metrics.webhooks import WebhookMetrics
    from trainer.kube.webhook.admission import AdmissionHandler, AdmissionRequest
    from trainer.kube.webhook.body import BodyReader

log = structlog.get_logger(__name__)

_T = TypeVar("_T")

LONGEST_TIMEOUT = 30.0
"""Seconds; the API server accepts no longer ones in a webhook configuration."""

_DURATION = re.compile(r"(?:(?P<minutes>\d+)m)?(?:(?P<seconds>\d+(?:\.\d+)?)s)?(?:(?P<milliseconds>\d+)ms)?")


@dataclass(frozen=True, slots=True)
class Limits:
    """What all endpoints of a server share."""

    reader: BodyReader
    """Reads the bodies."""
    concurrency: anyio.CapacityLimiter
    """Lets so many requests be answered at a time."""
    memory: MemoryBudget
    """Lets so many bytes be decoded at a time."""
    timeout: float
    """Seconds for a request that does not say how long the API server waits."""


class AdmissionEndpoint:
    """Asks the handler of one webhook.

    Args:
        name: of the webhook, for messages and the log.
        handler: see `AdmissionHandler`.
        clock: for limits and durations.
        limits: see its class.
        metrics: series of this webhook.
    """

    def __init__(
        self, name: str, handler: AdmissionHandler, *, clock: Clock, limits: Limits, metrics: WebhookMetrics
    ) -> None:
        self.name = name
        self._handler = handler
        self._clock = clock
        self._limits = limits
        self._metrics = metrics
        self._refused = SparseLog("refused webhook request", clock=clock, webhook=name)

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Answer one request, whatever it is."""
        started = self._clock.monotonic()
        with self._metrics.in_flight.track_inprogress():
            try:
                code, response = await self._answer(request)
            except HttpError as error:
                self._refused.warning(code=error.code, error=str(error))
                code, response = error.code, failure(error)
        self._metrics.answered(code)
        self._metrics.latency_seconds.observe(self._clock.monotonic() - started)
        return response

    async def _answer(self, request: web.BaseRequest) -> tuple[int, web.Response]:
        budget = time_budget(request.query.get("timeout", ""), self._limits.timeout)
        deadline = self._clock.monotonic() + budget
        async with self._limits.reader.reading(request) as body:
            weight = weight_of(body)
            # A body that does not come takes nobody's place, nor does one that waits for memory.
            await self._acquire_memory(weight, deadline - self._clock.monotonic())
            try:
                await self._acquire_slot(deadline - self._clock.monotonic())
                try:
                    return await self._decide(body, budget, deadline, is_heavy=weight > LIGHT)
                finally:
                    self._limits.concurrency.release()
            finally:
                self._limits.memory.release(weight)

    async def _decide(
        self, body: bytearray, budget: float, deadline: float, *, is_heavy: bool
    ) -> tuple[int, web.Response]:
        review = await self._decode(body, is_heavy=is_heavy)
        with structlog.contextvars.bound_contextvars(**self._identity(review.request)):
            async with move_on_after(self._clock, deadline - self._clock.monotonic()) as limit:
                code, response = await self._ask(review.request)
            if limit.cancelled_caught:
                log.warning("webhook took too long", seconds=budget)
                text = f"webhook {self.name} did not decide within {budget:g} s"
                code, response = 504, AdmissionResponse.fail(504, "Timeout", text)
            return await self._encode(review, code, response, is_heavy=is_heavy)

    async def _acquire_slot(self, seconds: float) -> None:
        """Be one of the requests that are answered at a time, or give up waiting for it."""
        concurrency = self._limits.concurrency
        try:
            concurrency.acquire_nowait()
        except anyio.WouldBlock:
            async with move_on_after(self._clock, seconds) as limit:
                await concurrency.acquire()
            if limit.cancelled_caught:
                text = f"{concurrency.total_tokens} requests are being answered (max_concurrent)"
                raise overloaded(text) from None

    async def _acquire_memory(self, weight: int, seconds: float) -> None:
        """Have room for a review with all that is decoded from it, or give up waiting for it."""
        memory = self._limits.memory
        if weight > memory.total:
            text = f"the review may take {weight} bytes of memory, more than {memory.total} (max_decoded_bytes)"
            raise HttpError(413, "RequestEntityTooLarge", text)
        try:
            await memory.acquire(weight, self._clock, seconds)
        except TimeoutError:
            text = f"reviews of {memory.used} of {memory.total} bytes are being answered (max_decoded_bytes)"
            raise overloaded(text) from None

    async def _take(self, steps: Steps[_T], *, is_heavy: bool) -> _T:
        return await with_pauses(steps, self._clock) if is_heavy else at_once(steps)

    async def _decode(self, body: bytearray, *, is_heavy: bool) -> AdmissionReview:
        try:
            return await self._take(AdmissionReview.decoding(body), is_heavy=is_heavy)
        except ReviewError as error:
            raise HttpError(400, "BadRequest", str(error)) from error

    def _identity(self, request: AdmissionRequest) -> dict[str, str]:
        subresource = f"/{request.subresource}" if request.subresource else ""
        return {
            "webhook": self.name,
            "request_id": request.uid,
            "operation": str(request.operation),
            "resource": request.resource.qualified_name + subresource,
            "namespace": request.namespace,
            "name": request.name,
            "user": request.username,
        }

    async def _ask(self, request: AdmissionRequest) -> tuple[int, AdmissionResponse]:
        """The handler's answer with the code for the metrics."""
        try:
            response = await self._handler(request)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # It awaited something that others have cancelled; unanswered, the connection would just break.
            return 500, self._failed(request, RuntimeError(f"the handler was cancelled from within: {error}"))
        except Exception as error:
            return 500, self._failed(request, error)
        return 200, response

    def _failed(self, request: AdmissionRequest, error: Exception) -> AdmissionResponse:
        causes = causes_of(error)
        if all(isinstance(cause, KubeError) for cause in causes):
            text = "; ".join(map(str, causes))
            log.warning("webhook could not decide", error=text)
            return AdmissionResponse.fail(500, "InternalError", f"webhook {self.name} could not decide: {text}")
        self._metrics.panics.inc()
        log.error("webhook failed", exc_info=error)
        text = f"webhook {self.name} failed; its log has the reason under request_id {request.uid}"
        return AdmissionResponse.fail(500, "InternalError", text)

    async def _encode(
        self, review: AdmissionReview, code: int, response: AdmissionResponse, *, is_heavy: bool
    ) -> tuple[int, web.Response]:
        try:
            body = await self._take(review.encoding(response), is_heavy=is_heavy)
        except Exception as error:
            code, body = 500, review.encode(self._failed(review.request, error))
        return code, web.Response(body=body, content_type=JSON)


def time_budget(text: str, default: float) -> float:
    """Seconds in which a request must be answered so that the answer still reaches the API server.

    Args:
        text: query parameter `timeout`, a duration such as `5s`, after which the API server gives up.
        default: seconds for when it is not there or makes no sense.
    """
    match = _DURATION.fullmatch(text)
    parts = {name: float(value) for name, value in (match.groupdict() if match else {}).items() if value}
    seconds = parts.get("minutes", 0) * 60 + parts.get("seconds", 0) + parts.get("milliseconds", 0) / 1000
    limit = min(seconds or default, LONGEST_TIMEOUT)
    return limit - min(0.5, limit / 10)
