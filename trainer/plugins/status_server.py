"""Status server: what pods need to post their progress to it (KEP-2779), as Kubeflow Trainer (Go) gives it.

It is part of the manager while the gate TrainJobStatus is on. The containers that train get three variables and a
volume with a token of their service account, made for this very TrainJob, and with the certificates by which they
verify the server. What it accepts is in `trainer.progress.status_server`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from trainer.api.progress import status_audience, status_path
from trainer.api.trainjob import TrainJob
from trainer.framework import Component, PodConfigMap, PodSet, Reader, RuntimeInfo, Watch, by_name, upsert
from trainer.kube.objects import Object, ObjectKey
from trainer.workloads import JOBSETS

AUTHORITY_LABEL = "trainer.kubeflow.org/status-server-authority"
"""Label of the ConfigMaps with the certificates of the status server; only ConfigMaps with it are cached."""
CERTIFICATES = PodConfigMap("tls-config", AUTHORITY_LABEL)
"""The ConfigMaps with the certificates."""

VOLUME: Final = "kubeflow-trainer-token"
_DIRECTORY: Final = "/var/run/secrets/kubeflow/trainer"
_AUTHORITY, _TOKEN = "ca.crt", "token"
_TOKEN_SECONDS: Final = 3600


class StatusServerAccess:
    """Gives the pods that train what they need to post their progress.

    `authority` returns the certificates by which pods verify the server, as PEM; it is called when the server listens.
    """

    name = "status-server"
    ml_policy_sources = frozenset[str]()

    def __init__(self, reader: Reader, url: str, authority: Callable[[], bytes]) -> None:
        self._reader = reader
        self._url = url
        self._authority = authority

    def watches(self) -> Iterator[Watch]:
        """The ConfigMaps and the JobSets."""
        yield from CERTIFICATES.watches()

    def enforce_ml_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Set variables and mount the volume in all containers of nodes and their peers, or of an MPI launcher."""
        namespace = train_job.metadata.namespace or ""
        variables = {
            "KUBEFLOW_TRAINER_SERVER_URL": f"{self._url}{status_path(namespace, train_job.metadata.name)}",
            "KUBEFLOW_TRAINER_SERVER_CA_CERT": f"{_DIRECTORY}/{_AUTHORITY}",
            "KUBEFLOW_TRAINER_SERVER_TOKEN": f"{_DIRECTORY}/{_TOKEN}",
        }
        for pods in self._posting(info, train_job):
            upsert(pods.volumes, [_volume(namespace, train_job.metadata.name)], by_name)
            for container in pods.containers:
                container.set_env({"name": name, "value": value} for name, value in variables.items())
                container.mount([{"name": VOLUME, "mountPath": _DIRECTORY, "readOnly": True}])

    def build(self, info: RuntimeInfo, train_job: TrainJob) -> Iterator[Component]:
        """The ConfigMap with the certificates, which follows them while the pods run."""
        if self._posting(info, train_job):
            yield CERTIFICATES.component(train_job, {_AUTHORITY: self._authority().decode()})

    def _posting(self, info: RuntimeInfo, train_job: TrainJob) -> list[PodSet]:
        """The pods that train and may get a token; none of a JobSet from before the gate was on can change."""
        if not info.trains:
            return []
        posting = [info.launcher] if info.launcher else info.training_pod_sets
        jobset = self._reader.get(JOBSETS, ObjectKey(train_job.metadata.namespace or "", train_job.metadata.name))
        if jobset is None:
            return posting
        with_token = {
            job["name"]
            for job in jobset["spec"].get("replicatedJobs") or []
            for volume in job["template"]["spec"]["template"]["spec"].get("volumes") or []
            if volume["name"] == VOLUME
        }
        return [pods for pods in posting if pods.name in with_token]


def _volume(namespace: str, name: str) -> Object:
    token = {"audience": status_audience(namespace, name), "expirationSeconds": _TOKEN_SECONDS, "path": _TOKEN}
    authority = {"name": CERTIFICATES.name(name), "items": [{"key": _AUTHORITY, "path": _AUTHORITY}]}
    return {"name": VOLUME, "projected": {"sources": [{"serviceAccountToken": token}, {"configMap": authority}]}}
