"""The code of `trainer run` and `trainer sweep`, which a copy of a TrainJob mounts as well.

The ConfigMap belongs to the TrainJob or the sweep that was submitted with it, and would be deleted with that one: a
copy of its spec, resumed afterwards, had no code. Each TrainJob that mounts such a ConfigMap is therefore an owner, and
garbage collection keeps it until the last of them is gone. The trials of a sweep need not be: they go with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from trainer.api import patterns
from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.api.trainjob import CODE_VOLUME, TRAIN_JOBS
from trainer.framework.deploying.deployer import FIELD_MANAGER
from trainer.kube.client import Client, PatchType
from trainer.kube.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from trainer.kube.logger import get_logger
from trainer.kube.objects import (
    Object,
    controller_of,
    is_being_deleted,
    mapping_at,
    namespace_of,
    owner_reference,
    owner_references_of,
    uid_of,
)
from trainer.kube.resource import CONFIG_MAPS

log = get_logger(__name__)

_MOST = 16
"""ConfigMaps that are asked for: a copy has one, and a patch of v1alpha1 may mount another one in each of its Jobs."""
_OBJECT_NAME = patterns.compiled(patterns.OBJECT_NAME)


async def own_code(client: Client, train_job: Object) -> None:
    """Make a TrainJob an owner of the code that it mounts; one that nobody owns stays as it is, and so does any other.

    Raises:
        ApiError: the API server could not be asked; the work queue retries.
    """
    for name in islice(dict.fromkeys(_mounted(train_job)), _MOST):
        try:
            code = await client.get(CONFIG_MAPS, name, namespace_of(train_job))
            if _is_code_of_another(code, train_job):
                # Merged by uid, so that owners of the same moment keep each other.
                metadata = {"uid": uid_of(code), "ownerReferences": [owner_reference(train_job)]}
                await client.patch(
                    CONFIG_MAPS, name, {"metadata": metadata}, namespace_of(train_job), patch_type=PatchType.STRATEGIC,
                    field_manager=FIELD_MANAGER,
                )  # fmt: skip
        except NotFoundError:
            continue  # the pods say so
        except (ConflictError, ForbiddenError, InvalidError) as error:
            # It is another one now, or a policy of the cluster is against it: the training can start all the same.
            log.warning("could not become an owner of the code", config_map=name, error=str(error))


def _mounted(train_job: Object) -> Iterator[str]:
    for override in mapping_at(train_job, "spec").get("podSpecOverrides") or ():
        for volume in override.get("volumes") or ():
            name = mapping_at(volume, "configMap").get("name")
            if volume.get("name") == CODE_VOLUME and isinstance(name, str) and _OBJECT_NAME.search(name):
                yield name


def _is_code_of_another(config_map: Mapping[str, Any], owner: Object) -> bool:
    """Whether TrainJobs or sweeps own a ConfigMap that cannot be changed, as users own it, and this one not yet.

    One that the sweep controls has it by its controller.
    """
    owners = owner_references_of(config_map)
    own = {uid_of(owner), (controller_of(owner) or {}).get("uid")}
    return (
        config_map.get("immutable") is True
        and not is_being_deleted(config_map)
        and bool(owners)
        and all(_is_submitted(each) and not each.get("controller") for each in owners)
        and own.isdisjoint(each.get("uid") for each in owners)
    )


def _is_submitted(reference: Mapping[str, Any]) -> bool:
    group, _, _ = str(reference.get("apiVersion")).partition("/")
    return group == TRAIN_JOBS.group and reference.get("kind") in {TRAIN_JOBS.kind, OPTIMIZATION_JOBS.kind}
