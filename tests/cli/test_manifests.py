"""What a cluster needs before it can run TrainJobs."""

from __future__ import annotations

import anyio
import pytest
import yaml

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, ClusterTrainingRuntime
from trainer.cli.errors import CommandError
from trainer.cli.manifests import (
    INITIALIZER_IMAGE,
    configuration_directory,
    example,
    install_definitions,
    install_runtimes,
    runtimes,
)
from trainer.kube.errors import InvalidError
from trainer.kube.objects import name_of, uid_of
from trainer.kube.resource import CUSTOM_RESOURCE_DEFINITIONS
from trainer.v1alpha1.discovery import Version
from trainer_kube_testing import FakeClient, ManualClock


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


async def establish(client: FakeClient, clock: ManualClock) -> None:
    """What an API server does with a CustomResourceDefinition."""
    await clock.wait_for_sleepers()
    for definition in client.objects(CUSTOM_RESOURCE_DEFINITIONS):
        client.add({**definition, "status": {"conditions": [{"type": "Established", "status": "True"}]}})
    await clock.advance(1)


async def test_install(client: FakeClient, clock: ManualClock) -> None:
    """The runtimes are applied once the API server serves their kind; a second time changes nothing."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(establish, client, clock)
        await install_definitions(client, clock)
    await install_runtimes(client)
    before = client.objects(CLUSTER_TRAINING_RUNTIMES)
    await install_definitions(client, clock)
    await install_runtimes(client)

    assert {name_of(definition) for definition in client.objects(CUSTOM_RESOURCE_DEFINITIONS)} == {
        f"{plural}.trainer.kubeflow.org" for plural in ("trainjobs", "trainingruntimes", "clustertrainingruntimes")
    }
    assert sorted(map(name_of, before)) == sorted(map(name_of, runtimes()))
    assert client.objects(CLUSTER_TRAINING_RUNTIMES) == before


async def test_outdated_runtimes_are_replaced(client: FakeClient) -> None:
    """The spec of a runtime cannot change, so one of an older version goes before the new one comes."""
    await install_runtimes(client)
    before = client.objects(CLUSTER_TRAINING_RUNTIMES)
    client.faults.fail(InvalidError(422, "immutable"), resource=CLUSTER_TRAINING_RUNTIMES)
    await install_runtimes(client)
    after = client.objects(CLUSTER_TRAINING_RUNTIMES)
    assert [runtime["spec"] for runtime in after] == [runtime["spec"] for runtime in before]
    assert len({uid_of(runtime) for runtime in after} - {uid_of(runtime) for runtime in before}) == 1


async def test_server_that_never_serves(client: FakeClient, clock: ManualClock) -> None:
    """Definitions that are never established are reported, not awaited forever."""

    async def pass_time() -> None:
        await clock.wait_for_sleepers()
        await clock.advance(60)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pass_time)
        with pytest.raises(CommandError, match="does not serve our resources"):
            await install_definitions(client, clock)


@pytest.mark.parametrize("version", ["v1alpha1", "v2alpha1"])
def test_image_of_initializers(version: Version) -> None:
    """Another image replaces ours in all initializers and exporters, and nothing else."""
    ours, image = runtimes(version), f"registry.example.com/i@sha256:{'0' * 64}"
    others = yaml.safe_dump_all(runtimes(version, image))
    assert others.count(image) >= 6
    assert list(yaml.safe_load_all(others.replace(image, INITIALIZER_IMAGE))) == ours
