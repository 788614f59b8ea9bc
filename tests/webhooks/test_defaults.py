"""Defaults of the mutating webhooks."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from tests.webhooks.blueprints import RUNTIMES, StaticRuntimes, blueprint, job, replicated_job, trainer
from trainer.webhooks.defaults import default_nodes, default_runtime, default_train_job

if TYPE_CHECKING:
    from trainer.kube.objects import Object

REF = {"name": "plain", "apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime"}
OURS = "kubeflow.org/trainjob-controller"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, {"runtimeRef": REF, "managedBy": OURS}, id="absent"),
        pytest.param({"managedBy": ""}, {"managedBy": OURS}, id="managed-by-empty"),
        pytest.param(
            {"managedBy": "kueue.x-k8s.io/multikueue"},
            {"managedBy": "kueue.x-k8s.io/multikueue"},
            id="managed-by-other",
        ),
        pytest.param(
            {"runtimeRef": {"name": "plain", "apiGroup": "", "kind": ""}}, {"runtimeRef": REF}, id="ref-empty"
        ),
        pytest.param(
            {"runtimeRef": {"name": "plain", "kind": "TrainingRuntime"}},
            {"runtimeRef": REF | {"kind": "TrainingRuntime"}},
            id="ref-of-the-namespace",
        ),
        pytest.param({"trainer": {"numProcPerNode": 4}}, {"trainer": {"numProcPerNode": "4"}}, id="number"),
        pytest.param({"trainer": {"numProcPerNode": "auto"}}, {"trainer": {"numProcPerNode": "auto"}}, id="word"),
        pytest.param({"trainer": {"numProcPerNode": True}}, {"trainer": {"numProcPerNode": True}}, id="no-number"),
    ],
)
def test_train_job(spec: dict[str, Any], expected: dict[str, Any]) -> None:
    """What is absent gets the KEP's default, and the object that was sent stays as it is."""
    obj = job(**spec)
    before = copy.deepcopy(obj)

    defaulted = default_train_job(obj)

    assert {name: defaulted["spec"][name] for name in expected} == expected
    assert obj == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(job(managedBy=""), job(managedBy=""), id="managed-by"),
        pytest.param(job(managedBy=None), job(managedBy=None), id="managed-by-absent"),
        pytest.param(trainer(numProcPerNode=2), trainer(numProcPerNode=2), id="number"),
        pytest.param(job(runtimeRef={"name": "plain"}), job(runtimeRef={"name": "plain"}), id="runtime-ref"),
    ],
)
def test_what_is_stored_stays(old: Object, new: Object) -> None:
    """An update does not change fields that its author did not touch: they may be immutable."""
    old["spec"].setdefault("managedBy", "")
    new["spec"].setdefault("managedBy", "")
    spec = default_train_job(new, old)["spec"]

    for name in ("managedBy", "trainer"):
        assert spec.get(name) == old["spec"].get(name)
    assert spec["runtimeRef"] == old["spec"]["runtimeRef"]


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
    ("obj", "nodes"),
    [
        pytest.param(job(runtime="elastic"), 1, id="elastic"),
        pytest.param(job(runtime="elastic", trainer={"args": ["x"]}), 1, id="other-settings"),
        pytest.param(job(runtime="elastic", trainer={"numNodes": 2}), 2, id="stated"),
        pytest.param(job(runtime="torch"), None, id="fixed"),
        pytest.param(job(runtime="plain"), None, id="no-policy"),
        pytest.param(job(runtime="nowhere"), None, id="no-runtime-yet"),
        pytest.param(job(runtime="elastic", trainer="x"), None, id="nonsense"),
        pytest.param(job(runtime="elastic", trainer=[]), None, id="empty-nonsense"),
    ],
)
async def test_nodes_of_an_elastic_training(obj: Object, nodes: int | None) -> None:
    """A number that is left out becomes the fewest nodes, so that autoscalers find one."""
    defaulted = await default_nodes(obj, StaticRuntimes(RUNTIMES.values()))
    settings = defaulted["spec"].get("trainer")
    assert (settings.get("numNodes") if isinstance(settings, dict) else None) == nodes


CREATED = {"conditions": [{"type": "Created", "status": "True"}]}


@pytest.mark.parametrize(
    ("old", "obj", "nodes"),
    [
        pytest.param(job(runtime="plain"), job(runtime="elastic"), 1, id="to-an-elastic-runtime"),
        pytest.param(
            job(runtime="elastic", trainer={"numNodes": 1}),
            job(runtime="plain", trainer={"numNodes": 1}),
            None,
            id="to-a-fixed-runtime",
        ),
        pytest.param(
            job(runtime="elastic", trainer={"numNodes": 2}),
            job(runtime="plain", trainer={"numNodes": 2}),
            2,
            id="stated-by-the-author",
        ),
        pytest.param(
            job(runtime="elastic", trainer={"numNodes": 1}),
            job(runtime="plain", trainer={"numNodes": 3}),
            3,
            id="stated-with-the-runtime",
        ),
        pytest.param(job(runtime="elastic"), job(runtime="elastic"), None, id="another-change"),
        pytest.param(job(runtime="nowhere"), job(runtime="elastic"), 1, id="from-a-runtime-that-is-missing"),
        pytest.param(job(runtime="plain", status=CREATED), job(runtime="elastic"), None, id="too-late"),
        pytest.param(job(runtime="plain") | {"spec": None}, job(runtime="elastic"), 1, id="nonsense-before"),
    ],
)
async def test_nodes_after_a_change_of_the_runtime(old: Object, obj: Object, nodes: int | None) -> None:
    """The default is that of the new runtime; what the author has stated stays."""
    defaulted = await default_nodes(obj, StaticRuntimes(RUNTIMES.values()), old)
    assert (defaulted["spec"].get("trainer") or {}).get("numNodes") == nodes


def test_an_update_that_leaves_the_manager_out_keeps_it_ours() -> None:
    """`kubectl replace` with the original file is no change."""
    stored = job(managedBy=OURS)

    assert default_train_job(job(), stored)["spec"]["managedBy"] == OURS


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
        pytest.param(blueprint(policy={"numNodes": 4, "jax": {}}), 4, id="present"),
        pytest.param(blueprint(policy={}), 1, id="empty-policy"),
        pytest.param(blueprint(policy={"torch": {"elasticPolicy": {"minNodes": 1}}}), None, id="elastic"),
        pytest.param(blueprint(policy={"torch": {"elasticPolicy": {}}}), None, id="elastic-without-members"),
        pytest.param(
            blueprint(replicated_job(job_spec={"parallelism": 3}), policy={"jax": {}}), None, id="said-by-the-template"
        ),
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
