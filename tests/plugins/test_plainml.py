"""Runtimes without a framework."""

from __future__ import annotations

import pytest

from tests.framework.samples import replicated_job, runtime, train_job
from trainer.framework import FieldError
from trainer.framework.building.extraction import extract
from trainer.kube.objects import Object
from trainer.plugins.plainml import PlainML

WARNING = (
    "spec.trainer.numNodes: the 2 nodes do not know each other, since ClusterTrainingRuntime/blueprint has no "
    "framework in its mlPolicy: each runs the whole training, unless that divides its work by JOB_COMPLETION_INDEX; "
    "else name a runtime of the framework"
)
TWO: Object = {"numNodes": 2}
NODE = replicated_job("node")


def findings(job: Object, trainer: Object, policy: Object | None) -> list[str]:
    train = train_job(trainer=trainer)
    return [str(each) for each in PlainML().validate(extract(train, runtime(job, policy=policy)), None, train)]


@pytest.mark.parametrize("policy", [pytest.param({"numNodes": 1}, id="policy"), pytest.param(None, id="none")])
def test_nodes_that_do_not_know_each_other(policy: Object | None) -> None:
    """A TrainJob that takes several nodes where none knows the others gets a warning."""
    assert findings(NODE, TWO | {"command": ["python", "train.py"]}, policy) == [WARNING]


@pytest.mark.parametrize(
    ("job", "trainer", "policy"),
    [
        pytest.param(NODE, {}, {"numNodes": 1}, id="as many as the runtime has"),
        pytest.param(NODE, {"numNodes": 1}, {}, id="one node"),
        pytest.param(NODE, TWO, {"numNodes": 4}, id="a runtime for several"),
        pytest.param(NODE, TWO, {"torch": {}}, id="a framework"),
        pytest.param(NODE, TWO | {"env": [{"name": "MASTER_ADDR", "value": "x"}]}, {}, id="a variable of its own"),
        pytest.param(NODE, TWO | {"args": ["part $(JOB_COMPLETION_INDEX)"]}, {}, id="parts of a study"),
        pytest.param(
            replicated_job("node", {"name": "trainer", "image": "i", "env": [{"name": "RANK", "value": "x"}]}),
            TWO,
            {},
            id="a variable of the runtime",
        ),
    ],
)
def test_no_reason_to_warn(job: Object, trainer: Object, policy: Object) -> None:
    """Nothing is said where the nodes find each other, or somebody has thought of several nodes."""
    assert findings(job, trainer, policy) == []


def test_processes() -> None:
    """Several processes on a node are refused."""
    train = train_job(trainer={"numProcPerNode": 2})
    (found,) = PlainML().validate(extract(train, runtime(NODE, policy={})), None, train)
    assert isinstance(found, FieldError)
    assert found.field == "spec.trainer.numProcPerNode"
