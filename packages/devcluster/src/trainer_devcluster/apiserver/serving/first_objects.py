"""First objects: the roles and bindings of a cluster, and what every namespace starts with.

The writer makes those of a namespace together with it unless a webhook wants to see them; then they are made here, and
tried again for as long as the webhook refuses them or cannot be called. They are made again when they are deleted, as
the root-ca-cert-publisher and serviceaccount controllers of Kubernetes do it: no pod could start without them.

What is there for an hour only, events, is deleted here as well.
"""

from __future__ import annotations

from contextlib import ExitStack
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import structlog

from trainer.kube.clock import move_on_after, parse_timestamp
from trainer.kube.errors import ApiError
from trainer.kube.merge_patch import writable_copy
from trainer.kube.objects import (
    Object,
    ObjectKey,
    annotations_of,
    is_being_deleted,
    key_of,
    metadata_of,
    name_of,
    resource_version_of,
)
from trainer.kube.resource import CONFIG_MAPS, EVENTS, SERVICE_ACCOUNTS
from trainer_devcluster.apiserver.admission import namespaces
from trainer_devcluster.apiserver.authentication.user import SERVER
from trainer_devcluster.apiserver.authorization.bootstrap_roles import AUTOUPDATE, bootstrap_objects
from trainer_devcluster.apiserver.authorization.rules import rules_in, uncovered
from trainer_devcluster.apiserver.backend import Backend
from trainer_devcluster.apiserver.definitions.routing import Target
from trainer_devcluster.apiserver.kinds.rbac import CLUSTER_ROLE, CLUSTER_ROLE_BINDING
from trainer_devcluster.apiserver.storage.storage import Partition, Storage, Subscription
from trainer_devcluster.apiserver.wire.params import WriteParameters
from trainer_devcluster.apiserver.writes.object_writer import ObjectWriter
from trainer_devcluster.apiserver.writes.write import Write

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


RETRY_SECONDS = 1.0
EVENT_LIFETIME = timedelta(hours=1)
CHECK_INTERVAL = 60.0
"""Seconds between two looks for expired events."""
_PARTITION = Partition.of(EVENTS)


class FirstObjects:
    """Makes what is missing in new namespaces."""

    def __init__(self, backend: Backend, writer: ObjectWriter) -> None:
        self._backend = backend
        self._writer = writer

    async def run(self) -> None:
        """Follow the namespaces and their first objects until cancelled."""
        storage = self._backend.storage
        subscription = Subscription()
        with ExitStack() as stack:
            for partition in (namespaces.PARTITION, Partition.of(CONFIG_MAPS), Partition.of(SERVICE_ACCOUNTS)):
                stack.enter_context(storage.subscribed(partition, subscription))
            while True:
                present = [entry for entry in storage.snapshot(namespaces.PARTITION) if not is_being_deleted(entry)]
                complete = [await self._fill(namespace) for namespace in present]
                async with move_on_after(self._backend.clock, None if all(complete) else RETRY_SECONDS):
                    await subscription.wait()

    async def _fill(self, namespace: Object) -> bool:
        """Make what a namespace lacks; whether it has everything now. Costs a lookup for each that it has."""
        for resource, first in namespaces.first_objects(namespace, self._backend.ca_pem):
            try:
                await self._writer.create_internal(resource, first)
            except ApiError as error:
                log.warning(
                    "cannot create first object", kind=resource.kind, namespace=name_of(namespace), error=error.message
                )
                return False
        return True


async def expire_events(backend: Backend) -> None:
    """Delete events an hour after their last write, until cancelled."""
    while True:
        await backend.clock.sleep(CHECK_INTERVAL)
        oldest = backend.clock.now() - EVENT_LIFETIME
        for event in backend.storage.snapshot(_PARTITION):
            if _last_written(event) < oldest:
                backend.storage.delete(_PARTITION, key_of(event), expected=resource_version_of(event))


def _last_written(event: Object) -> datetime:
    observed = (event.get("series") or {}).get("lastObservedTime")
    moments = [observed, event.get("lastTimestamp"), metadata_of(event)["creationTimestamp"]]
    return max(parse_timestamp(moment) for moment in moments if moment)
