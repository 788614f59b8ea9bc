"""A dev cluster with TrainJobs that nobody runs, and users who look at them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import anyio

from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.installation import install_definitions
from trainer.kube.clock import timestamp
from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer.kube.rest.http import HttpClient

NAMESPACE: Final = "default"
_WRITERS = 16
_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount", namespaced=True)
_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
_ROLE = "dashboard-benchmark"
_DAY_SECONDS = 24 * 3600
"""For which tokens are good: by default they are for an hour, which a run may take."""


@dataclass(frozen=True, slots=True)
class BusyCluster:
    """What a benchmark does to the cluster."""

    client: HttpClient

    async def fill(self, jobs: int) -> None:
        """Create the TrainJobs, all of which run and report progress."""
        await install_definitions(self.client)
        limit = anyio.CapacityLimiter(_WRITERS)

        async def create(number: int) -> None:
            async with limit:
                await self.client.create(TRAIN_JOBS, _train_job(number))
                await self.report(number, 0)

        async with anyio.create_task_group() as tasks:
            for number in range(jobs):
                tasks.start_soon(create, number)

    async def report(self, number: int, percentage: int) -> None:
        """Change the progress of a TrainJob."""
        progress = {
            "progressPercentage": percentage,
            "currentStep": percentage * 10,
            "totalSteps": 1000,
            "estimatedRemainingSeconds": 3600,
            "estimatedRemainingTimeSummary": "1 hour",
            "trainMetrics": {"loss": "0.5"},
            "lastUpdatedTime": timestamp(datetime.now(UTC)),
        }
        patch: Object = {"status": {"state": "Running", "trainerStatus": progress}}
        await self.client.patch(TRAIN_JOBS, name_of(number), patch, NAMESPACE, subresource="status")

    async def tokens(self, users: int) -> list[str]:
        """Tokens of users who may read all that the dashboard shows, each of an account in a namespace of its own."""
        rules = [
            {"apiGroups": ["trainer.kubeflow.org"], "resources": ["trainjobs"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": [""], "resources": ["pods", "pods/log", "events"], "verbs": ["get", "list", "watch"]},
        ]
        names = [f"user-{number}" for number in range(users)]
        await self.client.create(_ROLES, _object(_ROLES, _ROLE) | {"rules": rules})
        subjects = [{"kind": "ServiceAccount", "name": name, "namespace": name} for name in names]
        role = {"apiGroup": _ROLES.group, "kind": _ROLES.kind, "name": _ROLE}
        await self.client.create(_BINDINGS, _object(_BINDINGS, _ROLE) | {"roleRef": role, "subjects": subjects})
        return [await self._token(name) for name in names]

    async def _token(self, name: str) -> str:
        # The accounts of one namespace are one party, which the dashboard gives the room of one user.
        await self.client.create(_NAMESPACES, _object(_NAMESPACES, name))
        account = _object(_ACCOUNTS, name)
        account["metadata"]["namespace"] = name
        await self.client.create(_ACCOUNTS, account)
        path = f"/api/v1/namespaces/{name}/serviceaccounts/{name}/token"
        body: Object = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
        body["spec"] = {"expirationSeconds": _DAY_SECONDS}
        token: str = (await self.client.request("POST", path, body=body))["status"]["token"]
        return token


def name_of(number: int) -> str:
    """Of a TrainJob."""
    return f"job-{number:05}"


def _object(resource: Resource, name: str) -> Object:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}}


def _train_job(number: int) -> Object:
    job = _object(TRAIN_JOBS, name_of(number))
    job["metadata"]["namespace"] = NAMESPACE
    trainer = {"numNodes": 4, "image": "registry.example.com/team/training:1.2.3", "command": ["torchrun", "train.py"]}
    return job | {"spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": trainer}}
