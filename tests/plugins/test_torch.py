"""Torch: the variables of torchrun."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.framework.samples import env_of, replicated_job, runtime, train_job
from tests.plugins import enforcement
from trainer.framework.building.extraction import extract
from trainer.framework.plugin_api.errors import AdmissionWarning
from trainer.plugins.torch.plugin import Torch
from trainer.plugins.torch.processes import processes_per_node

RANK = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}


enforced = partial(enforcement.enforced, Torch(), policy={"numNodes": 2, "torch": {}})


@pytest.mark.parametrize(
    ("spec", "policy", "is_alone"),
    [
        pytest.param({}, {"torch": {"numProcPerNode": 5}}, True, id="runtime-says-nothing-of-nodes"),
        pytest.param({}, {"numNodes": 1, "torch": {"numProcPerNode": 5}}, True, id="admission-has-filled-in-one"),
        pytest.param({"trainer": {"numNodes": 2}}, {"torch": {}}, False, id="TrainJob-wants-two"),
        pytest.param({}, {"torch": {"elasticPolicy": {"maxNodes": 1}}}, False, id="elastic-between-one-and-one"),
    ],
)
def test_standalone(spec: Any, policy: Any, is_alone: bool) -> None:
    """A single node that stays alone meets itself, whether or not the runtime says that there is one."""
    values = env_of({"env": enforced(spec, policy=policy).main_container.env})
    assert values.get("PET_STANDALONE") == ("1" if is_alone else None)


@pytest.mark.parametrize(
    ("trainer", "container"),
    [
        pytest.param({"command": ["torchrun", "--rdzv-endpoint=etcd:2379", "train.py"]}, {}, id="option"),
        pytest.param({"command": ["torchrun"], "args": ["--rdzv_backend", "etcd-v2", "train.py"]}, {}, id="argument"),
        pytest.param({}, {"command": ["torchrun", "--rdzv-endpoint", "etcd:2379", "train.py"]}, id="of-the-runtime"),
        pytest.param({"env": [{"name": "PET_RDZV_ENDPOINT", "value": "etcd:2379"}]}, {}, id="variable"),
        pytest.param({}, {"env": [{"name": "PET_RDZV_BACKEND", "value": "c10d"}]}, id="variable-of-the-runtime"),
    ],
)
def test_a_meeting_point_of_its_own(trainer: Any, container: Any) -> None:
    """A single node that says where it meets others is not made to meet itself, which torchrun would obey first."""
    info = enforced({"trainer": trainer}, container=container, policy={"torch": {}})
    assert "PET_STANDALONE" not in env_of({"env": info.main_container.env})


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["torchrun", "--nnodes=1", "--nproc-per-node=2", "train.py"], id="its-size"),
        pytest.param(["python", "-m", "torch.distributed.run", "train.py", "--rdzvous"], id="similar-word"),
        pytest.param(["accelerate", "launch", "train.py"], id="another-launcher"),
    ],
)
def test_commands_that_name_no_meeting_point(command: list[str]) -> None:
    """Every other command of a single node lets torchrun meet itself."""
    info = enforced({"trainer": {"command": command}}, policy={"torch": {}})
    assert env_of({"env": info.main_container.env})["PET_STANDALONE"] == "1"


OF_SCRIPTS = {"MASTER_ADDR": "demo-node-0-0.demo", "MASTER_PORT": "29400"}
GPUS = {"limits": {"nvidia.com/gpu": 4}}
TUNE = ["tune", "run", "lora_finetune_single_device", "--config", "llama2/7B_lora_single_device"]


@pytest.mark.parametrize(
    ("trainer", "container", "policy", "expected"),
    [
        pytest.param({"numNodes": 3}, {}, {}, OF_SCRIPTS | {"WORLD_SIZE": "3"}, id="auto"),
        pytest.param({"numProcPerNode": "gpu"}, {"resources": GPUS}, {}, OF_SCRIPTS, id="one-for-each-GPU"),
        pytest.param({"numProcPerNode": "cpu"}, {}, {}, OF_SCRIPTS, id="one-for-each-CPU"),
        pytest.param({}, {}, {"elasticPolicy": {"minNodes": 1, "maxNodes": 2}}, {}, id="elastic"),
        pytest.param({"command": TUNE, "numNodes": 1}, {}, {}, {}, id="torchtune"),
        pytest.param(
            {"env": [{"name": "WORLD_SIZE", "value": "8"}]},
            {"env": [{"name": "MASTER_PORT", "value": "7"}]},
            {},
            {"MASTER_ADDR": "demo-node-0-0.demo", "MASTER_PORT": "7", "WORLD_SIZE": "8"},
            id="own-values",
        ),
    ],
)
def test_variables_without_torchrun(trainer: Any, container: Any, policy: Any, expected: Any) -> None:
    """A script finds its place as long as one process runs on a node; what runtime and TrainJob say wins."""
    size = {} if "elasticPolicy" in policy else {"numNodes": 2}
    info = enforced({"trainer": trainer}, container=container, policy={"torch": policy} | size)
    variables = {variable["name"]: variable for variable in info.main_container.env}
    values = {name: variables[name].get("value") for name in (*OF_SCRIPTS, "WORLD_SIZE") if name in variables}
    assert values == expected
    assert variables.get("RANK") == ({"name": "RANK", "valueFrom": RANK} if "WORLD_SIZE" in expected else None)


def test_order_of_variables() -> None:
    """Runtime variables come first, then ours, then the TrainJob's, which can therefore refer to ours."""
    env = [
        {"name": "A", "value": "runtime"},
        {"name": "PET_NNODES", "value": "wrong"},
        {"name": "B", "value": "runtime"},
    ]
    spec = {"trainer": {"numNodes": 3, "env": [{"name": "B", "value": "job"}, {"name": "C", "value": "job"}]}}
    values = env_of({"env": enforced(spec, container={"env": env}).main_container.env})
    assert list(values) == [
        "A", "PET_NNODES", "B", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT",
        "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "C",
    ]  # fmt: skip
    assert (values["A"], values["B"], values["C"], values["PET_NNODES"]) == ("runtime", "job", "job", "3")


def test_ports_of_the_runtime_stay() -> None:
    """Our port is added to those of the runtime, and only once."""
    ports = [{"containerPort": 8080}, {"containerPort": 29400}]
    assert enforced(container={"ports": ports}).main_container.ports == [
        {"containerPort": 8080},
        {"containerPort": 29400, "protocol": "TCP"},
    ]


def resources(**kinds: Any) -> Any:
    """`spec` with resources for each node."""
    return {"trainer": {"resourcesPerNode": kinds}}


@pytest.mark.parametrize(
    ("spec", "policy", "container", "expected"),
    [
        pytest.param({}, {}, {}, "1", id="auto-nothing-known"),
        pytest.param(resources(limits={"cpu": 6, "nvidia.com/gpu": 0}), {}, {}, "6", id="auto-zero-gpus"),
        pytest.param({"trainer": {"numProcPerNode": "cpu"}}, {}, {}, "cpu", id="cpu-not-known"),
        pytest.param({}, {"numProcPerNode": "cpu"}, {"resources": {"limits": {"cpu": 4}}}, "4", id="cpu-known"),
    ],
)
def test_processes_per_node(spec: Any, policy: Any, container: Any, expected: str) -> None:
    """The number of processes is what was asked for; auto follows from the resources of the container."""
    job = train_job(**spec)
    blueprint = runtime(replicated_job("node", {"name": "trainer"} | container), policy={"torch": policy})
    assert processes_per_node(extract(job, blueprint), job) == expected


@pytest.mark.parametrize(
    ("targets", "refused"),
    [
        pytest.param(["side"], False, id="another-job"),
        pytest.param(["Node"], True, id="the-trainer"),
        pytest.param(["side", "node"], True, id="both"),
    ],
)
def test_reserved_variables_of_pods_that_do_not_train(targets: list[str], refused: bool) -> None:
    """A container of the same name in another replicated Job may have any variable: the plugin sets none there."""
    override = {
        "targetJobs": [{"name": name} for name in targets],
        "containers": [{"name": "trainer", "env": [{"name": "PET_NNODES", "value": "1"}]}],
    }
    job = train_job(podSpecOverrides=[override])
    blueprint = runtime(replicated_job("side"), replicated_job("node"), policy={"torch": {}})
    found = [error.field for error in Torch().validate(extract(job, blueprint), None, job)]
    assert found == (["spec.podSpecOverrides[0].containers[0].env"] if refused else [])


@pytest.mark.parametrize(
    ("spec", "warnings"),
    [
        pytest.param(resources(limits={"nvidia.com/gpu": 2}), [], id="one-for-each"),
        pytest.param(
            {"trainer": {"numProcPerNode": 1, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 2}}}},
            [
                (
                    "spec.trainer.numProcPerNode: starts 1 processes on a node with 2 GPUs; "
                    "gpu or auto starts one for each GPU"
                )
            ],
            id="idle",
        ),
    ],
)
def test_idle_gpus(spec: Any, warnings: list[str]) -> None:
    """More GPUs than processes give a warning."""
    job = train_job(**spec)
    found = Torch().validate(extract(job, runtime(policy={"torch": {}})), None, job)
    assert [str(finding) for finding in found if isinstance(finding, AdmissionWarning)] == warnings


NO_GPUS = (
    'spec.trainer.numProcPerNode: Invalid value: "gpu": must not be gpu without GPUs; '
    "add them to spec.trainer.resourcesPerNode"
)
NO_GPUS_FOR_THE_RUNTIME = (
    "spec.trainer.resourcesPerNode: Required value: must have GPUs, since ClusterTrainingRuntime/blueprint "
    "spec.mlPolicy.torch.numProcPerNode is gpu; or set spec.trainer.numProcPerNode"
)
BY_GPU = {"torch": {"numProcPerNode": "gpu"}}


@pytest.mark.parametrize(
    ("spec", "policy", "errors"),
    [
        pytest.param({"trainer": {"numProcPerNode": "gpu"}}, {"torch": {}}, [NO_GPUS], id="of-the-train-job"),
        pytest.param({}, BY_GPU, [NO_GPUS_FOR_THE_RUNTIME], id="of-the-runtime"),
        pytest.param(resources(limits={"google.com/tpu": 4}), BY_GPU, [], id="with-other-devices"),
    ],
)
def test_gpus_are_needed(spec: Any, policy: Any, errors: list[str]) -> None:
    """`gpu` is refused on nodes without GPUs, as on runtimes of other frameworks, where the TrainJob can add them."""
    job = train_job(**spec)
    found = Torch().validate(extract(job, runtime(policy=policy)), None, job)
    assert [str(error) for error in found] == errors
