"""PlainML: training without a framework."""

from __future__ import annotations

from typing import Any

import pytest

from tests.framework.samples import env_of, replicated_job, runtime, train_job
from trainer.framework.extraction import extract
from trainer.plugins.plainml import PlainML


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        pytest.param(None, {"A": "runtime", "B": "job"}, id="no-policy"),
        pytest.param({"numNodes": 2}, {"A": "runtime", "B": "job"}, id="only-nodes"),
        pytest.param({"torch": {}}, {"A": "runtime", "B": "runtime"}, id="another-plugin-serves-it"),
    ],
)
def test_env(policy: Any, expected: dict[str, str]) -> None:
    """The TrainJob's variables join those of the runtime and win over them."""
    env = [{"name": "A", "value": "runtime"}, {"name": "B", "value": "runtime"}]
    job = train_job(trainer={"numNodes": 3, "env": [{"name": "B", "value": "job"}]})
    info = extract(job, runtime(replicated_job("node", {"name": "trainer", "env": env}), policy=policy))
    PlainML().enforce_ml_policy(info, job)
    assert env_of({"env": info.main_container.env}) == expected
    assert info.trainer.count == 3


def test_a_runtime_without_trainer_is_fine() -> None:
    """A runtime whose Jobs are all fixed needs no trainer as long as the TrainJob has no settings for it."""
    job = train_job()
    info = extract(job, runtime(replicated_job("work")))
    PlainML().enforce_ml_policy(info, job)
    assert info.pod_sets[0].containers[0].env == []


def test_one_process_per_node() -> None:
    """Without a framework there is nobody to start several processes."""
    job = train_job(trainer={"numProcPerNode": 2})
    errors = list(PlainML().validate(extract(job, runtime()), None, job))
    assert [error.field for error in errors] == ["spec.trainer.numProcPerNode"]
