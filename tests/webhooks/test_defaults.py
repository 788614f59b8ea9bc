"""Defaults of the mutating webhooks."""

from __future__ import annotations

import copy

import pytest

from tests.webhooks.blueprints import blueprint, job, trainer
from trainer.kube.objects import Object
from trainer.webhooks.defaults import default_runtime, default_train_job


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(4, "4", id="number"),
        pytest.param("auto", "auto", id="word"),
        pytest.param(True, True, id="no-number"),
    ],
)
def test_train_job(given: object, expected: object) -> None:
    """A number of processes becomes a string, and the object that was sent stays as it is."""
    obj = trainer(numProcPerNode=given)
    before = copy.deepcopy(obj)

    assert default_train_job(obj)["spec"]["trainer"] == {"numProcPerNode": expected}
    assert obj == before


def test_what_is_stored_stays() -> None:
    """An update does not change a field that its author did not touch: it may be immutable."""
    stored = trainer(numProcPerNode=2)

    assert default_train_job(stored, stored) == stored


def test_a_replacement_keeps_what_an_autoscaler_has_set() -> None:
    """`kubectl replace` with the original file, which names no number of nodes, does not shrink an elastic training."""
    scale = {"nodes": 4, "minNodes": 2, "maxNodes": 8, "selector": "a=b"}
    old = trainer(numNodes=4, args=["x"]) | {"status": {"scale": scale}}

    assert default_train_job(trainer(args=["y"]), old)["spec"]["trainer"] == {"numNodes": 4, "args": ["y"]}
    assert default_train_job(trainer(numNodes=None), old)["spec"]["trainer"] == {"numNodes": 4}
    assert default_train_job(job(), old)["spec"]["trainer"] == {"numNodes": 4}
    assert default_train_job(trainer(numNodes=3), old)["spec"]["trainer"] == {"numNodes": 3}
    assert "trainer" not in default_train_job(job(), trainer(numNodes=4))["spec"], "the number of others is fixed"


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"spec": None}, id="no-spec"),
        pytest.param({"spec": "x"}, id="text"),
        pytest.param({"spec": {"runtimeRef": [], "trainer": 1}}, id="wrong-types"),
    ],
)
def test_nonsense_is_left_to_validation(wrong: Object) -> None:
    """Defaulting comes before validation, so it must put up with everything."""
    obj = job() | wrong

    assert default_train_job(obj)["kind"] == "TrainJob"
    assert default_runtime(blueprint() | wrong)["kind"] == "ClusterTrainingRuntime"


@pytest.mark.parametrize(
    ("runtime", "nodes"),
    [
        pytest.param(blueprint(policy={"jax": {}}), 1, id="absent"),
        pytest.param(blueprint(policy={"torch": {"elasticPolicy": {}}}), None, id="elastic-without-members"),
    ],
)
def test_nodes_of_a_runtime(runtime: Object, nodes: int | None) -> None:
    """One node is the default, unless the number is elastic or the JobSet has one of its own."""
    assert default_runtime(runtime)["spec"]["mlPolicy"].get("numNodes") == nodes


def test_runtime() -> None:
    """Numbers of processes become strings; a runtime without a policy gets none."""
    torch = default_runtime(blueprint(policy={"torch": {"numProcPerNode": 8}}))

    assert torch["spec"]["mlPolicy"]["torch"] == {"numProcPerNode": "8"}
    assert default_runtime(blueprint()) == blueprint()
