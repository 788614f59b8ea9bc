"""The manifests we ship: CustomResourceDefinitions, runtimes, and everything else in config/."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import yaml

import trainer
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.cli.errors import CommandError
from trainer.kube.objects import Object, name_of
from trainer.v1alpha1.discovery import Version

FIELD_MANAGER = "trainer-cli"
"""Field manager of everything that the command line applies."""

INITIALIZER_IMAGE: Final = f"trainer-initializer:{trainer.__version__}"
"""The image of initializers and exporter in the runtimes that we ship."""
TRANSFORMERS_IMAGE: Final = f"transformers-runtime:{trainer.__version__}"
"""The image of the runtime transformers-distributed."""


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
