"""Which containers besides the one that trains get the variables of torchrun."""

from __future__ import annotations

from typing import Any

import pytest

from tests.framework.samples import env_of, replicated_job, runtime, train_job
from trainer.api.trainingruntime import ClusterTrainingRuntime
from trainer.framework.building.extraction import extract
from trainer.plugins.torch.plugin import Torch

FIELD = "ClusterTrainingRuntime/blueprint spec.mlPolicy.torch.envInjection.targets[0]"


def blueprint(*targets: Any, elastic: bool = False) -> ClusterTrainingRuntime:
    """A runtime with nodes and an evaluator, each with an init container and a sidecar."""
    policy: Any = {"elasticPolicy": {"maxNodes": 2, "maxRestarts": 1}} if elastic else {}
    if targets:
        policy["envInjection"] = {"targets": list(targets)}
    pod = {"initContainers": [{"name": "check", "env": [{"name": "PET_RDZV_CONF", "value": "mine"}]}]}
    return runtime(
        replicated_job("Node", {"name": "trainer"}, {"name": "sidecar"}, pod=pod),
        replicated_job("Evaluator", {"name": "judge"}, {"name": "sidecar"}, pod=pod),
        policy={"torch": policy},
    )


def reported(*targets: Any, elastic: bool = False) -> dict[str, dict[str, Any]]:
    """The variables of all containers that have some of torchrun's, by `<replicated Job>/<container>`."""
    job = train_job()
    info = extract(job, blueprint(*targets, elastic=elastic))
    Torch().enforce_ml_policy(info, job)
    containers = {
        f"{pod_set.name}/{container.name}": env_of({"env": container.env})
        for pod_set in info.pod_sets
        for container in (*pod_set.containers, *pod_set.init_containers)
    }
    return {name: env for name, env in containers.items() if "PET_NNODES" in env}


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        pytest.param([], set(), id="nobody-else"),
        pytest.param([{"jobName": "Node", "containerNames": ["sidecar"]}], {"node/sidecar"}, id="name-as-written"),
        pytest.param(
            [{"jobName": "evaluator", "containerNames": ["judge", "check"]}],
            {"evaluator/judge", "evaluator/check"},
            id="other-Job",
        ),
    ],
)
def test_targets(targets: Any, expected: set[str]) -> None:
    """The containers that the runtime names have torchrun's variables of the one that trains, and no rank of theirs."""
    env = reported(*targets)
    for variable in ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"):
        del env["node/trainer"][variable]
    assert set(env) == {"node/trainer"} | expected
    for name in expected:
        assert env[name] | {"PET_RDZV_CONF": ""} == env["node/trainer"] | {"PET_RDZV_CONF": ""}


def test_advice_may_be_overridden() -> None:
    """A container that has timeouts of its own keeps them."""
    env = reported({"jobName": "node", "containerNames": ["check", "sidecar"]}, elastic=True)
    assert env["node/check"]["PET_RDZV_CONF"] == "mine"
    assert env["node/check"]["PET_RDZV_ID"] == env["node/trainer"]["PET_RDZV_ID"]
    assert env["node/sidecar"] == env["node/trainer"]


@pytest.mark.parametrize(
    ("target", "error"),
    [
        pytest.param({"jobName": "node", "containerNames": ["check", "sidecar"]}, None, id="fine"),
        pytest.param(
            {"jobName": "evaluator", "containerNames": ["judge", "jury"]},
            (
                f'{FIELD}.containerNames: Not found: "jury": replicated Job evaluator has no such container; '
                "it has check, judge, sidecar"
            ),
            id="unknown-container",
        ),
    ],
)
def test_validation(target: Any, error: str | None) -> None:
    """What the runtime does not have, and what has the variables anyway, is refused at the field of the runtime."""
    job = train_job()
    found = Torch().validate(extract(job, blueprint(target)), None, job)
    assert [str(finding) for finding in found] == ([] if error is None else [error])
