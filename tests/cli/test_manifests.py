"""What a cluster needs before it can run TrainJobs."""

from __future__ import annotations

import pytest
import yaml

from trainer.api.trainingruntime import ClusterTrainingRuntime
from trainer.cli.manifests import (
    INITIALIZER_IMAGE,
    configuration_directory,
    example,
    runtimes,
)
from trainer.kube.objects import name_of
from trainer.v1alpha1.discovery import Version


def test_runtimes_are_valid() -> None:
    """The runtimes that we ship pass our own strict check, and the examples' are among them."""
    shipped = runtimes()

    for runtime in shipped:
        ClusterTrainingRuntime.from_object(runtime, strict=True)
    assert {"torch-distributed", "jax-distributed"} <= set(map(name_of, shipped))
    assert configuration_directory().is_dir()


def test_example() -> None:
    """An example is known by the name of its directory."""
    file = example("jax-digits")

    assert file is not None
    assert file.name == "trainjob.yaml"
    assert example("no-such-example") is None


@pytest.mark.parametrize("version", ["v1alpha1", "v2alpha1"])
def test_image_of_initializers(version: Version) -> None:
    """Another image replaces ours in all initializers and exporters, and nothing else."""
    ours, image = runtimes(version), f"registry.example.com/i@sha256:{'0' * 64}"
    others = yaml.safe_dump_all(runtimes(version, image))
    assert others.count(image) >= 6
    assert list(yaml.safe_load_all(others.replace(image, INITIALIZER_IMAGE))) == ours
