"""Series of admission by kind and operation; those by webhook are in `trainer.kube.metrics.webhooks`."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from prometheus_client import Counter, Histogram

from trainer.kube.webhook.admission import Operation

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from trainer.kube.webhook.admission import AdmissionHandler, AdmissionRequest, AdmissionResponse

_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""Seconds; people wait for it with each kubectl apply, and the API server gives up after at most 30."""

_OPERATIONS = (Operation.CREATE, Operation.UPDATE)
"""What config/webhook asks for."""

_LABELS = ("kind", "operation")


class AdmissionSeries:
    """What admission takes, and what it refuses; every replica answers, so take the sum over all of them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            "trainer_admission_seconds",
            "Time in which a webhook of a kind, mutating or validating, decided.",
            _LABELS,
            buckets=_BUCKETS,
            registry=registry,
        )
        self._refusals = Counter(
            "trainer_admission_refusals_total",
            "Requests that were refused, mostly for errors in the object. Where no decision was reached, "
            "controller_runtime_webhook_requests_total counts a code of 500 or more instead.",
            _LABELS,
            registry=registry,
        )

    def measured(self, kind: str, handler: AdmissionHandler) -> AdmissionHandler:
        """The handler of a webhook for this kind, with its time and refusals counted."""
        # Bound, and present with 0 so that `rate()` sees the first.
        seconds = {each: self._seconds.labels(kind, each.value) for each in _OPERATIONS}
        refusals = {each: self._refusals.labels(kind, each.value) for each in _OPERATIONS}

        async def handle(request: AdmissionRequest) -> AdmissionResponse:
            operation = request.operation
            if operation not in seconds:
                seconds[operation] = self._seconds.labels(kind, operation.value)
                refusals[operation] = self._refusals.labels(kind, operation.value)
            started = perf_counter()
            try:
                response = await handler(request)
            finally:
                seconds[operation].observe(perf_counter() - started)
            if not response.allowed:
                refusals[operation].inc()
            return response

        return handle
