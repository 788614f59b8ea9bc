"""Installs definitions and runtimes in a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import msgspec
from anyio.to_thread import run_sync

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.cli.console import note
from trainer.cli.errors import CommandError, ExitCode
from trainer.cli.manifests import FIELD_MANAGER, runtimes
from trainer.kube.backoff import Backoff
from trainer.kube.client import Client, DeleteOptions, ObjectRequest, Verb
from trainer.kube.clock import Clock, SystemClock, move_on_after
from trainer.kube.errors import (
    ConflictError,
    ForbiddenError,
    InternalError,
    InvalidError,
    KubeError,
    NotFoundError,
    ServerTimeoutError,
    ServiceUnavailableError,
    TooManyRequestsError,
    TransportError,
    UntrustedServerError,
)
from trainer.kube.objects import Object, is_condition_true, metadata_of, name_of, objects_in, uid_of
from trainer.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, Resource
from trainer.v1alpha1.crds import crds
from trainer.v1alpha1.discovery import Version

_ESTABLISHED_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.1
_RUNTIME_SECONDS: Final = 30.0
_TRANSIENT: Final = (
    NotFoundError,  # the kind is not served yet
    InternalError,  # a webhook of the kind does not answer yet, or is not trusted yet
    ServerTimeoutError,
    ServiceUnavailableError,
    TooManyRequestsError,
    TransportError,
)
"""Errors of a cluster that is being set up."""
_PAUSES: Final = Backoff(1, 10, factor=1.5)


async def install_definitions(
    client: Client, clock: Clock | None = None, *, version: Version = "v2alpha1", further: Sequence[Object] = ()
) -> None:
    """Apply the CustomResourceDefinitions, and those of further kinds, and wait until the server serves them."""
    clock = clock or SystemClock()
    definitions = [*crds(version), *further]
    for definition in definitions:
        await client.apply(CUSTOM_RESOURCE_DEFINITIONS, definition, field_manager=FIELD_MANAGER, force=True)
    async with move_on_after(clock, _ESTABLISHED_SECONDS) as scope:
        for name in map(name_of, definitions):
            while not is_condition_true(await client.get(CUSTOM_RESOURCE_DEFINITIONS, name), "Established"):
                await clock.sleep(_POLL_SECONDS)
    if scope.cancelled_caught:
        raise CommandError(f"the API server does not serve our resources {_ESTABLISHED_SECONDS:.0f} s after their CRDs")


class Installed(StrEnum):
    """The result for one runtime."""

    APPLIED = "applied"
    KEPT = "kept"
    """The object was left unchanged, since another field manager owns a field of it."""
    REPLACED = "replaced"
    """It was deleted and created, since the spec that this command had applied before was another one."""
    REFUSED = "refused"
    """Usually the cluster has one of this name with another spec, which cannot change and which somebody else owns."""


@dataclass(slots=True)
class Installation:
    """Applies runtimes one after the other, and retries while the cluster is not ready."""

    client: Client
    clock: Clock = field(default_factory=SystemClock)
    force: bool = False
    """Whether labels and annotations that others have changed are overwritten. A spec cannot be."""
    _reason: str = field(default="", init=False)

    async def run(self, objects: list[Object], timeout: float) -> dict[str, Installed]:
        """Apply them all; returns the result of each, by name.

        What is interrupted after an outdated runtime was deleted is made good by the next run.

        Args:
            objects: the runtimes.
            timeout: seconds for each of them.

        Raises:
            CommandError: one was not applied in time, usually since the cluster is not ready.
        """
        outcomes: dict[str, Installed] = {}
        for obj in objects:
            self._reason = ""
            async with move_on_after(self.clock, timeout) as scope:
                outcomes[name_of(obj)] = await self._apply(obj)
            if scope.cancelled_caught:
                applied = f"{len(outcomes)} of {len(objects)} runtimes are applied"
                reason = self._reason or "the cluster does not answer"
                raise CommandError(
                    f"{applied}, and the next one is not after {timeout:g} s: {reason}", ExitCode.TIMEOUT
                )
        return outcomes

    async def _apply(self, obj: Object) -> Installed:
        failures = 0
        resource = msgspec.structs.replace(CLUSTER_TRAINING_RUNTIMES, version=obj["apiVersion"].partition("/")[2])
        applied = Installed.APPLIED
        while True:
            try:
                await self.client.apply(resource, obj, field_manager=FIELD_MANAGER, force=self.force)
            except UntrustedServerError:
                raise
            except _TRANSIENT as error:
                self._note(error)
            except ConflictError as error:
                note(
                    f"{name_of(obj)} was not changed: {error}; --force overwrites labels and annotations; "
                    "to get the spec that is shipped, delete the runtime and try again"
                )
                return Installed.KEPT
            except InvalidError as error:
                if applied is Installed.APPLIED and await self._delete_outdated(resource, obj):
                    applied = Installed.REPLACED
                    continue
                note(
                    f"{name_of(obj)} is refused: {error}; if the existing runtime is outdated, delete it and try again"
                )
                return Installed.REFUSED
            else:
                return applied
            await self.clock.sleep(_PAUSES.pause(failures))
            failures += 1

    async def _delete_outdated(self, resource: Resource, obj: Object) -> bool:
        """Delete the runtime that this one takes the place of, and say whether that was done.

        Only one whose spec this command has applied, and only if the other one would be accepted. TrainJobs keep a
        snapshot of the runtime that they were built on, so that nothing changes for those that exist.
        """
        try:
            existing = await self.client.get(resource, name_of(obj))
            if not _is_spec_of(FIELD_MANAGER, existing):
                return False
            trial = {**obj, "metadata": {"generateName": f"{name_of(obj)}-"}}
            await self.client.send(ObjectRequest(Verb.CREATE, resource, body=trial, dry_run=True))
            await self.client.delete(resource, name_of(obj), options=DeleteOptions(uid=uid_of(existing)))
        except (ConflictError, ForbiddenError, InvalidError, NotFoundError) as error:
            note(f"{name_of(obj)} was not replaced: {error}")
            return False
        return True

    def _note(self, error: KubeError) -> None:
        """Print the reason for the wait, once."""
        reason = str(error)
        if reason != self._reason:
            note(f"not ready yet: {reason}")
        self._reason = reason


def _is_spec_of(field_manager: str, obj: Object) -> bool:
    """Whether this field manager, and no other, has applied the spec of an object."""
    entries = objects_in(metadata_of(obj).get("managedFields"))
    owners = {entry.get("manager") for entry in entries if "f:spec" in (entry.get("fieldsV1") or {})}
    return owners == {field_manager}


async def install_runtimes(client: Client, version: Version = "v2alpha1") -> None:
    """Apply the runtimes that we ship to a cluster that serves their kind, and whose admission works if it is on.

    Those of an older version are replaced; those of somebody else are left unchanged, and the user reads which.
    """
    await Installation(client, force=True).run(await run_sync(runtimes, version), _RUNTIME_SECONDS)
