"""RuntimeInfo from runtimes and TrainJobs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.framework.samples import replicated_job, runtime, train_job
from trainer.api.labels import ANCESTOR_LABEL
from trainer.api.trainjob import TrainJob
from trainer.framework.building.extraction import check_growth, extract
from trainer.framework.building.trainer_step import apply_trainer_env
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.plugin_api.runtime_info import RuntimeInfo
from trainer.kube.objects import Object

TRAINER_LABEL = {"labels": {ANCESTOR_LABEL: "trainer"}}


def labelled(name: str, *containers: Object) -> Object:
    """A replicated Job whose Job template has the trainer's label."""
    job = replicated_job(name, *containers)
    job["template"]["metadata"] = TRAINER_LABEL
    return job


def labelled_pods(name: str) -> Object:
    """A replicated Job whose pod template has the trainer's label."""
    job = replicated_job(name)
    job["template"]["spec"]["template"]["metadata"] = TRAINER_LABEL
    return job


@pytest.mark.parametrize(
    ("jobs", "trainer"),
    [
        pytest.param([replicated_job("Node")], "node", id="the-KEP-writes-Node"),
        pytest.param([replicated_job("launcher"), replicated_job("trainer-node")], "trainer-node", id="trainer-node"),
        pytest.param([replicated_job("work"), labelled_pods("train")], "train", id="label-on-pod-template"),
    ],
)
def test_trainer_job(jobs: list[Object], trainer: str) -> None:
    """The trainer is the replicated Job with the label, else the one called node or trainer-node."""
    info = extract(train_job(), runtime(*jobs))
    assert info.trainer.name == trainer
    assert [pod_set.name for pod_set in info.pod_sets if pod_set.main is not None] == [trainer]


@pytest.mark.parametrize(
    ("containers", "main"),
    [
        pytest.param(["sidecar", "trainer", "node"], "trainer", id="trainer-first"),
        pytest.param(["sidecar", "node"], "node", id="node"),
        pytest.param(["pytorch"], "pytorch", id="only-container"),
    ],
)
def test_main_container(containers: list[str], main: str) -> None:
    """The container that trains is called trainer or node, or is the only one."""
    job = replicated_job("node", *({"name": name} for name in containers))
    assert extract(train_job(), runtime(job)).main_container.name == main


@pytest.mark.parametrize(
    ("jobs", "spec", "message"),
    [
        pytest.param(
            [replicated_job("node", {"name": "trainer", "resources": {"limits": {"cpu": "many"}}})],
            {},
            "ClusterTrainingRuntime/blueprint spec.template.spec.replicatedJobs[node].template.spec.template.spec."
            'containers[0].resources.limits[cpu]: Invalid value: "many": must be a quantity such as 2, 500m or 4Gi',
            id="quantity",
        ),
    ],
)
def test_refused(jobs: list[Object], spec: Any, message: str) -> None:
    """A TrainJob that does not fit its runtime is refused with the field and the remedy."""
    with pytest.raises(BuildError) as caught:
        extract(train_job(**spec), runtime(*jobs))
    assert str(caught.value) == message


def test_trainer_settings() -> None:
    """Image, command, args and resources of the TrainJob replace or join those of the runtime's trainer."""
    container = {
        "name": "trainer",
        "image": "old",
        "command": ["torchrun train.py"],
        "args": ["--old"],
        "resources": {"requests": {"cpu": 1, "memory": "1Gi"}, "limits": {"nvidia.com/gpu": 1}},
    }
    trainer = {
        "image": "new",
        "command": ["python train.py"],
        "args": [],
        "resourcesPerNode": {"requests": {"cpu": 4}, "claims": [{"name": "gpu"}]},
    }

    main = extract(train_job(trainer=trainer), runtime(replicated_job("node", container))).main_container

    assert (main.image, main.command, main.args) == ("new", ["python", "train.py"], [])
    assert main.resources == {
        "requests": {"cpu": 4, "memory": "1Gi"},
        "limits": {"nvidia.com/gpu": 1},
        "claims": [{"name": "gpu"}],
    }


def mpi_info(*jobs: Object, mpi: Object | None = None, **spec: Any) -> RuntimeInfo:
    """RuntimeInfo of an MPI runtime with a launcher and nodes."""
    present = jobs or (
        replicated_job("launcher", {"name": "mpi-launcher", "image": "a", "command": ["mpirun"]}),
        replicated_job("trainer-node", {"name": "trainer", "image": "b", "command": ["sshd"]}),
    )
    return extract(train_job(**spec), runtime(*present, policy={"numNodes": 2, "mpi": mpi or {}}))


@pytest.mark.parametrize(
    "jobs",
    [
        pytest.param([], id="as-in-the-KEP"),
        pytest.param([replicated_job("node"), labelled("launcher")], id="as-Kubeflow-Trainer-ships-them"),
        pytest.param([labelled("workers"), labelled("launcher")], id="labelled"),
    ],
)
def test_a_launcher_is_no_node(jobs: list[Object]) -> None:
    """The nodes of an MPI training are those that the launcher starts it on; the command is the launcher's."""
    info = mpi_info(*jobs, trainer={"numNodes": 3, "command": ["mpirun", "a.out"]})
    assert info.launcher is not None
    assert [(pod_set.name, pod_set.count) for pod_set in (info.launcher, info.trainer)] == [
        ("launcher", 1),
        (next(pod_set.name for pod_set in info.pod_sets if pod_set.name != "launcher"), 3),
    ]
    assert info.main_container is info.launcher.main
    assert info.main_container.command == ["mpirun", "a.out"]
    assert info.trainer.main_container.command in ([], ["sshd"])
    assert info.gang == [info.trainer]


@pytest.mark.parametrize("is_node", [True, False])
def test_what_launcher_and_nodes_share(is_node: bool) -> None:
    """The image and the variables are those of both, resources those of what trains."""
    resources = {"limits": {"cpu": "4"}}
    spec = {"image": "new", "env": [{"name": "A", "value": "1"}], "resourcesPerNode": resources, "args": ["x"]}
    info = mpi_info(mpi={"runLauncherAsNode": is_node}, trainer=spec)
    apply_trainer_env(info, train_job(trainer=spec))
    assert info.launcher is not None
    launcher, node = info.launcher.main_container, info.trainer.main_container
    assert (launcher.image, node.image) == ("new", "new")
    assert launcher.env == node.env == [{"name": "A", "value": "1"}]
    assert node.resources == resources
    assert launcher.resources == (resources if is_node else {})
    assert (launcher.args, node.args) == (["x"], [])


GPUS: Object = {"requests": {"nvidia.com/gpu": 4, "cpu": 8}, "limits": {"nvidia.com/gpu": 4, "memory": "1Ti"}}


@pytest.mark.parametrize(
    ("is_node", "own", "expected"),
    [
        pytest.param(True, {}, GPUS, id="nothing-of-its-own"),
        pytest.param(True, {"limits": {"nvidia.com/gpu": 1}}, {"limits": {"nvidia.com/gpu": 1, "memory": "1Ti"},
                                                               "requests": {"cpu": 8}}, id="fewer-gpus"),
        pytest.param(False, {"limits": {"cpu": 2}}, {"limits": {"cpu": 2}}, id="does-not-train"),
    ],
)  # fmt: skip
def test_resources_of_a_launcher(is_node: bool, own: Object, expected: Object) -> None:
    """A launcher that trains has what a node of the runtime has, where it does not say what it needs itself."""
    launcher = replicated_job("launcher", {"name": "trainer", "image": "i", "resources": own})
    node = replicated_job("node", {"name": "trainer", "image": "i", "resources": GPUS})
    info = mpi_info(launcher, node, mpi={"runLauncherAsNode": is_node})
    assert info.launcher is not None
    assert info.launcher.main_container.resources == expected
    assert info.trainer.main_container.resources == GPUS


def test_a_launcher_of_no_mpi_training() -> None:
    """Without the policy it is a replicated Job like others."""
    info = extract(train_job(), runtime(replicated_job("launcher"), replicated_job("node")))
    assert info.launcher is None
    assert info.main_container is info.trainer.main


KIB = 1024


def large_train_job(**spec: Any) -> TrainJob:
    """A TrainJob with settings that stand in many places."""
    return TrainJob.from_object({"metadata": {"name": "t"}, "spec": {"runtimeRef": {"name": "torch"}, **spec}})


def override(size: int, *targets: str) -> dict[str, Any]:
    """An override of a size for some replicated Jobs."""
    env = [{"name": "A", "value": "a" * size}]
    return {"targetJobs": [{"name": name} for name in targets], "containers": [{"name": "c", "env": env}]}


@pytest.mark.parametrize(
    ("settings", "jobs", "field"),
    [
        pytest.param({"annotations": {"a": "a" * 256 * KIB}}, 100, "spec.annotations", id="annotations"),
        pytest.param({"labels": {f"l{n}": "a" * 60 for n in range(1000)}}, 100, "spec.labels", id="labels"),
        pytest.param(
            {"podSpecOverrides": [override(10, "a"), override(100 * KIB, *(f"n{n}" for n in range(100)))]},
            100,
            "spec.podSpecOverrides[1]",
            id="override",
        ),
    ],
)
def test_too_large(settings: dict[str, Any], jobs: int, field: str) -> None:
    """What no API server would take is refused before it is made, with the setting that grows the most."""
    with pytest.raises(BuildError) as refusal:
        check_growth(large_train_job(**settings), jobs)
    assert [error.field for error in refusal.value.errors] == [field]
    assert "which may have 3072 KiB" in str(refusal.value)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        pytest.param(None, {"maxRestarts": 0, "restartStrategy": "BlockingRecreate"}, id="of the runtime none"),
        pytest.param(
            {"maxRestarts": 2, "rules": [{"action": "FailJobSet"}]},
            {"maxRestarts": 0, "rules": [{"action": "FailJobSet"}]},
            id="the rest of it stays",
        ),
    ],
)
def test_restarts(policy: Object | None, expected: Object) -> None:
    """A TrainJob says how often it starts again; without a policy of the runtime, nobody before all have ended."""
    blueprint = runtime(jobset={"failurePolicy": policy} if policy else {})
    found = extract(train_job(maxRestarts=0), blueprint).template.failure_policy
    assert found is not None
    assert found.to_object() == expected
    unstated = extract(train_job(), blueprint).template.failure_policy
    assert (unstated.to_object() if unstated else None) == policy
