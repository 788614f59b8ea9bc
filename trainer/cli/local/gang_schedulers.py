"""What a cluster offers for gangs: the Workload API of Kubernetes, and schedulers whose kinds are installed.

Gates of the scheduler itself, such as GangScheduling, no API tells.
"""

from __future__ import annotations

from typing import Final

from trainer.framework.startup.dry_runs import refusal_of
from trainer.kube.errors import ApiError, NotFoundError
from trainer.kube.resource import Resource
from trainer.kube.rest.http import HttpClient
from trainer.plugins import coscheduling, volcano
from trainer.plugins.workload.versions import GATES, SCHEDULING_GROUP, VERSIONS, WorkloadVersion
from trainer.workloads import JOBSETS

_INSTALLED: Final = {"coscheduling": coscheduling.POD_GROUPS, "Volcano": volcano.POD_GROUPS}
_NEW_JOBSET: Final = "needs JobSet v0.12 or later"


async def gang_schedulers(client: HttpClient, namespace: str) -> str:
    """One line: what is served, and what feature gates refuse, found out by dry runs as this user.

    Args:
        client: of the cluster.
        namespace: one in which the user may create objects; nothing is stored.

    Raises:
        KubeError: the cluster does not answer.
    """
    version = None
    for each in VERSIONS:
        if version is None and await _serves(client, each.pod_groups, each.workloads):
            version = each
    parts = ["Workload API no" if version is None else await _workload_api(client, version, namespace)]
    for name, pod_groups in _INSTALLED.items():
        parts.append(f"{name} {'yes' if await _serves(client, pod_groups) else 'no'}")
    return ", ".join(parts)


async def _serves(client: HttpClient, *resources: Resource) -> bool:
    """Whether the API server serves all of them, which are of one version of a group."""
    try:
        found = await client.request("GET", f"/apis/{resources[0].api_version}")
    except NotFoundError:
        return False
    return {each.plural for each in resources} <= {each["name"] for each in found.get("resources") or ()}


async def _workload_api(client: HttpClient, version: WorkloadVersion, namespace: str) -> str:
    dry_runs = {f"{name}: needs {GATES[name]}": (version.pod_groups, each) for name, each in version.dry_runs().items()}
    limits, problem = [], ""
    if await _serves(client, JOBSETS):
        dry_runs = {_NEW_JOBSET: (JOBSETS, SCHEDULING_GROUP)} | dry_runs
    else:
        limits.append(_NEW_JOBSET)
    for limit, (resource, dry_run) in dry_runs.items():
        try:
            if await refusal_of(client, resource, dry_run, namespace):
                limits.append(limit)
        except ApiError as error:
            problem = str(error)
    if problem:
        limits.append(f"what feature gates refuse is unknown: {problem}")
    return f"Workload API {version.name}" + (f" ({'; '.join(limits)})" if limits else "")
