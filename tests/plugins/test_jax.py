"""JAX: what `jax.distributed.initialize` is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.framework.samples import env_of, runtime, train_job
from trainer.framework.extraction import extract
from trainer.framework.trainer_step import apply_trainer_env
from trainer.plugins.jax import Jax

if TYPE_CHECKING:
    from trainer.framework.runtime_info import RuntimeInfo

RANK = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}


def enforced(policy: Any, **spec: Any) -> RuntimeInfo:
    """RuntimeInfo after the plugin."""
    job = train_job(**spec)
    info = extract(job, runtime(policy=policy))
    Jax().enforce_ml_policy(info, job)
    apply_trainer_env(info, job)
    return info


def test_variables_without_trainer_settings() -> None:
    """All variables are set even if the TrainJob changes nothing about the trainer."""
    main = enforced({"numNodes": 2, "jax": {}}).main_container
    assert main.env == [
        {"name": "JAX_NUM_PROCESSES", "value": "2"},
        {"name": "JAX_PROCESS_ID", "valueFrom": RANK},
        {"name": "JAX_COORDINATOR_ADDRESS", "value": "demo-node-0-0.demo:29400"},
    ]
    assert main.ports == [{"containerPort": 29400, "protocol": "TCP"}]


def test_variables_of_the_train_job_win() -> None:
    """KEP-2145 lets users set JAX variables, and they win."""
    env = [{"name": "JAX_NUM_PROCESSES", "value": "1"}, {"name": "JAX_LOCAL_DEVICE_IDS", "value": "0"}]
    values = env_of({"env": enforced({"jax": {}}, trainer={"numNodes": 4, "env": env}).main_container.env})
    assert list(values) == ["JAX_NUM_PROCESSES", "JAX_PROCESS_ID", "JAX_COORDINATOR_ADDRESS", "JAX_LOCAL_DEVICE_IDS"]
    assert values["JAX_NUM_PROCESSES"] == "1"


def test_other_runtimes_are_left_alone() -> None:
    """Without `mlPolicy.jax` nothing changes."""
    info = enforced({"torch": {}})
    assert (info.main_container.env, info.main_container.ports) == ([], [])


@pytest.mark.parametrize(
    ("policy", "processes", "refused"),
    [
        pytest.param({"jax": {}}, 2, True, id="two"),
        pytest.param({"jax": {}}, "gpu", True, id="gpu"),
        pytest.param({"jax": {}}, 1, False, id="one"),
        pytest.param({"jax": {}}, "auto", False, id="auto"),
        pytest.param({"jax": {}}, None, False, id="absent"),
        pytest.param({"torch": {}}, 2, False, id="other-runtime"),
    ],
)
def test_one_process_per_node(policy: Any, processes: Any, refused: bool) -> None:
    """A number of processes that would have no effect is refused."""
    job = train_job(trainer={} if processes is None else {"numProcPerNode": processes})
    errors = list(Jax().validate(extract(job, runtime(policy=policy)), None, job))
    assert [error.field for error in errors] == (["spec.trainer.numProcPerNode"] if refused else [])
