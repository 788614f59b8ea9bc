"""What is rendered for a TrainJob beside its JobSet: ConfigMaps of its pods, PodGroups and autoscalers.

They are asked for by name, which the JobSet says, when it is new or has changed: nothing is watched or cached, and the
recorder needs no right to list them. Secrets are never read; the JobSet has their names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trainer.explain.gang import pod_group_of
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.client import Client
from trainer.kube.errors import ForbiddenError, NotFoundError
from trainer.kube.logger import get_logger
from trainer.kube.objects import Object, mapping_at, metadata_of, objects_in, owner_references_of
from trainer.kube.resource import CONFIG_MAPS, HORIZONTAL_POD_AUTOSCALERS, Resource

log = get_logger(__name__)

LIMIT = 16
"""Objects of a TrainJob that are asked for."""


class _Place(NamedTuple):
    resource: Resource
    name: str


class RelatedObjects:
    """Asks for the objects of TrainJobs."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._problems: set[str] = set()

    async def of(self, job: CachedObject, jobset: Object) -> list[Object]:
        """Those that the TrainJob controls; without what may not be read, which is logged once for each kind.

        Raises:
            KubeError: the API server does not answer; ask again.
        """
        found: list[Object] = []
        for place in [*dict.fromkeys(_named_by(job, jobset))][:LIMIT]:
            try:
                obj = await self._client.get(place.resource, place.name, job.key.namespace)
            except NotFoundError:  # or the cluster does not have the kind
                continue
            except ForbiddenError as error:
                if place.resource.kind not in self._problems:
                    self._problems.add(place.resource.kind)
                    log.warning("recording without what may not be read", kind=place.resource.kind, error=str(error))
                continue
            if any(owner.get("uid") == job.uid and owner.get("controller") for owner in owner_references_of(obj)):
                types = {"apiVersion": place.resource.api_version, "kind": place.resource.kind}
                found.append(types | obj)
        return found


def document_kind(obj: Object) -> str:
    """The kind under which a related object is stored, such as `configmap/demo-mpi-hostfile`."""
    return f"{str(obj['kind']).lower()}/{metadata_of(obj).get('name')}"


def _named_by(job: CachedObject, jobset: Object) -> Iterator[_Place]:
    yield _Place(HORIZONTAL_POD_AUTOSCALERS, job.key.name)
    for replicated in objects_in(mapping_at(jobset, "spec").get("replicatedJobs")):
        template = mapping_at(replicated, "template", "spec", "template")
        membership = pod_group_of(template)
        if membership is not None:
            yield from (_Place(kind, membership.name) for kind in membership.kinds)
        for volume in objects_in(mapping_at(template, "spec").get("volumes")):
            for source in (volume, *objects_in(mapping_at(volume, "projected").get("sources"))):
                if name := mapping_at(source, "configMap").get("name"):
                    yield _Place(CONFIG_MAPS, str(name))
