"""The admission policies of config/admissionpolicy where the manager serves PyTorchJobs and JAXJobs (config/v1)."""

from __future__ import annotations

from typing import Any, Final

import pytest

from packages.v1_jobs.tests.controllers.conftest import Cluster
from tests.config.test_admission_policies import (
    JOBS,
    OWN,
    OWNER,
    PODS,
    POLICY,
    WRITTEN,
    child,
    refusals,
    request,
    stranger,
)
from tests.config.test_v1_roles import live
from trainer.kube.objects import Object, controller_reference
from trainer.v1alpha1.discovery import V2ALPHA1, Served
from trainer_kube_testing import RecordedRequest

V1_JOB: Final = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "job", "uid": "u"}}
OF_V1: Final = {**child(**controller_reference(V1_JOB)), "spec": {"trainer": {"numNodes": 2}}}
THEIRS: Final = {**stranger(), "spec": {"trainer": {"numNodes": 2}}}


def changed(obj: Object, nodes: int = 2, **metadata: Any) -> Object:
    """A TrainJob after a change."""
    return {**obj, "metadata": {**obj["metadata"], **metadata}, "spec": {"trainer": {"numNodes": nodes}}}


@pytest.mark.parametrize("resource", ["trainjobs", "trainingruntimes"])
@pytest.mark.parametrize(
    ("operation", "new", "old", "complaint"),
    [
        pytest.param("CREATE", OF_V1, None, "", id="create for a v1 job"),
        pytest.param("UPDATE", changed(OF_V1, 3), OF_V1, "", id="resize one of a v1 job"),
        pytest.param("DELETE", None, OF_V1, "", id="delete one of a v1 job"),
        pytest.param("UPDATE", changed(THEIRS, annotations={"a": "b"}), THEIRS, "", id="annotate one of people"),
        pytest.param("CREATE", THEIRS, None, "creates only", id="create"),
        pytest.param("CREATE", child(), None, "creates only", id="create for a TrainJob"),
        pytest.param(
            "CREATE",
            child(**controller_reference(V1_JOB) | {"controller": False}),
            None,
            "creates only",
            id="no controller",
        ),
        pytest.param("UPDATE", changed(THEIRS, 3), THEIRS, "changes the spec only", id="change one of people"),
        pytest.param(
            "UPDATE",
            changed(THEIRS, ownerReferences=[controller_reference(V1_JOB)]),
            THEIRS,
            "changes no owner",
            id="take over",
        ),
        pytest.param("DELETE", None, THEIRS, "deletes only", id="delete one of people"),
        pytest.param(
            "CREATE",
            {**OF_V1, "metadata": {**OF_V1["metadata"], "namespace": "kube-system"}},
            None,
            "nothing in namespaces",
            id="kube-system",
        ),
    ],
)
def test_objects_of_v1_jobs(
    resource: str, operation: str, new: Object | None, old: Object | None, complaint: str
) -> None:
    """It makes, changes and deletes TrainJobs and runtimes of v1 jobs, and of those of people only metadata."""
    asked = request(operation, resource, new, old, group="trainer.kubeflow.org")
    assert [complaint in message for message in refusals(POLICY[JOBS], asked)] == [True] * bool(complaint)
    asked["userInfo"] = {"username": "jane"}
    assert refusals(POLICY[JOBS], asked) == []


@pytest.mark.parametrize(
    ("spec", "status", "is_refused"),
    [
        pytest.param({"runPolicy": {"ttlSecondsAfterFinished": 1}}, "True", False, id="at its time"),
        pytest.param({"runPolicy": {"ttlSecondsAfterFinished": 1}}, "False", True, id="it runs"),
        pytest.param({"runPolicy": {}}, "True", True, id="to be kept"),
        pytest.param({}, "True", True, id="no policy"),
    ],
)
@pytest.mark.parametrize("resource", ["pytorchjobs", "jaxjobs"])
def test_v1_jobs(resource: str, spec: Object, status: str, is_refused: bool) -> None:
    """It deletes v1 jobs that have ended and say how long they are kept, and no others."""
    job = {**stranger(), "spec": spec, "status": {"conditions": [{"type": "Succeeded", "status": status}]}}
    asked = request("DELETE", resource, None, job, group="kubeflow.org")
    assert bool(refusals(POLICY[JOBS], asked)) is is_refused


@pytest.mark.parametrize(
    ("owner", "is_refused"),
    [
        pytest.param(controller_reference(V1_JOB), False, id="PyTorchJob"),
        pytest.param(controller_reference({**V1_JOB, "kind": "JAXJob"}), True, id="JAXJob, which has none"),
        pytest.param(controller_reference({**V1_JOB, "apiVersion": "example.org/v1"}), True, id="another group"),
    ],
)
def test_autoscalers(owner: Object, is_refused: bool) -> None:
    """The autoscaler of an elastic PyTorchJob belongs to that, and nothing else does."""
    for resource in WRITTEN:
        asked = request("UPDATE", resource, child(**owner), child(**owner))
        is_autoscaler = resource == "horizontalpodautoscalers"
        assert bool(refusals(POLICY[OWN], asked)) is (is_refused or not is_autoscaler)


POD: Final[Object] = {
    "metadata": {
        "name": "pod",
        "namespace": "team",
        "labels": {"jobset.sigs.k8s.io/jobset-name": "job", "training.kubeflow.org/job-name": "job", "a": "b"},
    },
    "spec": {"containers": [{"name": "pytorch", "image": "theirs"}]},
}


def pod_with(labels: Object | None = None, **changes: Any) -> Object:
    """The pod after a change."""
    metadata = {**POD["metadata"], "labels": POD["metadata"]["labels"] | (labels or {}), **changes.pop("metadata", {})}
    return {**POD, "metadata": metadata, **changes}


@pytest.mark.parametrize(
    ("new", "old", "complaint"),
    [
        pytest.param(pod_with({"training.kubeflow.org/replica-index": "1"}), POD, "", id="an index"),
        pytest.param(
            pod_with({"training.kubeflow.org/job-role": "master"}),
            pod_with({"training.kubeflow.org/job-role": "worker"}),
            "",
            id="a role",
        ),
        pytest.param(
            pod_with(spec={"containers": [{"name": "pytorch", "image": "another"}]}), POD, "only labels", id="an image"
        ),
        pytest.param(pod_with(metadata={"annotations": {"a": "b"}}), POD, "only labels", id="an annotation"),
        pytest.param(pod_with(metadata={"ownerReferences": [OWNER]}), POD, "only labels", id="an owner"),
        pytest.param(pod_with(metadata={"finalizers": ["a/b"]}), POD, "only labels", id="a finalizer"),
        pytest.param(pod_with({"app": "theirs"}), POD, "of the labels", id="another label"),
        pytest.param(pod_with({"a": "c"}), POD, "of the labels", id="the value of another label"),
        pytest.param(pod_with({"training.kubeflow.org/job-name": "b"}), POD, "of the labels", id="the job"),
        pytest.param(POD, pod_with({"app": "theirs"}), "of the labels", id="a label less"),
        pytest.param(pod_with(metadata={"labels": {"a": "b"}}), POD, "of the labels", id="labels less"),
        pytest.param(stranger() | {"spec": {}}, stranger() | {"spec": {}}, "only pods of", id="another pod"),
        pytest.param(
            pod_with(metadata={"namespace": "kube-system"}),
            pod_with(metadata={"namespace": "kube-system"}),
            "nothing in namespaces",
            id="kube-system",
        ),
    ],
)
def test_pods(new: Object, old: Object, complaint: str) -> None:
    """Of pods of v1 jobs it changes three labels, and nothing else of any."""
    found = refusals(POLICY[PODS], request("UPDATE", "pods", new, old))
    assert any(complaint in message for message in found) if complaint else found == []
    assert refusals(POLICY[PODS], request("UPDATE", "pods", new, old, user="jane")) == []


@pytest.mark.parametrize("served", [V2ALPHA1, Served("v1alpha1")], ids=["v2alpha1", "v1alpha1"])
async def test_what_the_manager_does_for_v1_jobs(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """With config/v1 and the policies together it can do all that jobs need, in their whole lives."""
    cluster = Cluster(served)
    faults = cluster.client.faults
    let_through, answered = faults.before_request, faults.after_request
    before: dict[tuple[str, ...], Object | None] = {}
    reviewed: set[str] = set()
    refused: list[tuple[Object, str]] = []

    async def before_request(sent: RecordedRequest) -> None:
        before[place_of(sent)] = cluster.client.find(sent.resource, sent.name, sent.namespace) if sent.name else None
        await let_through(sent)

    async def after_request(sent: RecordedRequest) -> None:
        if sent.verb in {"create", "patch", "apply", "delete"} and not sent.subresource:
            old = before[place_of(sent)]
            new = None if sent.verb == "delete" else cluster.client.find(sent.resource, sent.name, sent.namespace)
            operation = "DELETE" if new is None else "CREATE" if old is None else "UPDATE"
            # The pods of this test have no spec, and all others have.
            old, new = (obj and {"spec": {}} | obj for obj in (old, new))
            asked = request(operation, sent.resource.plural, new, old, group=sent.resource.group)
            reviewed.add(f"{operation} {sent.resource.plural}")
            refused.extend((asked, message) for policy in POLICY.values() for message in refusals(policy, asked))
        await answered(sent)

    monkeypatch.setattr(faults, "before_request", before_request)
    monkeypatch.setattr(faults, "after_request", after_request)
    await live(cluster)
    assert refused == []
    resizing = {
        "UPDATE trainjobs",
        *(f"{operation} horizontalpodautoscalers" for operation in ("CREATE", "UPDATE", "DELETE")),
    }
    assert reviewed >= (resizing if served is V2ALPHA1 else set()) | {
        *(f"{operation} {kind}" for operation in ("CREATE", "DELETE") for kind in ("trainjobs", "trainingruntimes")),
        *("UPDATE pods", "DELETE pytorchjobs", "DELETE jaxjobs", "CREATE jobsets"),
    }


def place_of(sent: RecordedRequest) -> tuple[str, ...]:
    """Which object a request is about."""
    return sent.resource.plural, sent.namespace, sent.name
