"""What may change, and when, as the rules in the definitions say it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.api.samples import runtime, train_job
from tests.api.server import admitted
from trainer.api import rules
from trainer.kube.objects import Object
from trainer.webhooks.mutability import forbidden_changes

OVERRIDE = {
    "targetJobs": [{"name": "node"}],
    "containers": [{"name": "trainer", "env": [{"name": "A", "value": "1"}]}],
    "nodeSelector": {"pool": "a"},
}


def stored(*, created: bool, suspend: bool = False, **spec: Any) -> Object:
    """A TrainJob as the server has it."""
    status = {
        "conditions": [
            {
                "type": "Created",
                "status": "True" if created else "False",
                "reason": "JobsCreationSucceeded" if created else "JobsBuildFailed",
                "message": "",
                "lastTransitionTime": "2026-01-02T03:04:05Z",
            }
        ]
    }
    return train_job(suspend=suspend, **spec) | {"status": status}


def changed(obj: Object, **spec: Any) -> Object:
    """A copy with other fields of its spec; those that are None are gone."""
    obj = copy.deepcopy(obj)
    obj["spec"] = {name: value for name, value in (obj["spec"] | spec).items() if value is not None}
    return obj


def refused(new: Object, old: Object) -> list[str]:
    """What the rules say against a change; the webhook, which says it in other words, refuses the same changes."""
    found = admitted(new, old)
    assert bool([*forbidden_changes(old, new)]) is bool(found)
    return found


@pytest.mark.parametrize("name", ["n" * 80, "9-lives", "dotted.name"])
def test_names_of_the_past_keep_no_finalizers(name: str) -> None:
    """A name cannot be changed, so a rule that came later must not keep anybody from deleting the TrainJob."""
    old = train_job(name)
    new = old | {"metadata": old["metadata"] | {"labels": {"a": "b"}}}
    assert refused(new, old) == []


SMALL = {"limits": {"cpu": "1"}}


@pytest.mark.parametrize(
    ("change", "suspend"),
    [
        ({"trainer": {"numNodes": 3}}, False),
        ({"trainer": {"numNodes": 2, "resourcesPerNode": SMALL}}, False),
        ({"trainer": {"numNodes": 3}, "suspend": True}, False),
        ({"trainer": None}, True),
        ({"trainer": {"args": ["x"]}}, True),
        ({"trainer": {"numNodes": 3, "image": "i"}}, True),
        ({"trainer": {"numNodes": 3, "numProcPerNode": 2}}, True),
    ],
)
def test_what_jobs_were_made_of_stays(change: dict[str, Any], suspend: bool) -> None:
    """Pods that run have one size, and all pods of a TrainJob one image, command and number of processes."""
    old = stored(created=True, suspend=suspend, trainer={"numNodes": 2})
    assert refused(changed(old, **change), old) == [f"spec.trainer: Forbidden: {rules.TRAINER_IMMUTABLE}"]


IDLE = {"name": "node", "ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 1}
STARTED = {"startTime": "2026-01-02T03:04:05Z"}


@pytest.mark.parametrize(
    ("before", "change", "status"),
    [
        pytest.param({"numNodes": 2}, {"trainer": {"numNodes": 3}}, {}, id="changed"),
        pytest.param({"numNodes": 2}, {"trainer": {"numNodes": 3}, "suspend": False}, {}, id="and-resumed"),
        pytest.param({"numNodes": 2}, {"trainer": {}}, {}, id="taken-back"),
        pytest.param(None, {"trainer": {"numNodes": 3}}, {}, id="added"),
        pytest.param({"args": ["x"]}, {"trainer": {"args": ["x"], "numNodes": 3}}, {}, id="beside-others"),
        pytest.param({"numNodes": 2}, {"trainer": {"numNodes": 3}}, STARTED, id="has-started"),
        pytest.param({}, {"trainer": {"resourcesPerNode": SMALL}}, STARTED, id="resources-added"),
        pytest.param({"resourcesPerNode": SMALL}, {"trainer": {}}, STARTED, id="resources-taken-back"),
        pytest.param(
            {"numNodes": 2, "resourcesPerNode": SMALL},
            {"trainer": {"numNodes": 1, "resourcesPerNode": {"limits": {"cpu": "2"}}}, "suspend": False},
            STARTED,
            id="both",
        ),
        *(
            pytest.param({"numNodes": 2}, {"trainer": {"numNodes": 3}}, {"jobsStatus": [IDLE | {count: 1}]}, id=count)
            for count in ("active", "ready", "succeeded", "failed")
        ),
    ],
)
def test_size_and_resources_while_suspended(before: Object | None, change: dict[str, Any], status: Object) -> None:
    """Its JobSet is created again, once its pods are gone."""
    old = changed(stored(created=True, suspend=True), trainer=before)
    old["status"] |= status
    assert refused(changed(old, **change), old) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [pytest.param(None, 3, id="added"), pytest.param(1, 3, id="changed"), pytest.param(1, None, id="taken-back")],
)
@pytest.mark.parametrize("is_elastic", [False, True])
@pytest.mark.parametrize(
    ("change", "suspend", "end", "may_change"),
    [
        pytest.param({}, True, "", True, id="suspended"),
        pytest.param({"suspend": False}, True, "", True, id="and-resumed"),
        pytest.param({}, False, "", False, id="running"),
        pytest.param({"suspend": True}, False, "", False, id="suspended-by-this-update"),
        pytest.param({}, True, "Failed", False, id="ended"),
    ],
)
def test_restarts_may_change_while_suspended(
    before: int | None, after: int | None, is_elastic: bool, change: Object, suspend: bool, end: str, may_change: bool
) -> None:
    """As the number of nodes may: the JobSet is created again."""
    make = elastic if is_elastic else stored
    old = changed(make(created=True, suspend=suspend), maxRestarts=before)
    if end:
        old["status"]["conditions"].append(old["status"]["conditions"][0] | {"type": end})
    expected = [] if may_change else [f"spec.maxRestarts: Forbidden: {rules.RESTARTS_IMMUTABLE}"]
    assert refused(changed(old, maxRestarts=after, **change), old) == expected


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("runtimeRef", {"name": "b"}),
        ("runtimeRef", {"name": "torch-distributed", "kind": "TrainingRuntime"}),
        ("trainer", {"numNodes": 3}),
        ("datasetConfig", {"storageUri": "s3://b"}),
        ("modelConfig", {"output": {"storageUri": "s3://b"}}),
    ],
)
def test_adding_is_a_change(field: str, value: Object) -> None:
    """What was absent or different when the Jobs were created stays so."""
    old = stored(created=True)
    message = rules.TRAINER_IMMUTABLE if field == "trainer" else rules.CREATED_IMMUTABLE
    assert refused(changed(old, **{field: value}), old) == [f"spec.{field}: Forbidden: {message}"]


@pytest.mark.parametrize(
    "change",
    [
        {"runtimeRef": {"name": "b"}},
        {"runtimeRef": {"name": "b", "kind": "TrainingRuntime"}},
        {"trainer": {"numNodes": 3}},
        {"datasetConfig": {"storageUri": "s3://b"}},
        {"modelConfig": {}},
        {"podSpecOverrides": [OVERRIDE]},
        {"labels": {"a": "b"}},
    ],
)
def test_a_job_that_could_not_be_built_can_be_corrected(change: dict[str, Any]) -> None:
    """Until the Jobs exist everything but the immutable fields may change: that is how a build error heals."""
    old = stored(created=False, trainer={"numNodes": 2})
    assert refused(changed(old, **change), old) == []
    assert admitted(train_job(**change), train_job()) == []


@pytest.mark.parametrize(
    ("old", "new"), [pytest.param(True, True, id="suspended"), pytest.param(True, False, id="resumed"), (False, True)]
)
@pytest.mark.parametrize(
    "change",
    [
        {"labels": {"queue": "b"}},
        {"annotations": {"note": "b"}},
        {"podSpecOverrides": [OVERRIDE | {"nodeSelector": {"pool": "b"}}]},
        {"podSpecOverrides": [OVERRIDE | {"tolerations": [{"operator": "Exists"}]}]},
        {"podSpecOverrides": [OVERRIDE | {"schedulingGates": [{"name": "example.com/gate"}]}]},
        {
            "podSpecOverrides": [
                OVERRIDE | {"manager": "a", "time": "2026-01-02T03:04:05Z", "tolerationPolicy": "Replace"}
            ]
        },
        {"jobSetMetadata": {"labels": {"group": "b"}}},
        {"podSpecOverrides": [OVERRIDE | {"metadata": {"labels": {"group": "b"}}}]},
        {"podSpecOverrides": [OVERRIDE, {"targetJobs": [{"name": "node"}], "nodeSelector": {"pool": "b"}}]},
    ],
)
def test_a_queue_may_place_a_suspended_job(old: bool, new: bool, change: dict[str, Any]) -> None:
    """What JobSet takes over while it is suspended may change, also in the update that suspends or resumes."""
    before = stored(created=True, suspend=old, podSpecOverrides=[OVERRIDE], labels={"queue": "a"})
    assert refused(changed(before, suspend=new, **change), before) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("labels", {"queue": "b"}),
        ("labels", None),
        ("annotations", {"note": "b"}),
        ("jobSetMetadata", {"labels": {"group": "b"}}),
        ("podSpecOverrides", [OVERRIDE] * 2),
    ],
)
def test_a_running_job_stays_where_it_is(field: str, value: Any) -> None:
    """Nothing of it may change while it runs."""
    old = stored(created=True, podSpecOverrides=[OVERRIDE], labels={"queue": "a"})
    assert refused(changed(old, **{field: value}), old) == [f"spec.{field}: Forbidden: {rules.SUSPENDED_ONLY}"]


@pytest.mark.parametrize(
    "overrides",
    [
        pytest.param(None, id="removed"),
        pytest.param([OVERRIDE, OVERRIDE | {"containers": [{"name": "sidecar"}]}], id="added"),
        pytest.param([OVERRIDE | {"targetJobs": [{"name": "other"}]}], id="target"),
        pytest.param([OVERRIDE | {"containers": [{"name": "trainer"}]}], id="container"),
        pytest.param([OVERRIDE | {"volumes": [{"name": "v", "emptyDir": {}}]}], id="volume"),
        pytest.param([OVERRIDE | {"serviceAccountName": "admin"}], id="account"),
        pytest.param([OVERRIDE | {"initContainers": [{"name": "init"}]}], id="init-container"),
        pytest.param([OVERRIDE | {"imagePullSecrets": [{"name": "s"}]}], id="pull-secret"),
        pytest.param([OVERRIDE | {"securityContext": {"runAsUser": 0}}], id="user"),
        pytest.param([OVERRIDE | {"terminationGracePeriodSeconds": 0}], id="grace-period"),
        pytest.param([OVERRIDE | {"affinity": {"nodeAffinity": {}}}], id="affinity"),
        pytest.param([OVERRIDE | {"jobMetadata": {"labels": {"a": "b"}}}], id="metadata-of-jobs"),
    ],
)
def test_a_queue_may_not_change_containers(overrides: Any) -> None:
    """Only scheduling directives of overrides may change while the job is suspended."""
    old = stored(created=True, suspend=True, podSpecOverrides=[OVERRIDE])
    new = changed(old, podSpecOverrides=overrides)
    assert refused(new, old) == [f"spec.podSpecOverrides: Forbidden: {rules.OVERRIDES_IMMUTABLE}"]


@pytest.mark.parametrize(
    "change",
    [{"suspend": True}, {"ttlSecondsAfterFinished": 5}, {}],
    ids=["suspend", "time-to-live", "nothing"],
)
def test_what_always_may_change(change: Any) -> None:
    """A running job can be suspended and given a time to live, and its metadata can change."""
    old = stored(created=True, trainer={"numNodes": 2}, podSpecOverrides=[OVERRIDE])
    new = changed(old, **change)
    new["metadata"] = new["metadata"] | {"labels": {"a": "b"}, "finalizers": ["example.com/f"]}
    assert refused(new, old) == []


def test_metadata_of_runtimes_may_change() -> None:
    """A runtime can be labelled as deprecated."""
    new = runtime()
    new["metadata"] |= {"labels": {"trainer.kubeflow.org/support": "deprecated"}}
    assert admitted(new, runtime()) == []


@pytest.mark.parametrize("name", ["Demo", "1demo", "demo-", "de.mo", "d" * 64])
def test_names_are_host_names(name: str) -> None:
    """The name of a TrainJob starts the host names of its pods."""
    assert any("metadata.name must" in refusal for refusal in admitted(train_job(name)))


def elastic(*, created: bool = True, **spec: Any) -> Object:
    """An elastic TrainJob of two to four nodes as the server has it."""
    obj = stored(created=created, **spec)
    obj["status"]["scale"] = {"nodes": 2, "minNodes": 2, "maxNodes": 4, "selector": "a=b"}
    return obj


@pytest.mark.parametrize("before", [None, {"numNodes": 2}, {"numNodes": 2, "args": ["x"]}, {"args": ["x"]}])
@pytest.mark.parametrize("nodes", [2, 3, 4])
def test_an_elastic_training_grows_and_shrinks(before: Object | None, nodes: int) -> None:
    """Its number of nodes may change between the bounds, also from one that nobody has stated."""
    old = changed(elastic(trainer={}), trainer=before)
    assert refused(changed(old, trainer=(before or {}) | {"numNodes": nodes}), old) == []


@pytest.mark.parametrize("nodes", [1, 5])
def test_bounds_of_an_elastic_training(nodes: int) -> None:
    """No other number of nodes, also without webhooks; one that is stored already keeps nobody from anything."""
    old = elastic(trainer={"numNodes": 2})
    error = f"spec.trainer.numNodes: Invalid value: {rules.SCALE_BOUNDS}"
    assert refused(changed(old, trainer={"numNodes": nodes}), old) == [error]
    odd = elastic(trainer={"numNodes": nodes})
    assert refused(changed(odd, suspend=True), odd) == []
    fresh = elastic(created=False, trainer={"numNodes": 2})
    assert refused(changed(fresh, trainer={"numNodes": nodes}), fresh) == []


@pytest.mark.parametrize("end", ["Complete", "Failed"])
def test_an_elastic_training_that_has_ended(end: str) -> None:
    """Nodes that nobody will see are refused."""
    old = elastic(trainer={"numNodes": 2})
    old["status"]["conditions"].append(old["status"]["conditions"][0] | {"type": end})
    assert refused(changed(old, trainer={"numNodes": 3}), old) == [
        f"spec.trainer: Forbidden: {rules.TRAINER_IMMUTABLE}"
    ]


def test_resources_of_an_elastic_training() -> None:
    """They may change while it is suspended, as those of any other."""
    old = elastic(trainer={"numNodes": 2})
    new = changed(old, trainer={"numNodes": 2, "resourcesPerNode": SMALL})
    assert refused(new, old) == [f"spec.trainer: Forbidden: {rules.TRAINER_IMMUTABLE}"]
    old["spec"]["suspend"] = True
    assert refused(new, old) == []


@pytest.mark.parametrize(
    "trainer",
    [
        pytest.param({"numNodes": 3, "args": ["y"]}, id="other-args"),
        pytest.param({"numNodes": 3}, id="no-args"),
        pytest.param({"numNodes": 3, "args": ["x"], "image": "i"}, id="new-image"),
        pytest.param({"args": ["x"]}, id="no-number"),
        pytest.param(None, id="nothing"),
    ],
)
def test_all_else_of_an_elastic_training_stays(trainer: Object | None) -> None:
    """Only the number of nodes may change."""
    old = elastic(trainer={"numNodes": 2, "args": ["x"]})
    assert refused(changed(old, trainer=trainer), old) == [f"spec.trainer: Forbidden: {rules.TRAINER_IMMUTABLE}"]
