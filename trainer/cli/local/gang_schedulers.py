"""What a cluster offers for gangs: the Workload API of Kubernetes, and schedulers whose kinds are installed.

Gates of the scheduler itself, such as GangScheduling, no API tells.
"""

from __future__ import annotations

from typing import Final

from trainer.framework.startup.trials import refusal_of
from trainer.kube.client import Client, RawClient
from trainer.kube.errors import ApiError, NotFoundError
from trainer.kube.resource import Resource
from trainer.plugins import coscheduling, volcano
from trainer.plugins.workload.versions import GATES, SCHEDULING_GROUP, VERSIONS, WorkloadVersion
from trainer.workloads import JOBSETS

_INSTALLED: Final = {"coscheduling": coscheduling.POD_GROUPS, "Volcano": volcano.POD_GROUPS}


async def gang_schedulers(client: Client, discovery: RawClient, namespace: str) -> str:
    """One line: what is served, and what feature gates refuse, found out by dry runs as this user.

    Args:
        client: of the cluster.
        discovery: the same.
        namespace: one in which the user may create objects; nothing is stored.

    Raises:
        KubeError: the cluster does not answer.
    """
    version = None
    for each in VERSIONS:
        if version is None and await _serves(discovery, each.pod_groups, each.workloads):
            version = each
    parts = ["Workload API no" if version is None else await _workload_api(client, version, namespace)]
    for name, pod_groups in _INSTALLED.items():
        parts.append(f"{name} {'yes' if await _serves(discovery, pod_groups) else 'no'}")
    return ", ".join(parts)


async def _serves(discovery: RawClient, *resources: Resource) -> bool:
    """Whether the API server serves all of them, which are of one version of a group."""
    try:
        found = await discovery.request("GET", f"/apis/{resources[0].api_version}")
    except NotFoundError:
        return False
    return {each.plural for each in resources} <= {each["name"] for each in found.get("resources") or ()}


async def _workload_api(client: Client, version: WorkloadVersion, namespace: str) -> str:
    limits = []
    try:
        if await refusal_of(client, JOBSETS, SCHEDULING_GROUP, namespace):
            limits.append("needs JobSet v0.12 or later")
        for name, trial in version.trials().items():
            if await refusal_of(client, version.pod_groups, trial, namespace):
                limits.append(f"{name}: needs {GATES[name]}")
    except ApiError as error:
        limits.append(f"what feature gates refuse is unknown: {error}")
    return f"Workload API {version.name}" + (f" ({'; '.join(limits)})" if limits else "")
