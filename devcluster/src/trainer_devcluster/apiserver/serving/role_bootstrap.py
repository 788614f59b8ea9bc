"""Bootstrap: sees to it that the cluster has its first roles and bindings, with all that belongs into them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import structlog

from trainer.kube.api_semantics.json_values import writable_copy
from trainer.kube.errors import ApiError
from trainer.kube.objects import ObjectKey, annotations_of, name_of
from trainer_devcluster.apiserver.authentication.user import SERVER
from trainer_devcluster.apiserver.authorization.bootstrap_roles import AUTOUPDATE, bootstrap_objects
from trainer_devcluster.apiserver.authorization.rules import rules_in, uncovered
from trainer_devcluster.apiserver.definitions.routing import Target
from trainer_devcluster.apiserver.kinds.rbac import CLUSTER_ROLE, CLUSTER_ROLE_BINDING
from trainer_devcluster.apiserver.storage.storage import Partition
from trainer_devcluster.apiserver.wire.params import WriteParameters
from trainer_devcluster.apiserver.writes.write import Write

if TYPE_CHECKING:
    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.storage.storage import Storage
    from trainer_devcluster.apiserver.writes.object_writer import ObjectWriter

log = structlog.get_logger(__name__)

_MANAGER: Final = "kube-apiserver"
_DEFINITIONS: Final = {definition.resource.kind: definition for definition in (CLUSTER_ROLE, CLUSTER_ROLE_BINDING)}


async def bootstrap(storage: Storage, writer: ObjectWriter) -> None:
    """Create what is missing, and put back what has been taken out of objects that are to be kept up to date.

    What a webhook refuses is logged and stays as it is: the next start tries again.
    """
    for wanted in bootstrap_objects():
        definition = _DEFINITIONS[wanted["kind"]]
        live = storage.get(Partition.of(definition.resource), ObjectKey("", name_of(wanted)))
        try:
            if live is None:
                await writer.create_internal(definition.resource, wanted, _MANAGER)
            elif annotations_of(live).get(AUTOUPDATE) != "false" and completed(wanted, live) != live:
                target = Target(definition, "update", None, name_of(wanted))
                write = Write(target, WriteParameters(_MANAGER), SERVER)
                await writer.update(write, partial(completed, wanted))
        except ApiError as error:
            log.warning("cannot put bootstrap object in order", name=name_of(wanted), error=error.message)


def completed(wanted: Object, live: Object) -> Object:
    """A stored role or binding with the labels, annotations, rules and subjects that it lacks."""
    obj: Object = writable_copy(live)
    for field in ("labels", "annotations"):
        obj["metadata"][field] = {**wanted["metadata"][field], **(obj["metadata"].get(field) or {})}
    if obj["kind"] == CLUSTER_ROLE.resource.kind:
        missing = uncovered(rules_in(live), rules_in(wanted))
        if missing:
            obj["rules"] = [*(obj.get("rules") or ()), *(rule.to_object() for rule in missing)]
        return obj
    subjects = obj.get("subjects") or []
    obj["subjects"] = [*subjects, *(subject for subject in wanted["subjects"] if subject not in subjects)]
    return obj
