"""When a suspended JobSet is deleted and created again, because its TrainJob asks for other pods."""

from __future__ import annotations

from typing import Any

import pytest

from tests.framework.samples import replicated_job, runtime, train_job
from tests.plugins.test_jobset import static_reader
from trainer.api.trainjob import TrainJob
from trainer.framework import Component, Pipeline, Registry, Revision
from trainer.kube.objects import Object
from trainer.plugins.coscheduling import Coscheduling
from trainer.plugins.jobset import JobSetPlugin
from trainer.plugins.jobset.revision import SUSPEND
from trainer.plugins.plainml import PlainML
from trainer.plugins.workload import Workload

NONE = {"name": "node", "ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 1}
LARGE = {"limits": {"cpu": "2"}}
STARTED = {"startTime": "2026-01-01T00:00:00Z"}
SCALE = {"scale": {"nodes": 2, "minNodes": 1, "maxNodes": 4, "selector": "a=b"}}


def component(job: TrainJob, *pods: Object, gang: str = "", **jobset: Any) -> Component:
    """The JobSet of a TrainJob whose runtime has an initializer, and perhaps a gang; there are these pods."""
    reader = static_reader(*pods)
    pipeline = Pipeline(Registry([PlainML(), Coscheduling(reader), Workload(reader), JobSetPlugin(reader)]))
    policy: Any = {"podGroupPolicy": {gang: {}}} if gang else {}
    node = replicated_job("node", MOUNTING) if jobset else replicated_job("node")
    blueprint = runtime(replicated_job("load"), node, jobset=jobset, **policy)
    return next(each for each in pipeline.build(job, blueprint) if each.runs_pods)


def existing_of(
    job: TrainJob, *, status: Object | None = None, note: str = "true", gang: str = "", **jobset: Any
) -> Object:
    """The JobSet as it is stored once the TrainJob was suspended."""
    found = component(job, gang=gang, **jobset).object
    metadata = found["metadata"] | {"annotations": {SUSPEND: note}, "resourceVersion": "7", "uid": "j"}
    return found | {"metadata": metadata, "status": status or {}}


def revised(after: TrainJob, existing: Object, *pods: Object, gang: str = "", **jobset: Any) -> Revision:
    """What follows for the existing JobSet."""
    revise = component(after, *pods, gang=gang, **jobset).revise
    assert revise is not None
    revision = revise(existing)
    assert revision is not None
    return revision


def pod(name: str, owner: str = "demo-node-0", phase: str = "Running", uid: str = "j", **metadata: Any) -> Object:
    """A pod with the labels of the JobSet."""
    labels = {
        "jobset.sigs.k8s.io/jobset-name": "demo",
        "jobset.sigs.k8s.io/jobset-uid": uid,
        "jobset.sigs.k8s.io/replicatedjob-name": "node",
        "jobset.sigs.k8s.io/job-index": "0",
    }
    controller = {"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": "u", "controller": True}
    of_job = {"name": name, "namespace": "default", "labels": labels, "ownerReferences": [controller]}
    return {"kind": "Pod", "metadata": of_job | metadata, "status": {"phase": phase}}


def override(**pods: Any) -> Object:
    """Fields of a TrainJob that say where its pods may run."""
    return {"podSpecOverrides": [{"targetJobs": [{"name": "node"}], **pods}]}


ON_SPOT = override(
    nodeSelector={"pool": "spot"},
    tolerations=[{"key": "spot", "operator": "Exists", "effect": ""}],
    schedulingGates=[{"name": "gate"}],
    metadata={"labels": {"a": "1"}, "annotations": {"b": "1"}},
)


@pytest.mark.parametrize(
    ("before", "after", "is_replaced"),
    [
        pytest.param({}, {"trainer": {"numNodes": 2}}, True, id="nodes"),
        pytest.param({}, {"trainer": {"resourcesPerNode": LARGE}}, True, id="resources"),
        pytest.param({"trainer": {"resourcesPerNode": LARGE}}, {}, True, id="resources-taken-back"),
        pytest.param(
            {"trainer": {"resourcesPerNode": LARGE}},
            {"trainer": {"resourcesPerNode": {"limits": {"cpu": "2000m"}}}},
            False,
            id="same-amount",
        ),
        pytest.param({}, ON_SPOT, False, id="placed"),
        pytest.param(ON_SPOT, ON_SPOT, False, id="placed-as-before"),
        *(
            pytest.param(override(**{name: value}), override(), True, id=f"{name}-taken-back")
            for name, value in ON_SPOT["podSpecOverrides"][0].items()
            if name != "targetJobs"
        ),
        pytest.param(
            override(nodeSelector={"pool": "spot"}), override(nodeSelector={"pool": "a"}), False, id="another-value"
        ),
        pytest.param(
            override(tolerations=[{"key": "a"}]), override(tolerations=[{"key": "b"}]), True, id="another-toleration"
        ),
        pytest.param({"trainer": {"image": "old"}}, {"trainer": {"image": "new"}}, False, id="image"),
        pytest.param({}, {"maxRestarts": 0}, True, id="restarts-added"),
        pytest.param({"maxRestarts": 1}, {"maxRestarts": 2}, True, id="restarts"),
        pytest.param({"maxRestarts": 0}, {}, True, id="restarts-taken-back"),
        pytest.param({"maxRestarts": 1}, {"maxRestarts": 1}, False, id="same-restarts"),
    ],
)
@pytest.mark.parametrize("suspend", [True, False])
def test_what_it_takes_another_jobset_for(before: Object, after: Object, is_replaced: bool, suspend: bool) -> None:
    """Size and resources, and what JobSet would not take from Jobs: it only adds to them."""
    existing = existing_of(train_job(suspend=True, **before))
    replacement = revised(train_job(suspend=suspend, **after), existing).replacement
    assert (replacement is not None) is is_replaced
    assert replacement is None or (replacement.awaits, replacement.consequence) == ("", "")


@pytest.mark.parametrize(("note", "is_replaced"), [("from-creation", False), ("true", True)])
@pytest.mark.parametrize("suspend", [True, False])
def test_tolerations_of_what_was_never_resumed(note: str, is_replaced: bool, suspend: bool) -> None:
    """Its pods keep those of the runtime, of which older releases of Kueue say nothing when they add others."""
    existing = existing_of(train_job(suspend=True, **override(tolerations=[{"key": "own"}])), note=note)
    revision = revised(train_job(suspend=suspend, **override(tolerations=[{"key": "flavor"}])), existing)
    assert (revision.replacement is not None) is is_replaced
    assert revision.object["metadata"]["annotations"][SUSPEND] == (note if suspend else "false")


@pytest.mark.parametrize(
    ("before", "after", "is_replaced"),
    [
        pytest.param("", "workload", True, id="into-a-group"),
        pytest.param("workload", "", True, id="out-of-a-group"),
        pytest.param("coscheduling", "workload", True, id="from-another-scheduler"),
        pytest.param("workload", "coscheduling", True, id="to-another-scheduler"),
        pytest.param("workload", "workload", False, id="same-group"),
        pytest.param("", "coscheduling", False, id="labels-are-added"),
    ],
)
def test_gangs_of_another_scheduler(before: str, after: str, is_replaced: bool) -> None:
    """JobSet changes no schedulingGroup, and takes no label away."""
    former = component(train_job(suspend=True), gang=before)
    revision = revised(train_job(suspend=True), existing_of(train_job(suspend=True), gang=before), gang=after)
    assert (revision.replacement is not None) == is_replaced
    assert (former.fixed != component(train_job(suspend=True), gang=after).fixed) == (before != after)


def test_what_another_jobset_is_made_for_is_recorded() -> None:
    """So what others have changed of the existing one is no reason, nor what runs in the pods."""
    jobs: list[Object] = [{}, {"image": "new"}, {"numNodes": 2}, {"resourcesPerNode": LARGE}]
    fixed = [component(train_job(trainer=job)).fixed for job in jobs]
    assert fixed[0] == fixed[1]
    assert fixed[0] not in [*fixed[2:], component(train_job(trainer={}, maxRestarts=1)).fixed]


@pytest.mark.parametrize(
    ("pods", "counts", "awaits"),
    [
        pytest.param([], [NONE], "", id="nothing"),
        pytest.param([], [NONE | {"active": 1}], "pods of node have ended", id="active"),
        pytest.param([], [NONE | {"ready": 1}], "pods of node have ended", id="ready"),
        pytest.param([pod("a")], [NONE], "pod a has ended", id="pod"),
        pytest.param([pod("a", deletionTimestamp="2026-01-01T00:00:00Z")], [NONE], "pod a has ended", id="terminating"),
        pytest.param([pod("b"), pod("a")], [NONE], "pods a, b have ended", id="pods"),
        pytest.param([pod(name) for name in "abcde"], [], "pods a, b, c and 2 more have ended", id="many"),
        pytest.param([pod("a", phase="Succeeded"), pod("b", phase="Failed")], [NONE], "", id="ended"),
        pytest.param([pod("a", owner="other-node-0")], [NONE], "", id="of-another-job"),
        pytest.param([pod("a", uid="earlier")], [NONE], "", id="of-an-earlier-jobset"),
    ],
)
@pytest.mark.parametrize("suspend", [True, False])
def test_nothing_that_runs_is_replaced(pods: list[Object], counts: list[Object], awaits: str, suspend: bool) -> None:
    """Until all pods have ended the JobSet stays suspended and as it is, also when the TrainJob is resumed."""
    existing = existing_of(train_job(suspend=True), status={"replicatedJobsStatus": counts})
    after = train_job(suspend=suspend, trainer={"numNodes": 2})
    replacement = revised(after, existing, *pods).replacement
    assert replacement is not None
    assert replacement.awaits == awaits
    meanwhile = replacement.meanwhile
    assert (meanwhile is not None) is suspend
    if meanwhile is not None:
        assert meanwhile.object["spec"] == existing["spec"]
        assert meanwhile.object["metadata"]["resourceVersion"] == "7"


def test_a_jobset_that_runs_is_suspended_first() -> None:
    """The rest of what the TrainJob asks for waits until its pods have ended."""
    existing = existing_of(train_job(**ON_SPOT), note="false")
    replacement = revised(train_job(suspend=True, trainer={"numNodes": 2}), existing).replacement
    assert replacement is not None
    assert replacement.awaits == "its pods have ended"
    assert replacement.meanwhile is not None
    assert replacement.meanwhile.object["spec"] == existing["spec"] | {"suspend": True}
    assert replacement.meanwhile.object["metadata"]["annotations"] == {SUSPEND: "true"}


def test_a_jobset_that_others_have_resumed() -> None:
    """It is left to them."""
    existing = existing_of(train_job(suspend=True))
    existing["spec"]["suspend"] = False
    revision = revised(train_job(suspend=True, trainer={"numNodes": 2}), existing)
    assert revision.is_resumed
    assert revision.replacement is not None
    assert revision.replacement.awaits == "it is suspended"
    assert revision.replacement.meanwhile == Revision(revision.object, is_resumed=True)


def test_what_runs_again_is_named() -> None:
    """Another JobSet does not know what the former one has completed."""
    counts = [NONE | {"name": "load", "suspended": 0, "succeeded": 1}, NONE]
    existing = existing_of(train_job(suspend=True), status={"replicatedJobsStatus": counts})
    replacement = revised(train_job(suspend=True, trainer={"numNodes": 2}), existing).replacement
    assert replacement is not None
    assert (replacement.awaits, replacement.consequence) == ("", "load runs again")


MOUNTING = {"name": "trainer", "image": "i", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
CLAIMS = {"templates": [{"metadata": {"name": "data"}, "spec": CLAIM}]}
LOST = "its volume claims are deleted with a JobSet, and their data would be lost"
RETAINED = "JobSet creates no JobSet whose volume claims exist"


@pytest.mark.parametrize(
    ("retention", "counts", "note", "kept"),
    [
        pytest.param(None, [NONE], "from-creation", "", id="never-resumed"),
        pytest.param(None, [NONE], "true", LOST, id="resumed"),
        pytest.param("Delete", [NONE | {"succeeded": 1}], "from-creation", LOST, id="a-job-succeeded"),
        pytest.param("Delete", [NONE | {"failed": 1}], "from-creation", LOST, id="a-job-failed"),
        pytest.param("Retain", [NONE], "from-creation", RETAINED, id="retained"),
    ],
)
def test_claims_of_a_jobset(retention: str | None, counts: list[Object], note: str, kept: str) -> None:
    """No data is lost, and no JobSet is deleted that could not be created again; the fields that stay say why."""
    policy = CLAIMS | ({"retentionPolicy": {"whenDeleted": retention}} if retention else {})
    policies: Any = {"volumeClaimPolicies": [policy]}
    existing = existing_of(train_job(suspend=True), status={"replicatedJobsStatus": counts}, note=note, **policies)
    revision = revised(train_job(suspend=True, trainer={"numNodes": 2}), existing, **policies)
    assert (revision.replacement is None) is bool(kept)
    if kept:
        size = "spec.replicatedJobs[node].template.spec"
        assert revision.refused == (f"{size}.parallelism", f"{size}.completions ({kept})")


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        pytest.param({"trainer": {"numNodes": 3}}, STARTED, "spec.trainer.numNodes", id="nodes"),
        pytest.param(
            {"trainer": {"numNodes": 2, "resourcesPerNode": LARGE}}, STARTED, "spec.trainer.resourcesPerNode", id="cpu"
        ),
        pytest.param({"trainer": {"numNodes": 2}, "maxRestarts": 1}, STARTED, "spec.maxRestarts", id="restarts"),
        pytest.param(
            {"trainer": {"numNodes": 3}, "maxRestarts": 1},
            STARTED | SCALE,
            "spec.maxRestarts",
            id="restarts-of-elastic",
        ),
        pytest.param({"trainer": {"numNodes": 2}}, STARTED, "", id="nothing"),
        pytest.param({"trainer": {"numNodes": 3}}, {"jobsStatus": [NONE]}, "", id="never-started"),
        pytest.param({"trainer": {"numNodes": 3}}, {}, "", id="without-jobs"),
    ],
)
def test_admission_refuses_what_claims_do_not_allow(change: Object, status: Object, field: str) -> None:
    """Its author learns at once that the number of nodes stays."""
    blueprint = runtime(replicated_job("node", MOUNTING), jobset={"volumeClaimPolicies": [CLAIMS]})
    old = train_job(suspend=True, trainer={"numNodes": 2}, status=status)
    new = train_job(suspend=True, status=status, **change)
    pipeline = Pipeline(Registry([PlainML(), JobSetPlugin(static_reader())]))
    errors = [error for error in pipeline.review(new, blueprint, old).errors if "volumeClaimPolicies" in str(error)]
    assert [error.field for error in errors] == ([field] if field else [])
    assert not field or LOST in str(errors[0])
