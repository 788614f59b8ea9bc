"""The runtimes that TrainJobs build on, as their user may see them."""

from __future__ import annotations

from dataclasses import asdict

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.framework.building.runtime_summary import RuntimeSummary
from trainer.kube.client import Client
from trainer.kube.errors import ForbiddenError, KubeError, NotFoundError
from trainer.kube.objects import Object, key_of, metadata_of
from trainer.kube.resource import Resource
from trainer.kube.selection import EVERYTHING
from trainer_dashboard.access.visible import NamespaceScope, Visible, visible


async def runtimes(client: Client, scope: NamespaceScope) -> Object:
    """The runtimes of the cluster and of namespaces, and what its user may not see.

    Which TrainJobs build on one, the page knows from its list of them.

    Args:
        client: of the user; its users see runtimes converted to v2alpha1.
        scope: the namespaces whose runtimes are wanted.

    Raises:
        KubeError: the API server does not answer.
    """
    own = await _of_cluster(client)
    try:
        theirs = await visible(client, TRAINING_RUNTIMES, scope)
    except NotFoundError as error:
        theirs = Visible(problems=[_refusal(TRAINING_RUNTIMES, error)])
    found = [
        _summary(obj, resource)
        for resource, part in ((CLUSTER_TRAINING_RUNTIMES, own), (TRAINING_RUNTIMES, theirs))
        for obj in sorted(part.objects, key=key_of)
    ]
    return {"runtimes": found, "problems": [*own.problems, *theirs.problems], "notes": theirs.notes}


async def _of_cluster(client: Client) -> Visible:
    try:
        return Visible((await client.list(CLUSTER_TRAINING_RUNTIMES, EVERYTHING)).items)
    except (ForbiddenError, NotFoundError) as error:
        return Visible(problems=[_refusal(CLUSTER_TRAINING_RUNTIMES, error)])


def _refusal(resource: Resource, error: KubeError) -> str:
    return f"{resource.plural} cannot be listed: {error}"


def _summary(obj: Object, resource: Resource) -> Object:
    return asdict(RuntimeSummary.of(obj, resource.kind)) | {"created": metadata_of(obj).get("creationTimestamp")}
