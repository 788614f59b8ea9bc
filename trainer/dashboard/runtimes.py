"""The runtimes that TrainJobs build on, as their user may see them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.framework.building.runtime_summary import RuntimeSummary
from trainer.kube.errors import ForbiddenError, NotFoundError
from trainer.kube.objects import key_of, metadata_of
from trainer.kube.selection import Selection

if TYPE_CHECKING:
    from trainer.kube.client import Client
    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource


async def runtimes(client: Client, namespace: str) -> Object:
    """The runtimes of the cluster, and those of a namespace or, with "", of all; and what its user may not see.

    Which TrainJobs build on one, the page knows from its list of them.

    Args:
        client: of the user; its users see runtimes in the form of the model.
        namespace: whose runtimes are wanted.

    Raises:
        KubeError: the API server does not answer.
    """
    found: list[Object] = []
    problems: list[str] = []
    for resource, where in ((CLUSTER_TRAINING_RUNTIMES, None), (TRAINING_RUNTIMES, namespace or None)):
        try:
            objects = (await client.list(resource, Selection(where))).items
        except (ForbiddenError, NotFoundError) as error:
            problems.append(f"{resource.plural} cannot be listed: {error}")
            continue
        found += [_summary(obj, resource) for obj in sorted(objects, key=key_of)]
    return {"runtimes": found, "problems": problems}


def _summary(obj: Object, resource: Resource) -> Object:
    return asdict(RuntimeSummary.of(obj, resource.kind)) | {"created": metadata_of(obj).get("creationTimestamp")}
