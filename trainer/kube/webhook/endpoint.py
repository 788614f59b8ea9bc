"""Endpoint: answers the admission requests to one path.

| what happens | HTTP status | the API server |
|---|---|---|
| the handler answers | 200 | allows, changes or refuses |
| the handler raises a `KubeError` | 200 | refuses: 500 InternalError with its text |
| the handler raises anything else | 200 | refuses: 500 InternalError that says where to look; never with a traceback |
| the handler takes too long | 200 | refuses: 504 Timeout |
| the request makes no sense | 4xx | follows the webhook's failurePolicy |
| its body does not come, or too many requests are being answered | 504 | follows the webhook's failurePolicy |

So a handler that fails refuses the request, also where failurePolicy is Ignore, as in controller-runtime.

Log events of a handler carry `webhook`, `request_id` (the uid of the review), `operation`, `resource`, `namespace`,
`name` and `user`.
"""

from __future__ import annotations

import asyncio
import re
from functools import lru_cache

import structlog
from aiohttp import web

from trainer.kube.clock import Clock, move_on_after
from trainer.kube.errors import KubeError, causes_of
from trainer.kube.logger import get_logger
from trainer.kube.metrics.servers import WebhookMetrics
from trainer.kube.serving.sparse_log import SparseLog
from trainer.kube.webhook.admission import AdmissionHandler, AdmissionRequest, AdmissionResponse
from trainer.kube.webhook.body import JSON, HttpError, failure
from trainer.kube.webhook.review import AdmissionReview, ReviewError
from trainer.kube.webhook.turns import Turns

log = get_logger(__name__)

REQUEST_TIMEOUT = 10.0
"""Seconds for the answer to a request that names no timeout, as timeoutSeconds of a webhook."""
LONGEST_TIMEOUT = 30.0
"""Seconds; the API server accepts no longer ones in a webhook configuration."""

_DURATION = re.compile(r"(?:(?P<minutes>\d+)m)?(?:(?P<seconds>\d+(?:\.\d+)?)s)?(?:(?P<milliseconds>\d+)ms)?")


class AdmissionEndpoint:
    """Asks the handler of one webhook.

    Args:
        name: of the webhook, for messages and the log.
        handler: see `AdmissionHandler`.
        clock: for the deadline and durations.
        turns: what all endpoints of a server share.
        metrics: series of this webhook.
    """

    def __init__(
        self, name: str, handler: AdmissionHandler, *, clock: Clock, turns: Turns, metrics: WebhookMetrics
    ) -> None:
        self.name = name
        self._handler = handler
        self._clock = clock
        self._turns = turns
        self._metrics = metrics
        self._refused = SparseLog("refused webhook request", clock=clock, webhook=name)

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Answer one request, whatever it is."""
        started = self._clock.monotonic()
        self._metrics.in_flight += 1
        try:
            code, response = await self._answer(request)
        except HttpError as error:
            self._refused.warning(code=error.code, error=str(error))
            code, response = error.code, failure(error)
        finally:
            self._metrics.in_flight -= 1
        self._metrics.answered(code)
        self._metrics.latency_seconds.observe(self._clock.monotonic() - started)
        return response

    async def _answer(self, request: web.BaseRequest) -> tuple[int, web.Response]:
        seconds = time_budget(request.query.get("timeout", ""), REQUEST_TIMEOUT)
        begun: list[AdmissionReview] = []
        async with move_on_after(self._clock, seconds) as deadline, self._turns.take(request) as body:
            review = self._decode(body)
            begun.append(review)
            with structlog.contextvars.bound_contextvars(**self._identity(review.request)):
                answer = self._encode(review, *await self._ask(review.request))
        if not deadline.cancelled_caught:
            return answer
        for review in begun:
            log.warning("webhook took too long", seconds=seconds, **self._identity(review.request))
            text = f"webhook {self.name} did not decide within {seconds:g} s"
            return self._encode(review, 504, AdmissionResponse.fail(504, "Timeout", text))
        text = f"within {seconds:g} s the body did not arrive, or too many others were being answered"
        raise HttpError(504, "Timeout", text)

    def _decode(self, body: bytearray) -> AdmissionReview:
        try:
            return AdmissionReview.decode(body)
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

    def _encode(self, review: AdmissionReview, code: int, response: AdmissionResponse) -> tuple[int, web.Response]:
        try:
            body = review.encode(response)
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
