"""The history of metrics as JSON, for dashboards, at the metrics server.

It shows names, namespaces and metrics of all TrainJobs to all users that may get its paths, so it is served only with
the feature gate ProgressHistory.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec

from trainer.kube.manager.routes import HttpResponse
from trainer.kube.objects import ObjectKey
from trainer.progress.history import SeriesKind

if TYPE_CHECKING:
    from trainer.kube.manager.manager import Manager
    from trainer.kube.manager.routes import HttpRequest
    from trainer.progress.history import History, JobHistory

PREFIX = "/progress/v1"
"""Prefix of all paths, with the version of the format."""


class HistoryServer:
    """Serves a history."""

    def __init__(self, history: History) -> None:
        self._history = history

    def register(self, manager: Manager) -> None:
        """Add the routes to the manager's HTTP server; replicas that do not lead have no samples.

        Raises:
            ValueError: the paths are taken.
        """
        manager.serve(f"{PREFIX}/trainjobs", self.all_train_jobs)
        manager.serve(f"{PREFIX}/namespaces/{{namespace}}/trainjobs", self.train_jobs)
        manager.serve(f"{PREFIX}/namespaces/{{namespace}}/trainjobs/{{name}}", self.train_job)

    async def all_train_jobs(self, request: HttpRequest) -> HttpResponse:
        """The TrainJobs of all namespaces that have samples, without the samples."""
        return _refusal_of_parameters(request) or self._list(None)

    async def train_jobs(self, request: HttpRequest) -> HttpResponse:
        """The TrainJobs of one namespace that have samples, without the samples."""
        return _refusal_of_parameters(request) or self._list(request.parameters["namespace"])

    async def train_job(self, request: HttpRequest) -> HttpResponse:
        """The samples of one TrainJob."""
        refusal = _refusal_of_parameters(request)
        if refusal is not None:
            return refusal
        key = ObjectKey(request.parameters["namespace"], request.parameters["name"])
        job = self._history.of(key)
        if job is None:
            return _error(
                HTTPStatus.NOT_FOUND,
                f"there are no samples of TrainJob {key.name} in namespace {key.namespace}: samples are kept of "
                "TrainJobs that run and report metrics, by the manager that leads, since it was started",
            )
        return _json(_describe(key, job) | _samples(job))

    def _list(self, namespace: str | None) -> HttpResponse:
        items = [_describe(key, job) for key, job in self._history if namespace in {None, key.namespace}]
        return _json({"items": items})


def _describe(key: ObjectKey, job: JobHistory) -> dict[str, Any]:
    return {"namespace": key.namespace, "name": key.name, "uid": job.uid, "lastSampleTime": job.last_time}


def _samples(job: JobHistory) -> dict[str, Any]:
    metrics, progress = [], []
    for series in job.series():
        if series.kind is SeriesKind.PROGRESS:
            progress.append({"name": series.name, "samples": series.samples})
        else:
            metrics.append({"name": series.name, "kind": series.kind, "samples": series.samples})
    return {"metrics": metrics, "progress": progress}


def _refusal_of_parameters(request: HttpRequest) -> HttpResponse | None:
    if not request.query:
        return None
    names = ", ".join(sorted(request.query))
    return _error(HTTPStatus.BAD_REQUEST, f"there are no query parameters here; take out: {names}")


def _error(status: HTTPStatus, message: str) -> HttpResponse:
    return _json({"error": message}, status)


def _json(content: object, status: HTTPStatus = HTTPStatus.OK) -> HttpResponse:
    return HttpResponse(msgspec.json.encode(content), "application/json", status)
