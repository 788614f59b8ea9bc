"""`trainer crds` and `trainer install-runtimes`: what a cluster needs before it can run TrainJobs."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final

import msgspec
import typer
from anyio.to_thread import run_sync

from trainer.api.crds import stream_of
from trainer.api.image_reference import check_image
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.cli.console import note, output, say
from trainer.cli.current_cluster import ConnectedCluster, current_cluster, run_on
from trainer.cli.documents import DocumentError, items_in, valid
from trainer.cli.errors import BadInputError, CommandError, ExitCode
from trainer.cli.kinds import further_definitions
from trainer.cli.manifests import FIELD_MANAGER, INITIALIZER_IMAGE, TRANSFORMERS_IMAGE, runtimes
from trainer.cli.offline.v1_jobs import installed_v1_jobs
from trainer.cli.options import ApiVersion, Context, Kubeconfig
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
from trainer.kube.field_errors import FieldError, required
from trainer.kube.objects import Object, metadata_of, name_of, objects_in, uid_of
from trainer.kube.resource import Resource
from trainer.v1alpha1.crds import crds as crds_of

OfV1Jobs = Annotated[
    bool,
    typer.Option(
        "--v1-jobs", help="Print those of PyTorchJob and JAXJob of kubeflow.org/v1 instead, which config/v1 is for."
    ),
]


def crds(api_version: ApiVersion = "v2alpha1", v1_jobs: OfV1Jobs = False) -> None:
    """Print the CustomResourceDefinitions, for `kubectl apply --server-side -f -`.

    Those of sweeps are among them where these are installed.
    """
    ours = [*crds_of(api_version), *further_definitions(api_version)]
    output().file.write(stream_of(installed_v1_jobs().definitions() if v1_jobs else ours))


_TRANSIENT: Final = (
    NotFoundError,  # the kind is not served yet
    InternalError,  # a webhook of the kind does not answer yet, or is not trusted yet
    ServerTimeoutError,
    ServiceUnavailableError,
    TooManyRequestsError,
    TransportError,
)
"""Errors of a cluster that is being set up."""
_GROUP: Final = f"{CLUSTER_TRAINING_RUNTIMES.group}/"
_PAUSES: Final = Backoff(1, 10, factor=1.5)


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
        """Apply them all; returns the result of each, by name."""
        outcomes: dict[str, Installed] = {}
        async with move_on_after(self.clock, timeout) as scope:
            for obj in objects:
                outcomes[name_of(obj)] = await self._apply(obj)
        if scope.cancelled_caught:
            raise CommandError(
                f"{len(outcomes)} of {len(objects)} runtimes are applied after {timeout:g} s: {self._reason}",
                ExitCode.TIMEOUT,
            )
        return outcomes

    async def _apply(self, obj: Object) -> Installed:
        failures = 0
        resource = msgspec.structs.replace(CLUSTER_TRAINING_RUNTIMES, version=obj["apiVersion"].removeprefix(_GROUP))
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


def runtimes_in(files: list[str]) -> list[Object]:
    """The ClusterTrainingRuntimes in files, of whichever version; anything else in them is refused."""
    found: list[Object] = []
    for obj, place in (item for file in files for item in valid(items_in(file))):
        api_version, kind = obj.get("apiVersion"), obj.get("kind")
        if kind != CLUSTER_TRAINING_RUNTIMES.kind or not str(api_version).startswith(_GROUP):
            raise DocumentError(place, FieldError("", f"must be a ClusterTrainingRuntime, not {api_version} {kind}"))
        metadata = obj.get("metadata")
        if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
            raise DocumentError(place, required("metadata.name"))
        found.append(obj)
    if not found:
        raise BadInputError(f"{', '.join(files)}: there is no ClusterTrainingRuntime in it")
    return found


def install_runtimes(
    *,
    file: Annotated[
        list[str] | None,
        typer.Option("--file", "-f", metavar="FILE", help="Apply the ClusterTrainingRuntimes in it, and not ours."),
    ] = None,
    initializer_image: Annotated[
        str,
        typer.Option(
            envvar="TRAINER_INITIALIZER_IMAGE",
            metavar="IMAGE",
            help="The image of initializers and exporter in our runtimes, with tag or digest.",
        ),
    ] = INITIALIZER_IMAGE,
    transformers_image: Annotated[
        str,
        typer.Option(
            envvar="TRAINER_TRANSFORMERS_IMAGE",
            metavar="IMAGE",
            help="The image of our runtime transformers-distributed, with tag or digest.",
        ),
    ] = TRANSFORMERS_IMAGE,
    timeout: Annotated[
        float,
        typer.Option(
            min=0, metavar="SECONDS", help="How long to wait until their kind is served and admission answers."
        ),
    ] = 600,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite labels and annotations that others have changed.")
    ] = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Apply the runtimes we ship, or others, to the current cluster, once it is ready for them.

    A runtime with fields that others have changed is left as it is. The spec of a runtime cannot change: one that this
    command has applied and nobody else has changed is deleted and created again. TrainJobs that exist are not affected,
    since each keeps a snapshot of its runtime.

    Exit code: 0 when all others are applied, 1 when the cluster refuses one, such as a runtime of somebody else whose
    spec would change, 124 for a timeout.
    """
    given = runtimes_in(file) if file else None
    images = {"--initializer-image": initializer_image, "--transformers-image": transformers_image}
    for error in (error for option, image in images.items() for error in check_image(image, option)):
        raise BadInputError(str(error))

    async def install(cluster: ConnectedCluster) -> int:
        ours = (cluster.served.version, initializer_image, transformers_image)
        objects = given if given is not None else await run_sync(runtimes, *ours)
        outcomes = await Installation(cluster.client, force=force).run(objects, timeout)
        for name, outcome in outcomes.items():
            say(f"{name} {outcome}")
        return ExitCode.FAILED if Installed.REFUSED in outcomes.values() else ExitCode.OK

    raise typer.Exit(run_on(current_cluster(kubeconfig, context, pod_first=True), install))
