"""The hostfile: hosts, slots, and how long it may change."""

from __future__ import annotations

from typing import Any

import pytest

from tests.framework.samples import replicated_job, train_job
from tests.framework.static_reader import StaticReader
from tests.plugins.mpi_samples import built, enforced, mpi_runtime
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.component import Component
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.startup.registry import Registry
from trainer.kube.objects import Object
from trainer.kube.resource import CONFIG_MAPS
from trainer.plugins.jobset import JobSetPlugin
from trainer.plugins.mpi.hostfile import IMPLEMENTATIONS, hostfile_config_map
from trainer.plugins.mpi.plugin import MPI


@pytest.mark.parametrize(
    ("policy", "nodes", "lines"),
    [
        pytest.param(
            {"numProcPerNode": 8}, 2, ["demo-node-0-0.demo slots=8", "demo-node-0-1.demo slots=8"], id="OpenMPI"
        ),
        pytest.param(
            {"mpiImplementation": "MPICH", "numProcPerNode": 8},
            2,
            ["demo-node-0-0.demo:8", "demo-node-0-1.demo:8"],
            id="MPICH",
        ),
        pytest.param(
            {"mpiImplementation": "MPICH", "runLauncherAsNode": True},
            2,
            ["demo-launcher-0-0:1", "demo-node-0-0.demo:1"],
            id="MPICH-knows-itself-by-its-host-name",
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


def hostfile(nodes: int = 2, *objects: Object, **spec: Any) -> Component:
    """The component of a TrainJob, in a cluster with these objects."""
    job, blueprint = train_job(**spec), mpi_runtime(nodes=nodes)
    info, implementation = enforced(blueprint, **spec), IMPLEMENTATIONS["OpenMPI"]
    return hostfile_config_map(
        info, job, MPI(StaticReader()).hosts(info), implementation, slots=1, reader=StaticReader(*objects)
    )


def jobset(*, suspend: bool) -> Object:
    """The JobSet of the TrainJob."""
    metadata = {"name": "demo", "namespace": "default"}
    return {"kind": "JobSet", "metadata": metadata, "spec": {"suspend": True} if suspend else {}}


@pytest.mark.parametrize(
    ("objects", "suspend", "follows"),
    [
        pytest.param([], True, True, id="suspended-before-there-is-a-jobset"),
        pytest.param([jobset(suspend=True)], False, True, id="changed-and-resumed-in-one-go"),
        pytest.param([jobset(suspend=False)], False, False, id="running"),
    ],
)
def test_changes_of_a_hostfile_that_exists(objects: list[Object], suspend: bool, follows: bool) -> None:
    """It follows the TrainJob until the JobSet runs, and is left alone as soon as processes may go by it."""
    component = hostfile(2, *objects, suspend=suspend)
    assert component.revise is not None
    revision = component.revise({"data": {"hostfile": "old"}})
    assert (revision and revision.object) == (component.object if follows else None)


RULE = "must be at most 34183: a ConfigMap has no room for the hostfile of more nodes"


@pytest.mark.parametrize(
    ("nodes", "spec", "policy", "error"),
    [
        pytest.param(
            2,
            {"trainer": {"numNodes": 50_000}},
            {},
            f"spec.trainer.numNodes: Invalid value: 50000: {RULE}",
            id="TrainJob",
        ),
        pytest.param(
            50_000,
            {},
            {},
            f"ClusterTrainingRuntime/blueprint spec.mlPolicy.numNodes: Invalid value: 50000: {RULE}",
            id="runtime",
        ),
        pytest.param(
            2,
            {"trainer": {"numNodes": 50_000}},
            {"runLauncherAsNode": True},
            f"spec.trainer.numNodes: Invalid value: 50000: {RULE}",
            id="with-the-launcher",
        ),
    ],
)
def test_too_many_nodes(nodes: int, spec: Any, policy: Any, error: str) -> None:
    """More nodes than a ConfigMap has room for are refused at their number."""
    with pytest.raises(BuildError) as caught:
        built(mpi_runtime(nodes=nodes, **policy), **spec)
    assert [str(each) for each in caught.value.errors] == [error]


@pytest.mark.parametrize("subdomain", [pytest.param(None, id="default"), pytest.param("ring", id="custom")])
def test_cluster_domain(subdomain: str | None) -> None:
    """Hosts have their names in full where the domain of the cluster is known."""
    blueprint = mpi_runtime(runLauncherAsNode=True, jobset={"network": {"subdomain": subdomain}} if subdomain else {})
    pipeline = Pipeline(
        Registry([MPI(StaticReader()), JobSetPlugin(StaticReader())]), cluster_domain="example.internal"
    )
    (config_map,) = (c.object for c in pipeline.build(train_job(), blueprint) if c.resource == CONFIG_MAPS)
    domain = f"{subdomain or 'demo'}.default.svc.example.internal"
    assert config_map["data"]["hostfile"] == f"demo-launcher-0-0.{domain} slots=1\ndemo-node-0-0.{domain} slots=1\n"
