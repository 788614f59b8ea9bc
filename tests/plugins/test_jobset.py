"""JobSet: what is built, what may change, and how it ends."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.framework.samples import pod_metadata, replicated_job, runtime, train_job, train_job_object
from tests.framework.static_reader import StaticReader
from trainer.api.trainingruntime import ClusterTrainingRuntime
from trainer.api.trainjob import TrainJob
from trainer.api.trainjob_status import ConditionType, RestartCounts
from trainer.framework import APPLIED_HASH
from trainer.framework.building.extraction import extract
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.startup.registry import Registry
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.objects import Object, ObjectKey, controller_reference
from trainer.plugins.jax.plugin import Jax
from trainer.plugins.jobset import JobSetPlugin
from trainer.plugins.jobset.pod_index import POD_PROBLEMS, problems_of
from trainer.plugins.jobset.revision import SUSPEND
from trainer.plugins.plainml import PlainML
from trainer.plugins.torch.plugin import Torch

GOLDEN = Path(__file__).parent / "golden"


def build(job: TrainJob, blueprint: ClusterTrainingRuntime) -> Object:
    """The JobSet of a TrainJob."""
    pipeline = Pipeline(Registry([PlainML(), Torch(), Jax(), JobSetPlugin(StaticReader())]))
    (component,) = pipeline.build(job, blueprint)
    return component.object


@pytest.mark.parametrize("case", ["torch", "jax", "llm-fine-tuning"])
def test_golden(case: str) -> None:
    """A TrainJob and a runtime as the KEP writes them become exactly this JobSet."""
    blueprint, job, jobset = yaml.load_all((GOLDEN / f"{case}.yaml").read_text(), yaml.CSafeLoader)
    built = build(TrainJob.from_object(job, strict=True), ClusterTrainingRuntime.from_object(blueprint, strict=True))
    assert built == jobset


def test_what_the_runtime_says_is_carried() -> None:
    """Policies, network and everything of the pods that we do not touch come from the runtime unchanged."""
    policies = {
        "network": {"subdomain": "ring", "publishNotReadyAddresses": True},
        "successPolicy": {"operator": "All", "targetReplicatedJobs": ["node"]},
        "failurePolicy": {"maxRestarts": 3},
        "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
    }
    container = {"name": "trainer", "image": "i", "livenessProbe": {"exec": {"command": ["x"]}}, "workingDir": "/w"}
    pod = {"restartPolicy": "OnFailure", "hostIPC": True, "initContainers": [{"name": "init", "image": "i"}]}
    job = replicated_job("node", container, pod=pod, job={"backoffLimit": 7}, groupName="g")

    spec = build(train_job(), runtime(job, jobset=policies))["spec"]

    assert {name: spec[name] for name in policies} == policies
    assert spec["replicatedJobs"] == [
        {
            "name": "node",
            "groupName": "g",
            "replicas": 1,
            "template": {
                "spec": {
                    "backoffLimit": 7,
                    "parallelism": 1,
                    "completions": 1,
                    "template": {"spec": {"containers": [container]} | pod},
                }
            },
        }
    ]


@pytest.mark.parametrize(
    ("job", "size"),
    [
        pytest.param({}, (1, 1), id="nothing-said"),
        pytest.param({"parallelism": 3}, (3, 3), id="indexed-jobs-need-completions"),
        pytest.param({"parallelism": 2, "completions": 6}, (2, 6), id="as-the-runtime-says"),
    ],
)
def test_size_of_other_jobs(job: Object, size: tuple[int, int]) -> None:
    """Jobs other than the trainer keep the size that the runtime gives them, by default one pod."""
    jobset = build(
        train_job(trainer={"numNodes": 5}), runtime(replicated_job("Initializer", job=job), replicated_job())
    )
    specs = [job["template"]["spec"] for job in jobset["spec"]["replicatedJobs"]]
    assert [(spec["parallelism"], spec["completions"]) for spec in specs] == [size, (5, 5)]


def test_labels_and_annotations_reach_jobset_jobs_and_pods() -> None:
    """Labels and annotations of the TrainJob are merged into all three."""
    job = replicated_job()
    job["template"]["metadata"] = {"labels": {"a": "runtime"}}
    job["template"]["spec"]["template"]["metadata"] = {"annotations": {"b": "runtime", "c": "runtime"}}

    jobset = build(train_job(labels={"a": "job"}, annotations={"c": "job"}), runtime(job))

    template = jobset["spec"]["replicatedJobs"][0]["template"]
    assert jobset["metadata"] == {
        "name": "demo",
        "namespace": "default",
        "labels": {"a": "job"},
        "annotations": {"c": "job"},
    }
    assert template["metadata"] == {"labels": {"a": "job"}, "annotations": {"c": "job"}}
    assert template["spec"]["template"]["metadata"] == {
        "labels": {"a": "job"},
        "annotations": {"b": "runtime", "c": "job"},
    }


def test_endpoints() -> None:
    """Every pod has a DNS name in the subdomain, numbered by Job and index."""
    info = extract(
        train_job(trainer={"numNodes": 2}), runtime(replicated_job("ps", replicas=2), replicated_job("node"))
    )
    JobSetPlugin(StaticReader()).identify_pod_network(info, train_job())
    assert [tuple(pod_set.endpoints) for pod_set in info.pod_sets] == [
        ("demo-ps-0-0.demo", "demo-ps-1-0.demo"),
        ("demo-node-0-0.demo", "demo-node-0-1.demo"),
    ]


def stored(jobset: Object, **spec: Any) -> Object:
    """The JobSet as the API server stores it, with defaults."""
    existing = copy.deepcopy(jobset)
    existing["spec"] |= {"network": {"enableDNSHostnames": True}, "successPolicy": {"operator": "All"}} | spec
    existing["spec"]["replicatedJobs"][0]["groupName"] = "default"
    return existing


def revision(
    before: TrainJob, after: TrainJob, existing: Object, blueprint: ClusterTrainingRuntime | None = None
) -> Any:
    """What the plugin would apply to the existing JobSet of `before`."""
    pipeline = Pipeline(Registry([PlainML(), JobSetPlugin(StaticReader())]))
    (component,) = pipeline.build(after, blueprint or runtime())
    assert component.revise is not None
    return component.revise(existing)


def test_a_running_jobset_is_left_alone() -> None:
    """While pods run nothing is applied, whatever changed."""
    existing = stored(build(train_job(), runtime()))
    assert revision(train_job(), train_job(trainer={"image": "new"}, labels={"a": "b"}), existing) is None


def test_a_finished_jobset_is_left_alone() -> None:
    """A JobSet that has ended is not suspended any more."""
    existing = stored(build(train_job(), runtime())) | {"status": {"terminalState": "Completed"}}
    assert revision(train_job(), train_job(suspend=True), existing) is None


def test_suspending_changes_nothing_else() -> None:
    """The rest of the spec is applied as it is stored, since JobSet refuses changes."""
    existing = stored(build(train_job(), runtime()))
    change = revision(train_job(), train_job(suspend=True), existing)
    assert change.object["spec"] == existing["spec"] | {
        "suspend": True,
        "replicatedJobs": change.object["spec"]["replicatedJobs"],
    }
    assert change.refused == ()


def test_what_may_change_while_suspended() -> None:
    """Labels, annotations, node selector and tolerations of pods follow the TrainJob, additions and removals alike."""
    override = {"targetJobs": [{"name": "node"}], "nodeSelector": {"a": "1"}, "tolerations": [{"key": "k"}]}
    before = train_job(suspend=True, labels={"old": "1"}, podSpecOverrides=[override])
    override = {"targetJobs": [{"name": "node"}], "nodeSelector": {"b": "2"}}
    after = train_job(suspend=False, annotations={"new": "1"}, podSpecOverrides=[override])

    change = revision(before, after, stored(build(before, runtime())))

    pod = change.object["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    assert pod["metadata"] == {"annotations": {"new": "1"}}
    assert pod["spec"]["nodeSelector"] == {"b": "2"}
    assert "tolerations" not in pod["spec"]
    assert change.object["metadata"]["annotations"] == {"new": "1", SUSPEND: "false"}
    assert change.object["spec"]["suspend"] is False
    assert change.starts_pods
    # Nobody can change those of the Jobs, so nothing is said about them either.
    assert change.object["spec"]["replicatedJobs"][0]["template"]["metadata"] == {"labels": {"old": "1"}}
    assert change.refused == ()


def test_what_may_not_change_is_reported() -> None:
    """Fields that came too late are named, and the stored ones stay."""
    before = train_job(suspend=True, trainer={"image": "old"})
    after = train_job(suspend=True, trainer={"image": "new", "numNodes": 2})

    change = revision(before, after, stored(build(before, runtime())))

    containers = change.object["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"]
    assert containers[0]["image"] == "old"
    job = "spec.replicatedJobs[node].template.spec"
    assert set(change.refused) == {
        f"{job}.parallelism",
        f"{job}.completions",
        f"{job}.template.spec.containers[trainer].image",
    }


OURS = {APPLIED_HASH: "0"}
"""Annotation of a JobSet that this manager has made."""
BY_TRAIN_JOB = {SUSPEND: "true"}
"""Annotation of a JobSet that its TrainJob has suspended last."""


@pytest.mark.parametrize(
    ("existing", "annotations", "suspend", "applied"),
    [
        pytest.param({"spec": {"suspend": False}}, {}, True, {"suspend": True}, id="suspend"),
        pytest.param({"spec": {"suspend": True}}, BY_TRAIN_JOB, False, {"suspend": False}, id="resume"),
        pytest.param({"spec": {}}, {}, False, None, id="not-suspended"),
        pytest.param({"spec": {}}, {SUSPEND: "false"}, False, None, id="resumed-already"),
        pytest.param({"spec": {"suspend": True}}, BY_TRAIN_JOB, True, None, id="suspended-already"),
        pytest.param({"spec": {"suspend": True}}, OURS, False, None, id="suspended-by-others"),
        pytest.param({"spec": {"suspend": True}}, {}, False, {"suspend": False}, id="released-manager-has-suspended"),
        pytest.param({"spec": {"suspend": True}}, {}, True, None, id="released-manager-has-suspended-still"),
        pytest.param({"spec": {"suspend": True}}, {SUSPEND: "false"}, False, None, id="suspended-by-others-later"),
        pytest.param({"spec": {"suspend": False}}, BY_TRAIN_JOB, True, {"suspend": False}, id="resumed-by-others"),
        pytest.param({"spec": {"suspend": False}}, BY_TRAIN_JOB, False, {"suspend": False}, id="resumed-by-both"),
        pytest.param({"spec": {}, "status": {"terminalState": "Failed"}}, {}, True, None, id="ended"),
        pytest.param({"spec": {"ttlSecondsAfterFinished": 0}}, {}, False, {}, id="would-delete-itself"),
        pytest.param(
            {"spec": {"suspend": True, "ttlSecondsAfterFinished": 0}},
            BY_TRAIN_JOB,
            False,
            {"suspend": False},
            id="would-delete-itself-when-resumed",
        ),
    ],
)
def test_suspension_without_a_runtime(
    existing: Object, annotations: Object, suspend: bool, applied: Object | None
) -> None:
    """The JobSet is applied as it exists, if the TrainJob's suspend has changed, or the JobSet would delete itself."""
    jobset = owned_jobset() | {"apiVersion": "jobset.x-k8s.io/v1alpha2"} | existing
    jobset["metadata"]["annotations"] = annotations
    jobset["spec"] = jobset["spec"] | {"replicatedJobs": [{"name": "node"}]}
    (component,) = JobSetPlugin(StaticReader(jobset)).suspension(train_job(suspend=suspend))
    assert component.revise is not None
    revision = component.revise(jobset)
    assert (None if revision is None else revision.object["spec"]) == (
        None if applied is None else applied | {"replicatedJobs": [{"name": "node"}]}
    )
    if revision is not None:
        assert "ownerReferences" not in revision.object["metadata"]


@pytest.mark.parametrize("is_runtime_known", [True, False])
def test_a_jobset_that_others_have_resumed(is_runtime_known: bool) -> None:
    """The revision says that pods run although the TrainJob is suspended."""
    job = train_job(suspend=True)
    jobset = stored(build(job, runtime())) | owned_jobset() | {"apiVersion": "jobset.x-k8s.io/v1alpha2"}
    jobset["metadata"]["annotations"] = BY_TRAIN_JOB
    jobset["spec"]["suspend"] = False
    if is_runtime_known:
        found = revision(job, job, jobset)
    else:
        (component,) = JobSetPlugin(StaticReader(jobset)).suspension(job)
        assert component.revise is not None
        found = component.revise(jobset)
    assert found.is_resumed
    assert found.object["spec"] == jobset["spec"]


@pytest.mark.parametrize(
    ("jobset", "job", "field"),
    [
        pytest.param({"ttlSecondsAfterFinished": 0}, {}, "ttlSecondsAfterFinished", id="jobset"),
        pytest.param({"ttlSecondsAfterFinished": 3600}, {}, "ttlSecondsAfterFinished", id="jobset-later"),
        pytest.param(
            {},
            {"ttlSecondsAfterFinished": 0},
            "replicatedJobs[node].template.spec.ttlSecondsAfterFinished",
            id="jobs",
        ),
    ],
)
def test_jobs_that_delete_themselves(jobset: Object, job: Object, field: str) -> None:
    """Whoever then finds them gone would have the training run again: a TrainJob has a field of its own for that."""
    with pytest.raises(BuildError) as caught:
        build(train_job(), runtime(replicated_job("node", job=job), jobset=jobset))
    text = str(caught.value)
    assert text.startswith(f"ClusterTrainingRuntime/blueprint spec.template.spec.{field}: Forbidden: ")
    assert text.endswith("spec.ttlSecondsAfterFinished of a TrainJob deletes the TrainJob with all its Jobs")


def test_nothing_to_suspend() -> None:
    """A JobSet that does not exist, or belongs to somebody else, is not touched."""
    assert list(JobSetPlugin(StaticReader()).suspension(train_job())) == []
    assert list(JobSetPlugin(StaticReader(owned_jobset(owner_uid="other"))).suspension(train_job())) == []


def owned_jobset(status: Object | None = None, *, owner_uid: str = "uid-of-demo") -> Object:
    """The JobSet of the TrainJob demo."""
    owner = train_job_object()
    owner["metadata"]["uid"] = owner_uid
    metadata = {"name": "demo", "namespace": "default", "ownerReferences": [controller_reference(owner)]}
    return {"kind": "JobSet", "metadata": metadata, "status": status or {}}


def failed_pod(name: str, code: int, finished_at: str, *, container: str = "trainer", **terminated: Any) -> Object:
    """A pod of the JobSet of which a container has failed."""
    state = {"exitCode": code, "finishedAt": finished_at} | terminated
    return {
        "kind": "Pod",
        "metadata": pod_metadata(name),
        "status": {
            "phase": "Failed",
            "containerStatuses": [{"name": container, "state": {"terminated": state}}],
        },
    }


def static_reader(*objects: Object) -> StaticReader:
    """A reader that finds pods in trouble."""
    return StaticReader(*objects, indexes={POD_PROBLEMS: problems_of})


COMPLETED = {"type": "Completed", "status": "True", "reason": "AllJobsCompleted", "message": "jobset completed"}
FAILED = {"type": "Failed", "status": "True", "reason": "FailedJobs", "message": "a job failed"}


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([], None, id="no-jobset"),
        pytest.param([owned_jobset()], None, id="running"),
        pytest.param(
            [owned_jobset({"terminalState": "Completed", "conditions": [COMPLETED]}, owner_uid="other")],
            None,
            id="of-somebody-else",
        ),
        pytest.param(
            [owned_jobset({"conditions": [COMPLETED]})],
            ("Complete", "AllJobsCompleted", "jobset completed"),
            id="only-condition",
        ),
        pytest.param(
            [
                owned_jobset({"terminalState": "Failed", "conditions": [FAILED]}),
                failed_pod("demo-node-0-1-x", 1, "2026-01-01T00:00:02Z"),
                failed_pod("demo-node-0-0-y", 137, "2026-01-01T00:00:01Z", reason="OOMKilled"),
            ],
            (
                "Failed",
                "FailedJobs",
                "a job failed; pod demo-node-0-0-y: container trainer exited with code 137 (OOMKilled)",
            ),
            id="the-pod-that-failed-first",
        ),
        pytest.param(
            [
                owned_jobset({"terminalState": "Failed", "conditions": [FAILED]}),
                {
                    "kind": "Pod",
                    "metadata": pod_metadata("demo-node-0-0-y"),
                    "status": {"phase": "Failed", "reason": "Evicted", "message": "full"},
                },
            ],
            (
                "Failed",
                "FailedJobs",
                "a job failed; pod demo-node-0-0-y was ended by the kubelet of its node (TerminationByKubelet: full)",
            ),
            id="evicted",
        ),
    ],
)
def test_terminal_condition(objects: list[Object], expected: tuple[str, str, str] | None) -> None:
    """The end of the JobSet is that of the TrainJob, with its reason, and the pod that broke it."""
    outcome = JobSetPlugin(static_reader(*objects)).terminal_condition(train_job())
    if outcome is None:
        assert expected is None
        return
    said = "; ".join([outcome.message, *([outcome.culprit.text] if outcome.culprit else [])])
    assert (outcome.type, outcome.reason, said) == expected
    others = "default jobset.sigs.k8s.io/jobset-name=demo" if outcome.type is ConditionType.FAILED else None
    assert (outcome.jobs and f"{outcome.jobs.namespace} {outcome.jobs.label_selector}") == others


def test_jobs_status() -> None:
    """The counts are those of the JobSet; what newer JobSets count besides is left out."""
    counts = {"name": "node", "ready": 1, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}
    reader = StaticReader(owned_jobset({"replicatedJobsStatus": [counts | {"jobRestarts": []}]}))
    statuses = JobSetPlugin(reader).train_job_status(train_job()).jobs
    assert statuses is not None
    assert [status.to_object() for status in statuses] == [counts]
    assert JobSetPlugin(StaticReader()).train_job_status(train_job()).jobs is None


def test_watches() -> None:
    """JobSets wake their TrainJob, and so do pods of JobSets that come into trouble; other pods are not kept."""
    watches = {watch.resource.kind: watch for watch in JobSetPlugin(StaticReader()).watches()}
    assert watches["JobSet"].triggers
    pods = watches["Pod"]
    assert pods.selection.label_selector == "jobset.sigs.k8s.io/jobset-name"
    assert pods.train_jobs is not None
    assert pods.predicate is not None
    failed = CachedObject.of(failed_pod("demo-node-0-0-x", 1, "2026-01-01T00:00:01Z"))
    assert list(pods.train_jobs(failed)) == [ObjectKey("default", "demo")]
    assert pods.predicate(None, failed)
    assert not pods.predicate(failed, failed)


UNCOUNTED = {"rules": [{"action": "RestartJobSetAndIgnoreMaxRestarts"}]}
LAST = FAILED | {"reason": "ReachedMaxRestarts", "message": "no restart is left"}


@pytest.mark.parametrize(
    ("policy", "restarts", "counts", "message"),
    [
        pytest.param(None, {}, None, "no restart is left", id="no policy"),
        pytest.param(UNCOUNTED, {"restarts": 0}, None, "no restart is left; maxRestarts is 0", id="none allowed"),
        pytest.param(
            UNCOUNTED | {"maxRestarts": 1},
            {"restarts": 3, "restartsCountTowardsMax": 1},
            RestartCounts(disruptions=2, failures=1, max_restarts=1),
            "no restart is left; it was started again after 2 disruptions, 1 failure of 1",
            id="used up",
        ),
    ],
)
def test_restarts(policy: Object | None, restarts: Object, counts: RestartCounts | None, message: str) -> None:
    """They are counted by cause, in the status and where a training does not start again."""
    jobset = owned_jobset({"terminalState": "Failed", "conditions": [LAST]} | restarts)
    jobset["spec"] = {"failurePolicy": policy} if policy else {}
    plugin = JobSetPlugin(static_reader(jobset))
    outcome = plugin.terminal_condition(train_job())
    assert outcome is not None
    assert outcome.message == message
    assert plugin.train_job_status(train_job()).restarts == counts
