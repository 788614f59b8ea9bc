"""`trainer crds` and `trainer install-runtimes`: what a cluster needs before it can run TrainJobs."""

from __future__ import annotations

from typing import Annotated, Final

import typer
from anyio.to_thread import run_sync

from trainer.api.crds import stream_of
from trainer.api.image_reference import check_image
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.cli.console import output, say
from trainer.cli.current_cluster import ConnectedCluster, current_cluster, run_on
from trainer.cli.documents import DocumentError, items_in, valid
from trainer.cli.errors import BadInputError, ExitCode
from trainer.cli.installation import Installation, Installed
from trainer.cli.kinds import further_definitions
from trainer.cli.manifests import INITIALIZER_IMAGE, TRANSFORMERS_IMAGE, runtimes
from trainer.cli.offline.v1_jobs import installed_v1_jobs
from trainer.cli.options import ApiVersion, Context, Kubeconfig
from trainer.kube.field_errors import FieldError, required
from trainer.kube.objects import Object
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


_GROUP: Final = f"{CLUSTER_TRAINING_RUNTIMES.group}/"


def runtimes_in(files: list[str]) -> list[Object]:
    """The ClusterTrainingRuntimes in files, of whichever version; anything else in them is refused."""
    found: list[Object] = []
    for obj, place in (item for file in files for item in valid(items_in(file))):
        api_version, kind = obj.get("apiVersion"), obj.get("kind")
        if kind != CLUSTER_TRAINING_RUNTIMES.kind or not str(api_version).startswith(
            f"{CLUSTER_TRAINING_RUNTIMES.group}/"
        ):
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
            min=0, metavar="SECONDS", help="How long to wait for each until its kind is served and admission answers."
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
