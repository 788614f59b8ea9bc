"""Validates OptimizationJobs: their own rules, and those of the TrainJobs that their trials will be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.api.trainingruntime import Runtime
from trainer.api.trainjob import TrainJob
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.errors import AdmissionWarning, BuildError, Finding, Review
from trainer.framework.runtimes.alternatives import Alternatives
from trainer.framework.runtimes.default_gang import DefaultGang
from trainer.framework.runtimes.runtimes import RuntimeNotFoundError, RuntimeSource, read_runtime, runtime_place
from trainer.kube.client import Client
from trainer.kube.errors import NotFoundError
from trainer.kube.metrics import Metrics
from trainer.kube.objects import Object, mapping_at
from trainer.kube.webhook.admission import AdmissionRequest, AdmissionResponse, Operation
from trainer.kube.webhook.server import WebhookServer
from trainer.v1alpha1.admission import review_train_job as review_released
from trainer.v1alpha1.discovery import Version
from trainer.webhooks.handlers import AdmissionSeries, placed, response_of
from trainer.webhooks.train_job import review_train_job
from trainer_sweeps.api.optimizationjob import OptimizationJob
from trainer_sweeps.api.spec import SearchSpace
from trainer_sweeps.trials.train_job import train_job_of

_TEMPLATE: Final = "spec.trainJobTemplate"
_GENERATED: Final = "abcde"
"""Stands for what the API server appends to `metadata.generateName`."""
SUSPENDED: Final = (
    "is true: each trial waits until somebody resumes it, and the sweep with it; leave it out, and set spec.suspend of "
    "the sweep to have it begin later"
)


class SweepAdmission:
    """Admits OptimizationJobs.

    Args:
        pipeline: reviews the TrainJobs that trials will be.
        client: reads their runtimes.
        version: of the TrainJobs that the cluster serves. Default: v2alpha1.
        metrics: of the webhooks. Default: None, nobody's.
    """

    def __init__(
        self, pipeline: Pipeline, client: Client, *, version: Version = "v2alpha1", metrics: Metrics | None = None
    ) -> None:
        self._pipeline = pipeline
        self._runtimes = StoredRuntimes(client, pipeline.gang)
        self._version = version
        self._series = (metrics or Metrics()).series(AdmissionSeries)

    def register(self, server: WebhookServer) -> None:
        """Serve the validating webhook, at the path of config/webhook or config/v1alpha1/webhook."""
        kind, group = OPTIMIZATION_JOBS.kind, OPTIMIZATION_JOBS.group
        path = f"/validate-{group.replace('.', '-')}-{self._version}-{kind.lower()}"
        server.register(path, f"validator.{kind.lower()}.{group}", self._series.measured(kind, self.validate))

    async def validate(self, request: AdmissionRequest) -> AdmissionResponse:
        """Refuse a sweep whose trials would be refused; what may change later cannot make it wrong."""
        if request.object is None or request.subresource or request.operation is not Operation.CREATE:
            return AdmissionResponse.allow()
        obj = placed(request.object, request)
        return response_of(await review_sweep(obj, self._pipeline, self._runtimes, self._version))


class StoredRuntimes:
    """A `RuntimeSource` that asks the API server, as sweeps are created seldom and often right after their runtime.

    `gang` is what trials get on a runtime without podGroupPolicy.
    """

    def __init__(self, client: Client, gang: DefaultGang) -> None:
        self._client = client
        self._gang = gang

    async def of(self, train_job: TrainJob) -> Runtime:
        """See `RuntimeSource.of`."""
        resource, key = runtime_place(train_job)
        try:
            found = await self._client.get(resource, key.name, key.namespace or None)
        except NotFoundError:
            raise RuntimeNotFoundError(resource.kind, key, Alternatives()) from None
        return read_runtime(resource, self._gang.applied(found))


async def review_sweep(
    obj: Object, pipeline: Pipeline, runtimes: RuntimeSource, version: Version = "v2alpha1", *, must_exist: bool = True
) -> Review:
    """Errors that refuse a new sweep, and warnings for its author; paths are those of the OptimizationJob.

    Args:
        obj: the OptimizationJob.
        pipeline: the plugins.
        runtimes: finds the runtime of its trials.
        version: of its template, and of the TrainJobs that the cluster serves. Default: v2alpha1.
        must_exist: whether a missing runtime is an error; that of a file may be in the cluster. Default: yes.
    """
    try:
        fields = {name: value for name, value in obj.items() if name != "status"}
        sweep = OptimizationJob.from_object(fields, strict=True)
    except InvalidObjectError as error:
        return Review.of(error.errors)
    sample = _sample(obj, sweep, version)
    if version == "v1alpha1":
        review = await review_released(sample, None, pipeline, runtimes, must_exist=must_exist)
    else:
        review = await review_train_job(sample, None, pipeline, _Existing(runtimes) if must_exist else runtimes)
    findings = [*_translated((*review.errors, *review.warnings), sweep)]
    if sample["spec"].get("suspend"):
        findings.append(AdmissionWarning(f"{_TEMPLATE}.spec.suspend", SUSPENDED))
    return Review.of(findings)


class _Existing:
    """Makes a missing runtime an error: TrainJobs of v2alpha1 wait for it, and a sweep would with all of its trials."""

    def __init__(self, runtimes: RuntimeSource) -> None:
        self._runtimes = runtimes

    async def of(self, train_job: TrainJob) -> Runtime:
        try:
            return await self._runtimes.of(train_job)
        except RuntimeNotFoundError as error:
            raise BuildError(*error.errors) from None


def _sample(obj: Object, sweep: OptimizationJob, version: Version) -> Object:
    """The last trial, which has the longest name, with a value of each parameter."""
    named = obj | {"metadata": mapping_at(obj, "metadata") | {"name": _name(sweep)}}
    assignment = {each.name: _value(each.search_space) for each in sweep.spec.parameters}
    sample = train_job_of(named, sweep.spec, sweep.spec.num_trials, assignment, version)
    del sample["metadata"]["ownerReferences"]  # a sweep that is checked may have no uid yet
    return sample


def _name(sweep: OptimizationJob) -> str:
    return sweep.metadata.name or f"{sweep.metadata.generate_name or ''}{_GENERATED}"


def _value(space: SearchSpace) -> str:
    interval = space.uniform or space.log_uniform
    return interval.min if interval is not None else space.categorical.choices[0] if space.categorical else ""


def _translated(findings: tuple[Finding, ...], sweep: OptimizationJob) -> Iterator[Finding]:
    """Findings about a trial with the paths of its sweep; those about the runtime keep theirs."""
    for finding in findings:
        field = finding.field
        if field == "metadata.name":
            trial = f"{_name(sweep)}-trial-{sweep.spec.num_trials}"
            yield replace(finding, message=f"a trial is called {trial}: {finding.message}")
        elif field.partition(".")[0].partition("[")[0] in {"spec", "metadata"}:
            yield replace(finding, field=f"{_TEMPLATE}.{field}")
        else:
            yield finding
