"""JAX: the arguments of `jax.distributed.initialize`, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.framework.samples import env_of, replicated_job, runtime, train_job
from trainer.framework.building.extraction import extract
from trainer.framework.building.trainer_step import apply_trainer_env
from trainer.framework.plugin_api.runtime_info import RuntimeInfo
from trainer.plugins.jax.plugin import Jax

RANK = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
TRAIN = ["python", "train.py"]
DEFAULTS = {"JAX_INITIALIZATION_TIMEOUT": "300", "JAX_COORDINATOR_BIND_ADDRESS": "[::]:29400"}


def gpus(count: int, name: str = "nvidia.com/gpu") -> Any:
    """`resourcesPerNode` with devices."""
    return {"limits": {name: count}}


def enforced(policy: Any, *jobs: Any, **spec: Any) -> RuntimeInfo:
    """RuntimeInfo after the plugin."""
    job = train_job(**spec)
    info = extract(job, runtime(*jobs, policy=policy))
    Jax().enforce_ml_policy(info, job)
    apply_trainer_env(info, job)
    return info


def refusals(*jobs: Any, policy: Any = None, **spec: Any) -> list[str]:
    """What validation says."""
    job = train_job(**spec)
    info = extract(job, runtime(*jobs, policy={"jax": {}} if policy is None else policy))
    return [str(error) for error in Jax().validate(info, None, job)]


def test_variables_without_trainer_settings() -> None:
    """All variables are set even if the TrainJob changes nothing about the trainer."""
    main = enforced({"numNodes": 2, "jax": {}}).main_container
    assert main.env == [
        {"name": "JAX_NUM_PROCESSES", "value": "2"},
        {"name": "JAX_PROCESS_ID", "valueFrom": RANK},
        {"name": "JAX_COORDINATOR_ADDRESS", "value": "demo-node-0-0.demo:29400"},
        {"name": "JAX_INITIALIZATION_TIMEOUT", "value": "300"},
        {"name": "JAX_COORDINATOR_BIND_ADDRESS", "value": "[::]:29400"},
    ]
    assert main.ports == [{"containerPort": 29400, "protocol": "TCP"}]
    assert main.command == []


def with_env(*variables: dict[str, Any]) -> Any:
    """A replicated Job whose training container has variables."""
    return replicated_job("node", {"name": "trainer", "image": "i", "env": list(variables)})


@pytest.mark.parametrize(
    ("jobs", "env", "expected"),
    [
        pytest.param([], [], DEFAULTS, id="defaults"),
        pytest.param(
            [with_env({"name": "JAX_INITIALIZATION_TIMEOUT", "value": "900"})],
            [],
            DEFAULTS | {"JAX_INITIALIZATION_TIMEOUT": "900"},
            id="of-the-runtime",
        ),
        pytest.param(
            [with_env({"name": "JAX_INITIALIZATION_TIMEOUT", "value": "900"})],
            [
                {"name": "JAX_INITIALIZATION_TIMEOUT", "value": "60"},
                {"name": "JAX_COORDINATOR_BIND_ADDRESS", "value": "10.0.0.1:29400"},
                {"name": "JAX_LOCAL_DEVICE_IDS", "value": "0"},
            ],
            {
                "JAX_INITIALIZATION_TIMEOUT": "60",
                "JAX_COORDINATOR_BIND_ADDRESS": "10.0.0.1:29400",
                "JAX_LOCAL_DEVICE_IDS": "0",
            },
            id="of-the-train-job",
        ),
    ],
)
def test_variables_with_defaults(jobs: list[Any], env: list[Any], expected: dict[str, str]) -> None:
    """What KEP-2145 calls optional may be set by the runtime, and by the TrainJob above all."""
    assert refusals(*jobs, trainer={"env": env}) == []
    values = env_of({"env": enforced({"jax": {}}, *jobs, trainer={"env": env}).main_container.env})
    reserved = ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID", "JAX_COORDINATOR_ADDRESS")
    assert {name: value for name, value in values.items() if name not in reserved} == expected


@pytest.mark.parametrize(
    ("wish", "resources", "words"),
    [
        pytest.param(None, gpus(4), None, id="absent"),
        pytest.param("gpu", gpus(1), None, id="one-gpu"),
        pytest.param(2, None, ("2", "0"), id="two-on-cpus"),
        pytest.param("gpu", gpus(8, "amd.com/gpu"), ("8", "1"), id="a-process-for-each-gpu"),
    ],
)
def test_processes_of_a_node(wish: Any, resources: Any, words: tuple[str, str] | None) -> None:
    """Several processes are started by a launcher that knows their number and that of the GPUs of each."""
    settings = {"command": TRAIN, "args": ["--fast"], "numNodes": 3, "numProcPerNode": wish}
    trainer = {name: value for name, value in (settings | {"resourcesPerNode": resources}).items() if value is not None}

    assert refusals(trainer=trainer) == []
    main = enforced({"jax": {}}, trainer=trainer).main_container

    processes = 1 if words is None else int(words[0])
    assert env_of({"env": main.env})["JAX_NUM_PROCESSES"] == str(3 * processes)
    assert main.args == ["--fast"]
    if words is None:
        assert main.command == TRAIN
    else:
        assert main.command[:2] == ["/bin/sh", "-c"]
        assert main.command[3:] == ["jax-launcher", *words, *TRAIN]


@pytest.mark.parametrize(
    ("trainer", "error"),
    [
        pytest.param(
            {"numProcPerNode": "gpu"},
            'Invalid value: "gpu": must not be gpu without GPUs; add them to spec.trainer.resourcesPerNode',
            id="no-gpus",
        ),
        pytest.param(
            {"numProcPerNode": 3, "resourcesPerNode": gpus(8)},
            "Invalid value: 3: must divide the 8 GPUs of a node: one of 1, 2, 4, 8",
            id="not-evenly",
        ),
        pytest.param(
            {"numProcPerNode": 2, "resourcesPerNode": gpus(1)},
            "Invalid value: 2: must divide the 1 GPUs of a node: one of 1",
            id="too-many",
        ),
        pytest.param(
            {"numProcPerNode": 2, "resourcesPerNode": gpus(4, "google.com/tpu")},
            "Invalid value: 2: must be 1 or absent on nodes with TPUs, which one JAX process drives",
            id="tpus",
        ),
    ],
)
def test_nodes_that_cannot_be_split(trainer: Any, error: str) -> None:
    """Processes that could not share what a node has are refused."""
    assert refusals(trainer={"command": TRAIN} | trainer) == [f"spec.trainer.numProcPerNode: {error}"]


def test_several_processes_of_an_unknown_command() -> None:
    """What an image runs by default is not known, so it cannot be started several times, whatever the arguments."""
    expected = (
        "spec.trainer.command: Required value: must be set to start 2 processes on a node: "
        "that of the image is not known here"
    )
    assert refusals(trainer={"numProcPerNode": 2, "args": ["x"]}) == [expected]
    own = replicated_job("node", {"name": "trainer", "image": "i", "command": TRAIN})
    assert refusals(own, trainer={"numProcPerNode": 2}) == []


@pytest.mark.parametrize(
    ("trainer", "names"),
    [
        pytest.param(
            {"numProcPerNode": 2},
            "JAX_COORDINATOR_ADDRESS, JAX_LOCAL_DEVICE_IDS, JAX_NUM_PROCESSES, JAX_PROCESS_ID",
            id="several",
        ),
    ],
)
def test_reserved_variables(trainer: Any, names: str) -> None:
    """Variables that would keep processes from finding each other are the plugin's alone, wherever they are set."""
    env = [{"name": name, "value": "0"} for name in reversed(names.split(", "))]
    rule = f"Forbidden: must not set {names}, which the jax plugin sets; remove it"
    trainer = {"command": TRAIN} | trainer
    override = [{"targetJobs": [{"name": "node"}], "containers": [{"name": "trainer", "env": env}]}]

    assert refusals(trainer=trainer | {"env": env}) == [f"spec.trainer.env: {rule}"]
    assert refusals(trainer=trainer, podSpecOverrides=override) == [
        f"spec.podSpecOverrides[0].containers[0].env: {rule}"
    ]


TIMEOUT = "must be a whole number of seconds, at least 1"
BINDING = "must be host:29400, the port at which the other processes expect the coordinator"


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        pytest.param("JAX_INITIALIZATION_TIMEOUT", "600", None, id="timeout"),
        pytest.param("JAX_INITIALIZATION_TIMEOUT", "$(PATIENCE)", None, id="reference"),
        pytest.param("JAX_INITIALIZATION_TIMEOUT", "", TIMEOUT, id="empty-timeout"),
        pytest.param("JAX_COORDINATOR_BIND_ADDRESS", "[fd00::1]:29400", None, id="ipv6"),
        pytest.param("JAX_COORDINATOR_BIND_ADDRESS", "fd00::1:29400", BINDING, id="ipv6-without-brackets"),
        pytest.param("JAX_LOCAL_DEVICE_IDS", "0, 1", "must be numbers of devices with commas between them, such as 0,1",
                     id="space-between-devices"),
        pytest.param("JAX_LOCAL_DEVICE_IDS", "3,4", "must be numbers below 4, the GPUs of a node", id="no-such-device"),
    ],
)  # fmt: skip
def test_values_of_variables(name: str, value: str, rule: str | None) -> None:
    """Values that would end JAX in each pod, or make its processes wait forever, are refused where they are written."""
    variable, resources = {"name": name, "value": value}, gpus(4)
    override = [{"targetJobs": [{"name": "node"}], "containers": [{"name": "trainer", "env": [variable]}]}]
    container = "ClusterTrainingRuntime/blueprint spec.template.spec.replicatedJobs[node].template.spec.template.spec"
    found = {
        "spec.trainer.env": refusals(trainer={"env": [variable], "resourcesPerNode": resources}),
        "spec.podSpecOverrides[0].containers[0].env": refusals(
            trainer={"resourcesPerNode": resources}, podSpecOverrides=override
        ),
        f"{container}.containers[trainer].env": refusals(with_env(variable), trainer={"resourcesPerNode": resources}),
    }
    assert found == {path: [f'{path}[{name}]: Invalid value: "{value}": {rule}'] if rule else [] for path in found}


def test_only_the_strongest_value_counts() -> None:
    """A value of the runtime that the TrainJob replaces may be anything."""
    name = "JAX_INITIALIZATION_TIMEOUT"
    job = with_env({"name": name, "value": "never"})
    assert refusals(job, trainer={"env": [{"name": name, "value": "60"}]}) == []


def test_values_from_elsewhere() -> None:
    """What a ConfigMap says is known only in the pod."""
    source = {"configMapKeyRef": {"name": "timeouts", "key": "seconds"}}
    env = [{"name": "JAX_INITIALIZATION_TIMEOUT", "valueFrom": source}]
    assert refusals(trainer={"env": env}) == []
    assert (
        env_of({"env": enforced({"jax": {}}, trainer={"env": env}).main_container.env})["JAX_INITIALIZATION_TIMEOUT"]
        == source
    )
