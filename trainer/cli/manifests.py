"""The manifests we ship: CustomResourceDefinitions, runtimes, and everything else in config/."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import yaml
from anyio.to_thread import run_sync

import trainer
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.cli.errors import CommandError
from trainer.kube.client import Client
from trainer.kube.clock import Clock, SystemClock, move_on_after
from trainer.kube.errors import InvalidError
from trainer.kube.objects import Object, is_condition_true, name_of
from trainer.kube.resource import CUSTOM_RESOURCE_DEFINITIONS
from trainer.v1alpha1.crds import crds
from trainer.v1alpha1.discovery import Version

FIELD_MANAGER = "trainer-cli"
"""Field manager of everything that the command line applies."""

INITIALIZER_IMAGE: Final = f"trainer-initializer:{trainer.__version__}"
"""The image of initializers and exporter in the runtimes that we ship."""
TRANSFORMERS_IMAGE: Final = f"transformers-runtime:{trainer.__version__}"
"""The image of the runtime transformers-distributed."""

_ESTABLISHED_SECONDS = 30.0
_POLL_SECONDS = 0.1


def configuration_directory() -> Path:
    """`config/` of the repository that we run from, or the copy that the installed package carries."""
    package = Path(trainer.__file__).parent
    for directory in (package / "_config", package.parent / "config"):
        if (directory / "runtimes").is_dir():
            return directory
    raise CommandError(f"the manifests are missing from {package}: install trainer-operator again")


def example(name: str) -> Path | None:
    """The TrainJob file of an example of the repository that we run from; installed packages carry none."""
    file = Path(trainer.__file__).parent.parent / "examples" / name / "trainjob.yaml"
    return file if file.is_file() else None


def manifests(room: str) -> list[Object]:
    """The objects in the files of one directory of config/, by file."""
    files = sorted((configuration_directory() / room).glob("*.yaml"))
    documents = [
        document for file in files for document in yaml.load_all(file.read_text(encoding="utf-8"), yaml.CSafeLoader)
    ]
    return [document for document in documents if document]


def runtimes(
    version: Version = "v2alpha1",
    initializer_image: str = INITIALIZER_IMAGE,
    transformers_image: str = TRANSFORMERS_IMAGE,
) -> list[Object]:
    """The ClusterTrainingRuntimes that we ship for a version of the API, by name."""
    images = {INITIALIZER_IMAGE: initializer_image, TRANSFORMERS_IMAGE: transformers_image}
    shipped = manifests("runtimes" if version == "v2alpha1" else f"{version}/runtimes")
    found = sorted((obj for obj in shipped if obj["kind"] == CLUSTER_TRAINING_RUNTIMES.kind), key=name_of)
    for job in (job for obj in found for job in obj["spec"]["template"]["spec"]["replicatedJobs"]):
        for container in job["template"]["spec"]["template"]["spec"]["containers"]:
            if (image := images.get(container.get("image", ""))) is not None:
                container["image"] = image
    return found


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


async def install_runtimes(client: Client, version: Version = "v2alpha1") -> None:
    """Apply the runtimes that we ship to a cluster of ours; those of an older version are replaced.

    The server must serve their kind, and admission must work if it is on.
    """
    resource = msgspec.structs.replace(CLUSTER_TRAINING_RUNTIMES, version=version)
    for runtime in await run_sync(runtimes, version):
        try:
            await client.apply(resource, runtime, field_manager=FIELD_MANAGER, force=True)
        except InvalidError:
            # The spec of a runtime cannot change; trainings keep a snapshot of what they were built on.
            await client.delete(resource, name_of(runtime))
            await client.apply(resource, runtime, field_manager=FIELD_MANAGER, force=True)
