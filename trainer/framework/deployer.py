"""ComponentDeployer (KEP-2170): brings components to the cluster by server-side apply, sending only what differs."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import structlog

from trainer.framework.comparison import differences
from trainer.framework.errors import ForeignObjectError
from trainer.kube.objects import annotations_of, controller_reference, is_controlled_by, key_of, uid_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainer.framework.component import Component
    from trainer.framework.reader import Reader
    from trainer.kube.client import Client
    from trainer.kube.objects import Object

FIELD_MANAGER = "trainer"
"""Owner of all fields that we set, except the progress of the training (`trainer-progress`)."""

APPLIED_HASH = "trainer.kubeflow.org/applied-hash"
"""Annotation with a hash of what the TrainJob asked for: where it differs, fields may have to be taken away again."""

log = structlog.get_logger(__name__)


class Deployer:
    """Applies components as children of their TrainJob."""

    def __init__(self, client: Client, reader: Reader) -> None:
        self._client = client
        self._reader = reader

    def missing(self, components: Iterable[Component]) -> bool:
        """Whether a component is not in the cache: it was never created, has been deleted, or is too new."""
        return any(self._reader.get(component.resource, key_of(component.object)) is None for component in components)

    async def deploy(self, owner: Object, components: Iterable[Component]) -> tuple[str, ...]:
        """Create what is missing and change what differs.

        Args:
            owner: The TrainJob, with apiVersion and kind.
            components: What it becomes.

        Returns:
            Changes that came too late for an object that exists, as `<kind> <field path>`.

        Raises:
            ForeignObjectError: an object of that name belongs to somebody else.
            KubeError: the API server did not accept an object; those before it are in place.
        """
        refused: list[str] = []
        for component in components:
            refused += await self._deploy(owner, component)
        return tuple(refused)

    async def _deploy(self, owner: Object, component: Component) -> Iterable[str]:
        wanted = component.object
        existing = self._reader.get(component.resource, key_of(wanted))
        if existing is None:
            # Without force: an object that the cache does not show yet may belong to somebody else.
            await self._apply(component, _owned(wanted, component, owner), force=False)
            return ()
        if not is_controlled_by(existing, owner):
            raise ForeignObjectError(_foreign(component, existing))
        refused: tuple[str, ...] = ()
        if component.revise is not None:
            revision = component.revise(existing)
            if revision is None:
                return ()
            wanted, refused = revision.object, revision.refused
        applied = _owned(wanted, component, owner)
        if next(differences(applied, existing), None) is not None:
            await self._apply(component, applied, force=True)
        return [f"{component.resource.kind} {path}" for path in refused]

    async def _apply(self, component: Component, obj: Object, *, force: bool) -> None:
        await self._client.apply(component.resource, obj, field_manager=FIELD_MANAGER, force=force)
        log.info("applied object", kind=component.resource.kind, object=str(key_of(obj)))


def _owned(obj: Object, component: Component, owner: Object) -> Object:
    """The object as a child of the owner, with the hash of what the TrainJob asks for."""
    digest = hashlib.sha256(json.dumps(component.object, sort_keys=True).encode()).hexdigest()[:16]
    metadata = obj["metadata"] | {
        "annotations": annotations_of(obj) | {APPLIED_HASH: digest},
        "ownerReferences": [controller_reference(owner)],
    }
    return obj | {"metadata": metadata}


def _foreign(component: Component, existing: Object) -> str:
    return (
        f"{component.resource.kind} {key_of(existing)} (uid {uid_of(existing)}) exists and does not belong to this "
        "TrainJob; delete it or give the TrainJob another name"
    )
