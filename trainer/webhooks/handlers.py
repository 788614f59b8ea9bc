"""The webhooks: from the requests of the API server to the checks, and back."""

from __future__ import annotations

from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING

from trainer.api.trainingruntime import (
    CLUSTER_TRAINING_RUNTIMES,
    TRAINING_RUNTIMES,
    ClusterTrainingRuntime,
    TrainingRuntime,
)
from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer.framework.plugin_api.errors import INTERNAL
from trainer.kube.metrics import Metrics
from trainer.kube.webhook.admission import AdmissionResponse
from trainer.webhooks.admission_warnings import advise_on_amounts
from trainer.webhooks.defaults import default_runtime, default_train_job
from trainer.webhooks.metrics import AdmissionSeries
from trainer.webhooks.nodes import default_nodes
from trainer.webhooks.runtime import review_runtime
from trainer.webhooks.train_job import review_train_job

if TYPE_CHECKING:
    from trainer.framework.pipeline import Pipeline
    from trainer.framework.plugin_api.review import Review
    from trainer.framework.runtimes.runtimes import RuntimeSource
    from trainer.kube.objects import Object
    from trainer.kube.webhook.admission import AdmissionHandler, AdmissionRequest
    from trainer.kube.webhook.server import WebhookServer

RESOURCES = (TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)
"""What is admitted."""
_WARNINGS = 4
"""Amounts that are written wrong of which the author is warned; the refusal names all."""


class Admission:
    """Admits TrainJobs and runtimes.

    Args:
        pipeline: the plugins.
        runtimes: where TrainJobs' runtimes are looked up.
        metrics: where the series of `AdmissionSeries` go. Defaults to nowhere.
    """

    def __init__(self, pipeline: Pipeline, runtimes: RuntimeSource, *, metrics: Metrics | None = None) -> None:
        self._pipeline = pipeline
        self._runtimes = runtimes
        self._series = (metrics or Metrics()).series(AdmissionSeries)

    def register(self, server: WebhookServer) -> None:
        """Serve a mutating and a validating webhook for each kind, at the paths of config/webhook."""
        for resource in RESOURCES:
            is_train_job = resource == TRAIN_JOBS
            default: AdmissionHandler = self.default_train_job if is_train_job else self.default_runtime
            validate: AdmissionHandler = self.validate_train_job if is_train_job else self.validate_runtime
            kind = resource.kind.lower()
            path = f"{resource.group.replace('.', '-')}-{resource.version}-{kind}"
            for verb, name, handler in (("mutate", "defaulter", default), ("validate", "validator", validate)):
                measured = self._series.measured(resource.kind, handler)
                server.register(f"/{verb}-{path}", f"{name}.{kind}.{resource.group}", measured)

    @staticmethod
    def prepare() -> None:
        """Do what would make the first requests wait; it takes a tenth of a second and may run in any thread."""
        for model in (TrainJob, TrainingRuntime, ClusterTrainingRuntime):
            model.prepare_strict_reading()

    async def default_train_job(self, request: AdmissionRequest) -> AdmissionResponse:
        """Fill in what a TrainJob leaves out."""
        if request.object is None or request.subresource:
            return AdmissionResponse.allow()
        obj = default_train_job(request.object, request.old_object)
        old = _placed(request.old_object, request) if request.old_object is not None else None
        obj = await default_nodes(_placed(obj, request), self._runtimes, old)
        return AdmissionResponse.mutate(obj, tuple(islice(advise_on_amounts(request.object), _WARNINGS)))

    async def default_runtime(self, request: AdmissionRequest) -> AdmissionResponse:
        """Fill in what a runtime leaves out."""
        if request.object is None or request.subresource:
            return AdmissionResponse.allow()
        return AdmissionResponse.mutate(default_runtime(request.object, request.old_object))

    async def validate_train_job(self, request: AdmissionRequest) -> AdmissionResponse:
        """Refuse a TrainJob that could not be built, and changes that come too late."""
        if request.object is None or request.subresource:
            return AdmissionResponse.allow()
        obj = _placed(request.object, request)
        old = _placed(request.old_object, request) if request.old_object is not None else None
        return _response(await review_train_job(obj, old, self._pipeline, self._runtimes))

    async def validate_runtime(self, request: AdmissionRequest) -> AdmissionResponse:
        """Refuse a runtime on which no TrainJob could be built, and changes of its spec."""
        if request.object is None or request.subresource:
            return AdmissionResponse.allow()
        return _response(review_runtime(_placed(request.object, request), request.old_object, self._pipeline))


def _placed(obj: Object, request: AdmissionRequest) -> Object:
    """The object with the kind and namespace of the request, which it may leave out."""
    metadata = dict(obj.get("metadata") or {})
    if request.namespace:
        metadata["namespace"] = request.namespace
    types = {"apiVersion": request.resource.api_version, "kind": request.resource.kind}
    return obj | types | {"metadata": metadata}


def _response(review: Review) -> AdmissionResponse:
    warnings = [str(warning) for warning in review.warnings]
    internal = [error for error in review.errors if error.reason == INTERNAL]
    if internal:
        message = "; ".join(map(str, internal))
        return AdmissionResponse.fail(HTTPStatus.INTERNAL_SERVER_ERROR, INTERNAL, message, warnings=warnings)
    if review.errors:
        return AdmissionResponse.deny(review.errors, warnings=warnings)
    return AdmissionResponse.allow(warnings)
