"""The hostfile: hosts, slots, and how long it may change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.framework.samples import replicated_job, train_job
from tests.plugins.mpi_samples import built, enforced, mpi_runtime
from trainer.framework.errors import BuildError
from trainer.plugins.mpi.hostfile import hostfile_config_map
from trainer.plugins.mpi.implementations import IMPLEMENTATIONS

if TYPE_CHECKING:
    from trainer.framework.component import Component


@pytest.mark.parametrize(
    ("policy", "nodes", "lines"),
    [
        pytest.param(
            {"numProcPerNode": 8}, 2, ["demo-node-0-0.demo slots=8", "demo-node-0-1.demo slots=8"], id="OpenMPI"
        ),
        pytest.param(
            {"mpiImplementation": "Intel", "numProcPerNode": 8},
            2,
            ["demo-node-0-0.demo:8", "demo-node-0-1.demo:8"],
            id="Intel",
        ),
        pytest.param(
            {"mpiImplementation": "MPICH", "numProcPerNode": 8},
            2,
            ["demo-node-0-0.demo:8", "demo-node-0-1.demo:8"],
            id="MPICH",
        ),
        pytest.param(
            {"runLauncherAsNode": True},
            2,
            ["demo-launcher-0-0.demo slots=1", "demo-node-0-0.demo slots=1"],
            id="launcher-comes-first",
        ),
        pytest.param({"runLauncherAsNode": True}, 1, ["demo-launcher-0-0.demo slots=1"], id="launcher-alone"),
    ],
)
def test_lines(policy: Any, nodes: int, lines: list[str]) -> None:
    """There is a line for each node, with the number of its processes as the implementation writes it."""
    config_map = built(mpi_runtime(nodes=nodes, **policy))["ConfigMap"]
    assert config_map == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "demo-mpi-hostfile",
            "namespace": "default",
            "labels": {"trainer.kubeflow.org/mpi-hostfile": "demo"},
        },
        "data": {"hostfile": "".join(f"{line}\n" for line in lines)},
    }


@pytest.mark.parametrize(
    ("job", "jobset", "host"),
    [
        pytest.param("trainer-node", {}, "demo-trainer-node-0-0.demo", id="other-job-name"),
        pytest.param("node", {"network": {"subdomain": "ring"}}, "demo-node-0-0.ring", id="subdomain"),
    ],
)
def test_names_of_hosts(job: str, jobset: Any, host: str) -> None:
    """Hosts have the DNS names of the pods."""
    blueprint = mpi_runtime(replicated_job(job), replicated_job("launcher"), nodes=1, jobset=jobset)
    assert built(blueprint)["ConfigMap"]["data"]["hostfile"] == f"{host} slots=1\n"


def test_hosts_need_names() -> None:
    """A runtime that turns DNS names off cannot train with MPI."""
    with pytest.raises(BuildError, match=r"network.enableDNSHostnames: Invalid value: false: must not be false"):
        enforced(mpi_runtime(jobset={"network": {"enableDNSHostnames": False}}))


def hostfile(nodes: int = 2, **spec: Any) -> Component:
    """The component of a TrainJob."""
    blueprint = mpi_runtime(nodes=nodes)
    return hostfile_config_map(enforced(blueprint, **spec), train_job(**spec), IMPLEMENTATIONS["OpenMPI"], 1)


@pytest.mark.parametrize("suspend", [pytest.param(True, id="suspended"), pytest.param(False, id="running")])
def test_changes_of_a_hostfile_that_exists(suspend: bool) -> None:
    """It follows a suspended TrainJob, and is left alone as soon as processes may go by it."""
    component = hostfile(suspend=suspend)
    assert component.revise is not None
    revision = component.revise({"data": {"hostfile": "old"}})
    assert (revision and revision.object) == (component.object if suspend else None)


@pytest.mark.parametrize(
    ("nodes", "spec", "field"),
    [
        pytest.param(2, {"trainer": {"numNodes": 50_000}}, "spec.trainer.numNodes", id="TrainJob"),
        pytest.param(50_000, {}, "ClusterTrainingRuntime/blueprint spec.mlPolicy.numNodes", id="runtime"),
    ],
)
def test_too_many_nodes(nodes: int, spec: Any, field: str) -> None:
    """More nodes than a ConfigMap has room for are refused at their number."""
    with pytest.raises(BuildError) as caught:
        hostfile(nodes, **spec)
    (error,) = caught.value.errors
    assert str(error) == (
        f"{field}: Invalid value: 50000: a ConfigMap has no room for the hostfile of so many nodes (1048576 bytes); "
        "it holds about 34069"
    )


def test_many_nodes() -> None:
    """A hostfile of 30,000 nodes fits."""
    assert hostfile(30_000).object["data"]["hostfile"].endswith("demo-node-0-29999.demo slots=1\n")
