"""Endpoint: answers the admission requests to one path.

| what happens | HTTP status | the API server |
|---|---|---|
| the handler answers | 200 | allows, changes or refuses |
| the handler raises a `KubeError` | 200 | refuses: 500 InternalError with its text |
| the handler raises anything else | 200 | refuses: 500 InternalError that says where to look; never with a traceback |
| the handler takes too long | 200 | refuses: 504 Timeout |
| the request makes no sense, or its body does not come | 4xx | follows the webhook's failurePolicy |
| too many requests are being answered | 503, Retry-After | tries again, then follows the webhook's failurePolicy |

So a handler that fails refuses the request, also where failurePolicy is Ignore, as in controller-runtime.

Log events of a handler carry `webhook`, `request_id` (the uid of the review), `operation`, `resource`, `namespace`,
`name` and `user`.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

import structlog
from aiohttp import web

from trainer.kube.clock import move_on_after
from trainer.kube.errors import KubeError, causes_of
from trainer.kube.logger import get_logger
from trainer.kube.serving.sparse_log import SparseLog
from trainer.kube.webhook.admission import AdmissionResponse
from trainer.kube.webhook.body import JSON, HttpError, failure, overloaded
from trainer.kube.webhook.budget import LIGHT, weight_of
from trainer.kube.webhook.review import AdmissionReview, ReviewError
from trainer.kube.webhook.steps import Steps, at_once, with_pauses

if TYPE_CHECKING:
    from trainer.kube.clock import Clock
    from trainer.kube.metrics.servers import WebhookMetrics
    from trainer.kube.webhook.admission import AdmissionHandler, AdmissionRequest
    from trainer.kube.webhook.body import BodyReader
    from trainer.kube.webhook.budget import Budget

log = get_logger(__name__)

_T = TypeVar("_T")

LONGEST_TIMEOUT = 30.0
"""Seconds; the API server accepts no longer ones in a webhook configuration."""

_NO_PLACE = "{0.total} requests are being answered (max_concurrent)"
_NO_MEMORY = "reviews of {0.used} of {0.total} bytes are being answered (max_decoded_bytes)"
_DURATION = re.compile(r"(?:(?P<minutes>\d+)m)?(?:(?P<seconds>\d+(?:\.\d+)?)s)?(?:(?P<milliseconds>\d+)ms)?")


@dataclass(frozen=True, slots=True)
class Limits:
    """What all endpoints of a server share."""

    reader: BodyReader
    """Reads the bodies."""
    concurrency: Budget
    """Lets so many requests be answered at a time."""
    memory: Budget
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
        self._metrics.in_flight += 1
        try:
            code, response = await self._answer(request, started)
        except HttpError as error:
            self._refused.warning(code=error.code, error=str(error))
            code, response = error.code, failure(error)
        finally:
            self._metrics.in_flight -= 1
        self._metrics.answered(code)
        self._metrics.latency_seconds.observe(self._clock.monotonic() - started)
        return response

    async def _answer(self, request: web.BaseRequest, started: float) -> tuple[int, web.Response]:
        seconds = time_budget(request.query.get("timeout", ""), self._limits.timeout)
        deadline, memory, concurrency = started + seconds, self._limits.memory, self._limits.concurrency
        async with self._limits.reader.reading(request) as body:
            weight = weight_of(body)
            if weight > memory.total:
                text = f"the review may take {weight} bytes of memory, more than {memory.total} (max_decoded_bytes)"
                raise HttpError(413, "RequestEntityTooLarge", text)
            # Neither a body that does not arrive nor one that waits for memory takes a place among those answered.
            await self._acquire(memory, weight, deadline, _NO_MEMORY)
            try:
                await self._acquire(concurrency, 1, deadline, _NO_PLACE)
                try:
                    return await self._decide(body, seconds, deadline, is_heavy=weight > LIGHT)
                finally:
                    concurrency.release(1)
            finally:
                memory.release(weight)

    async def _acquire(self, budget: Budget, amount: int, deadline: float, reason: str) -> None:
        """Have a share of what the reviews under way have together, or give up waiting for it."""
        try:
            await budget.acquire(amount, self._clock, deadline - self._clock.monotonic())
        except TimeoutError:
            raise overloaded(reason.format(budget)) from None

    async def _decide(
        self, body: bytearray, seconds: float, deadline: float, *, is_heavy: bool
    ) -> tuple[int, web.Response]:
        review = await self._decode(body, is_heavy=is_heavy)
        bound = structlog.contextvars.bind_contextvars(**self._identity(review.request))
        try:
            async with move_on_after(self._clock, deadline - self._clock.monotonic()) as limit:
                code, response = await self._ask(review.request)
            if limit.cancelled_caught:
                log.warning("webhook took too long", seconds=seconds)
                text = f"webhook {self.name} did not decide within {seconds:g} s"
                code, response = 504, AdmissionResponse.fail(504, "Timeout", text)
            return await self._encode(review, code, response, is_heavy=is_heavy)
        finally:
            structlog.contextvars.reset_contextvars(**bound)

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


@lru_cache(64)
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
