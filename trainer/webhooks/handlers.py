"""The admission webhooks, and their series by kind and operation."""

from __future__ import annotations

from http import HTTPStatus
from itertools import islice
from time import perf_counter
from typing import ClassVar

from prometheus_client import CollectorRegistry, Counter

from trainer.api.trainingruntime import (
    CLUSTER_TRAINING_RUNTIMES,
    TRAINING_RUNTIMES,
    ClusterTrainingRuntime,
    TrainingRuntime,
)
from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.errors import INTERNAL, Review
from trainer.framework.runtimes.runtimes import RuntimeSource
from trainer.kube.metrics import Metrics
from trainer.kube.metrics.histograms import BoundHistogram, QuickHistogram
from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer.kube.webhook.admission import AdmissionHandler, AdmissionRequest, AdmissionResponse, Operation
from trainer.kube.webhook.server import WebhookServer
from trainer.webhooks.defaults import default_runtime, default_train_job
from trainer.webhooks.runtime import review_runtime
from trainer.webhooks.train_job import quantity_warnings, review_train_job

RESOURCES = (TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)
"""The kinds with webhooks."""
_WARNINGS = 4
"""Wrong quantities that the author is warned of; the refusal names all."""
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""Seconds; the API server waits for 30 at most."""

_LABELS = ("kind", "operation")


class AdmissionSeries:
    """Durations and refusals; every replica serves webhooks, so take the sum over them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = QuickHistogram(
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

        def bind(operation: Operation) -> tuple[BoundHistogram, Counter]:
            labels = kind, operation.value
            return self._seconds.labels(*labels), self._refusals.labels(*labels)

        # Exposed with 0, so that `rate()` sees the first one.
        bound = {each: bind(each) for each in (Operation.CREATE, Operation.UPDATE)}

        async def handle(request: AdmissionRequest) -> AdmissionResponse:
            seconds, refusals = bound.get(request.operation) or bind(request.operation)
            began = perf_counter()
            try:
                response = await handler(request)
            finally:
                seconds.observe(perf_counter() - began)
            if not response.allowed:
                refusals.inc()
            return response

        return handle


class AdmissionHandlers:
    """Admits TrainJobs and runtimes."""

    resources: ClassVar[tuple[Resource, ...]] = RESOURCES

    def __init__(self, pipeline: Pipeline, runtimes: RuntimeSource, *, metrics: Metrics | None = None) -> None:
        self._pipeline = pipeline
        self._runtimes = runtimes
        self._series = (metrics or Metrics()).series(AdmissionSeries)

    def register(self, server: WebhookServer) -> None:
        """Serve a mutating and a validating webhook for each kind, at the paths of config/webhook."""
        for resource in self.resources:
            is_train_job = resource.kind == TRAIN_JOBS.kind
            default: AdmissionHandler = self.default_train_job if is_train_job else self.default_runtime
            validate: AdmissionHandler = self.validate_train_job if is_train_job else self.validate_runtime
            kind = resource.kind.lower()
            path = f"{resource.group.replace('.', '-')}-{resource.version}-{kind}"
            for verb, name, handler in (("mutate", "defaulter", default), ("validate", "validator", validate)):
                measured = self._series.measured(resource.kind, handler)
                server.register(f"/{verb}-{path}", f"{name}.{kind}.{resource.group}", measured)

    @staticmethod
    def prepare() -> None:
        """Compile the schemas before the first request and reconcile; takes a fifth of a second, in any thread."""
        for model in (TrainJob, TrainingRuntime, ClusterTrainingRuntime):
            model.prepare()

    async def default_train_job(self, request: AdmissionRequest) -> AdmissionResponse:
        """Set the defaults of a TrainJob."""
        if request.object is None or request.subresource:
            return AdmissionResponse.allow()
        obj = default_train_job(request.object, request.old_object)
        return changed(request.object, obj, tuple(islice(quantity_warnings(request.object), _WARNINGS)))

    async def default_runtime(self, request: AdmissionRequest) -> AdmissionResponse:
        """Set the defaults of a runtime."""
        if request.object is None or request.subresource:
            return AdmissionResponse.allow()
        return changed(request.object, default_runtime(request.object, request.old_object))

    async def validate_train_job(self, request: AdmissionRequest) -> AdmissionResponse:
        """Refuse a TrainJob that cannot be built, and changes of immutable fields."""
        if request.object is None or request.subresource:
            return AdmissionResponse.allow()
        obj = placed(request.object, request)
        old = placed(request.old_object, request) if request.old_object is not None else None
        return response_of(await review_train_job(obj, old, self._pipeline, self._runtimes))

    async def validate_runtime(self, request: AdmissionRequest) -> AdmissionResponse:
        """Refuse a runtime on which no TrainJob can be built, and changes of its spec."""
        if request.object is None or request.subresource:
            return AdmissionResponse.allow()
        return response_of(review_runtime(placed(request.object, request), request.old_object, self._pipeline))


def changed(before: Object, after: Object, warnings: tuple[str, ...] = ()) -> AdmissionResponse:
    """The answer of a mutating webhook, without an object where nothing has changed."""
    return AdmissionResponse.allow(warnings) if before == after else AdmissionResponse.mutate(after, warnings)


def placed(obj: Object, request: AdmissionRequest) -> Object:
    """The object with the kind and namespace of the request."""
    metadata = dict(obj.get("metadata") or {})
    if request.namespace:
        metadata["namespace"] = request.namespace
    types = {"apiVersion": request.resource.api_version, "kind": request.resource.kind}
    return obj | types | {"metadata": metadata}


def response_of(review: Review) -> AdmissionResponse:
    """The answer to a review: internal errors go before those of the author."""
    warnings = [str(warning) for warning in review.warnings]
    internal = [error for error in review.errors if error.reason == INTERNAL]
    if internal:
        message = "; ".join(map(str, internal))
        return AdmissionResponse.fail(HTTPStatus.INTERNAL_SERVER_ERROR, INTERNAL, message, warnings=warnings)
    if review.errors:
        return AdmissionResponse.deny(review.errors, warnings=warnings)
    return AdmissionResponse.allow(warnings)
