"""What a shell offers where a name is typed: objects of the cluster and contexts.

`trainer --install-completion` sets a shell up.
"""

from __future__ import annotations

import io
import os
from contextlib import redirect_stderr
from pathlib import Path

import anyio
import typer

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.client import Client
from trainer.kube.errors import KubeError
from trainer.kube.objects import name_of
from trainer.kube.resource import NAMESPACES, PERSISTENT_VOLUME_CLAIMS, Resource
from trainer.kube.selection import Selection

_TIME_LIMIT = 3.0
"""Seconds after which a shell gets no names, so that a lost cluster does not hold up who types."""


def train_job_names(context: typer.Context, incomplete: str) -> list[str]:
    """The TrainJobs of the namespace that the command line names."""
    return names_of(context, incomplete, TRAIN_JOBS)


def object_names(context: typer.Context, incomplete: str) -> list[str]:
    """The same; behind another kind (`sweep NAME`, `sweep/NAME`) the objects of that, and its word itself."""
    from trainer.cli.kinds import has_kinds, installed_kinds  # noqa: PLC0415 - only who completes needs it

    jobs = train_job_names(context, incomplete)
    if not has_kinds():
        return jobs
    first, prefix = next(iter(context.params.get("names") or ()), ""), incomplete.partition("/")[0]
    for kind in installed_kinds():
        if first in kind.words:
            return names_of(context, incomplete, kind.resource)
        if prefix != incomplete and prefix in kind.words:
            behind = incomplete.removeprefix(f"{prefix}/")
            return [f"{prefix}/{name}" for name in names_of(context, behind, kind.resource)]
    words = [kind.words[0] for kind in installed_kinds() if incomplete and not first]
    return jobs + [word for word in words if word.startswith(incomplete)]


def runtime_names(context: typer.Context, incomplete: str) -> list[str]:
    """The runtimes that a TrainJob of that namespace may refer to."""
    return names_of(context, incomplete, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)


def claim_names(context: typer.Context, incomplete: str) -> list[str]:
    """The PersistentVolumeClaims of that namespace."""
    return names_of(context, incomplete, PERSISTENT_VOLUME_CLAIMS)


def namespace_names(context: typer.Context, incomplete: str) -> list[str]:
    """The namespaces of the cluster."""
    return names_of(context, incomplete, NAMESPACES)


def context_names(context: typer.Context, incomplete: str) -> list[str]:
    """The contexts of the kubeconfig that the command line names, else of those that commands look into."""
    from trainer.cli.processes.contexts import Contexts  # noqa: PLC0415 - only who completes needs it
    from trainer.kube.rest import kubeconfig  # noqa: PLC0415 - likewise
    from trainer.kube.rest.connection import DEFAULT_KUBECONFIG  # noqa: PLC0415 - likewise

    given, variable = context.params.get("kubeconfig"), os.environ.get("KUBECONFIG", "")
    named = [given] if given is not None else [Path(name) for name in variable.split(os.pathsep) if name]
    try:
        names = kubeconfig.contexts(named or [Contexts.of_user().path, DEFAULT_KUBECONFIG]).names
    except KubeError:
        return []
    return sorted(name for name in names if name.startswith(incomplete))


def names_of(context: typer.Context, incomplete: str, *resources: Resource) -> list[str]:
    """None where the cluster cannot be asked: a shell has no place for an error."""
    from trainer.cli.current_cluster import current_cluster, open_cluster  # noqa: PLC0415 - only who completes needs it
    from trainer.kube.logs.logs import configure_logging  # noqa: PLC0415 - likewise

    given = context.params

    async def ask() -> set[str]:
        options = current_cluster(given.get("kubeconfig"), given.get("context"))
        with anyio.fail_after(_TIME_LIMIT):
            async with open_cluster(options) as cluster:
                namespace = given.get("namespace") or cluster.namespace
                served = [
                    cluster.served.resource(each) if each.group == TRAIN_JOBS.group else each for each in resources
                ]
                found = [await _listed(cluster.client, resource, namespace) for resource in served]
                return {name for names in found for name in names if name.startswith(incomplete)}

    with redirect_stderr(io.StringIO()):
        configure_logging(json=False, level="error")
        try:
            names = anyio.run(ask)
        except Exception:
            return []
    return sorted(names)


async def _listed(client: Client, resource: Resource, namespace: str) -> list[str]:
    selection = Selection(namespace if resource.namespaced else None, metadata_only=True)
    try:
        return [name_of(obj) for obj in (await client.list(resource, selection)).items]
    except KubeError:  # such as for who may not list what belongs to the whole cluster
        return []
