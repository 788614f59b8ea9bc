"""PaddlePaddle: the options of paddle.distributed.launch."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from packages.devcluster.tests.kubelet.fakes import FakeConfigReader
from tests.framework.samples import runtime, train_job
from tests.plugins import enforcement
from trainer.framework.building.extraction import extract
from trainer.framework.plugin_api.runtime_info import RuntimeInfo
from trainer.kube.objects import Object
from trainer.plugins.paddle import Paddle
from trainer_devcluster.kubelet.environment import EnvironmentBuilder, PodFacts

INDEX = "batch.kubernetes.io/job-completion-index"
POLICY: Object = {"numNodes": 2, "paddle": {}}
GPUS = {"resourcesPerNode": {"limits": {"nvidia.com/gpu": 4}}}


enforced = partial(enforcement.enforced, Paddle(), policy=POLICY)


async def environment(info: RuntimeInfo, index: int = 0) -> dict[str, str]:
    """The variables of one pod, as a kubelet expands them."""
    pod = {"metadata": {"name": "pod", "namespace": "default", "annotations": {INDEX: str(index)}}}
    facts = PodFacts("10.88.0.2", "127.0.0.1", {})
    return await EnvironmentBuilder(pod, {"env": info.main_container.env}, facts, FakeConfigReader()).build()


@pytest.mark.parametrize("index", [0, 1])
async def test_every_launcher_knows_its_place(index: int) -> None:
    """All variables are set without settings of the trainer; the first node's own name is that of the master."""
    info = enforced(network={"subdomain": "paddles"})
    assert await environment(info, index) == {
        "PADDLE_NNODES": "2",
        "PADDLE_RANK": str(index),
        "PADDLE_MASTER": "demo-node-0-0.paddles:29400",
        "POD_IP": f"demo-node-0-{index}.paddles",
        "PADDLE_JOB_ID": "demo",
        "PADDLE_LOG_DIR": f"/tmp/paddle/demo-{index}",
    }
    assert info.main_container.ports == [{"containerPort": 29400, "protocol": "TCP"}]


@pytest.mark.parametrize(
    ("trainer", "processes"),
    [
        pytest.param({}, None, id="the-launcher-counts"),
        pytest.param({"numProcPerNode": "gpu"} | GPUS, None, id="gpu"),
        pytest.param({"numProcPerNode": "2"}, "2", id="number-as-text"),
    ],
)
async def test_processes(trainer: Any, processes: str | None) -> None:
    """Only a number is for us to say: the launcher finds the devices of a node."""
    values = await environment(enforced({"trainer": trainer}))
    assert values.get("PADDLE_NPROC_PER_NODE") == processes


async def test_variables_of_runtime_and_train_job() -> None:
    """Reserved variables of a runtime give way, wherever they stand; a log directory stays."""
    env = [{"name": "POD_IP", "value": "1.2.3.4"}, {"name": "PADDLE_LOG_DIR", "value": "/logs"}]
    info = enforced({"trainer": {"env": [{"name": "ME", "value": "$(PADDLE_RANK)"}]}}, container={"env": env})
    values = await environment(info, 1)
    assert (values["POD_IP"], values["PADDLE_LOG_DIR"], values["ME"]) == ("demo-node-0-1.demo", "/logs", "1")


@pytest.mark.parametrize(
    ("trainer", "policy", "expected"),
    [
        pytest.param({}, POLICY, [], id="fine"),
        pytest.param(
            {"numProcPerNode": "cpu"},
            POLICY,
            ['spec.trainer.numProcPerNode: Invalid value: "cpu": must be a number, gpu or auto: one process of Paddle'],
            id="cpu",
        ),
        pytest.param(
            {"numProcPerNode": "gpu"},
            POLICY,
            ['spec.trainer.numProcPerNode: Invalid value: "gpu": must not be gpu without GPUs'],
            id="no-GPUs",
        ),
        pytest.param(
            {"numProcPerNode": 5} | GPUS,
            POLICY,
            ["spec.trainer.numProcPerNode: Invalid value: 5: must be at most 4, the GPUs of a node"],
            id="too-many",
        ),
    ],
)
def test_validation(trainer: Any, policy: Any, expected: list[str]) -> None:
    """Reserved variables and processes without a device are refused, only in Paddle runtimes."""
    job = train_job(trainer=trainer)
    info = extract(job, runtime(policy=policy))
    found = [str(error) for error in Paddle().validate(info, None, job)]
    assert len(found) == len(expected)
    assert all(error.startswith(start) for error, start in zip(found, expected, strict=True))
