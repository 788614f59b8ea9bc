"""TensorFlow: what `TF_CONFIG` tells every worker."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from packages.devcluster.tests.kubelet.fakes import FakeConfigReader
from tests.framework.samples import runtime, train_job
from tests.plugins import enforcement
from trainer.framework.building.extraction import extract
from trainer.framework.plugin_api.runtime_info import RuntimeInfo
from trainer.kube.objects import Object
from trainer.plugins.tensorflow import LONGEST_VARIABLE, TensorFlow
from trainer_devcluster.kubelet.environment import EnvironmentBuilder, PodFacts

INDEX = "batch.kubernetes.io/job-completion-index"
RANK = {"fieldRef": {"fieldPath": f"metadata.annotations['{INDEX}']"}}
POLICY: Object = {"numNodes": 2, "tensorflow": {}}
TOO_MANY = "must be at most 4402: the names of more workers are longer than the environment variable TF_CONFIG may be"


enforced = partial(enforcement.enforced, TensorFlow(), policy=POLICY)


async def environment(info: RuntimeInfo, index: int) -> dict[str, str]:
    """The variables of one pod, as the dev cluster's kubelet expands them."""
    pod = {"metadata": {"name": "pod", "namespace": "default", "annotations": {INDEX: str(index)}}}
    facts = PodFacts("10.88.0.2", "127.0.0.1", {})
    builder = EnvironmentBuilder(pod, {"env": info.main_container.env}, facts, FakeConfigReader())
    return await builder.build()


def test_variables_without_trainer_settings() -> None:
    """Both variables are set even if the TrainJob changes nothing about the trainer, the index first."""
    main = enforced().main_container
    assert main.env == [
        {"name": "TF_TASK_INDEX", "valueFrom": RANK},
        {
            "name": "TF_CONFIG",
            "value": '{"cluster":{"worker":["demo-node-0-0.demo:29400","demo-node-0-1.demo:29400"]},'
            '"task":{"type":"worker","index":$(TF_TASK_INDEX)},"environment":"cloud"}',
        },
    ]
    assert main.ports == [{"containerPort": 29400, "protocol": "TCP"}]


@pytest.mark.parametrize("index", [0, 1, 2])
async def test_every_pod_knows_its_place(index: int) -> None:
    """Expanded by a kubelet, TF_CONFIG is JSON that names all workers in the order of their index, and this one."""
    info = enforced({"trainer": {"numNodes": 3}}, network={"subdomain": "flow"})
    config = json.loads((await environment(info, index))["TF_CONFIG"])
    assert config == {
        "cluster": {"worker": [f"demo-node-0-{worker}.flow:29400" for worker in range(3)]},
        "task": {"type": "worker", "index": index},
        "environment": "cloud",
    }


async def test_variables_of_the_runtime_give_way() -> None:
    """A runtime that sets TF_CONFIG does not bring it before the variable that it refers to."""
    env = [
        {"name": "TF_CONFIG", "value": "{}"},
        {"name": "A", "value": "runtime"},
        {"name": "TF_TASK_INDEX", "value": "7"},
    ]
    info = enforced({"trainer": {"env": [{"name": "ME", "value": "w$(TF_TASK_INDEX)"}]}}, container={"env": env})
    values = await environment(info, 1)
    assert list(values) == ["A", "TF_TASK_INDEX", "TF_CONFIG", "ME"]
    assert json.loads(values["TF_CONFIG"])["task"]["index"] == 1
    assert values["ME"] == "w1"


def test_single_node() -> None:
    """A single node gets no variables and needs no host name: TensorFlow trains on it without a cluster."""
    info = enforced({"trainer": {"numNodes": 1}}, network={"enableDNSHostnames": False})
    assert (info.main_container.env, info.main_container.ports) == ([], [])


def errors(spec: Any, *, name: str = "demo", policy: Any = None) -> list[str]:
    """What validation refuses."""
    job = train_job(name, **spec)
    info = extract(job, runtime(policy=POLICY if policy is None else policy))
    return [str(error) for error in TensorFlow().validate(info, None, job)]


@pytest.mark.parametrize(
    ("spec", "policy", "expected"),
    [
        pytest.param({}, POLICY, [], id="fine"),
        pytest.param(
            {"trainer": {"numProcPerNode": 2}},
            POLICY,
            ["spec.trainer.numProcPerNode: Invalid value: 2: must be 1 or absent"],
            id="several-processes",
        ),
        pytest.param(
            {},
            {"numNodes": 100_000, "tensorflow": {}},
            [f"ClusterTrainingRuntime/blueprint spec.mlPolicy.numNodes: Invalid value: 100000: {TOO_MANY}"],
            id="runtime-with-too-many-nodes",
        ),
    ],
)
def test_validation(spec: Any, policy: Any, expected: list[str]) -> None:
    """Reserved variables, several processes and too many nodes are refused, only in TensorFlow runtimes."""
    found = errors(spec, policy=policy)
    assert len(found) == len(expected)
    assert all(error.startswith(start) for error, start in zip(found, expected, strict=True))


@pytest.mark.parametrize("name", ["a", "demo", "n" * 40])
async def test_as_many_nodes_as_fit(name: str) -> None:
    """The most nodes that are accepted are those whose TF_CONFIG, with every index, is what Linux still takes."""
    (error,) = errors({"trainer": {"numNodes": 100_000}}, name=name)
    most = int(error.split("must be at most ")[1].split(":")[0])

    assert errors({"trainer": {"numNodes": most}}, name=name) == []
    assert len(errors({"trainer": {"numNodes": most + 1}}, name=name)) == 1

    async def length(nodes: int) -> int:
        values = await environment(enforced({"trainer": {"numNodes": nodes}}, name=name), nodes - 1)
        return len(f"TF_CONFIG={values['TF_CONFIG']}\0".encode())

    assert await length(most) <= LONGEST_VARIABLE < await length(most + 1)
