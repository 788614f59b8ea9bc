"""The admission policies of config/admissionpolicy, evaluated over requests that are allowed and refused."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.config.kustomized import of_kind, rendered
from tests.framework.samples import runtime_object, train_job_object
from trainer.api.runtime_snapshot import SNAPSHOT_LABEL
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.framework.runtimes.runtimes import make_snapshot
from trainer.kube.objects import Object, controller_reference, labels_of, name_of, namespace_of, owner_reference
from trainer.kube.selectors import LabelSelector
from trainer_devcluster.apiserver.admission.conditions import MatchCondition

MANAGER: Final = "system:serviceaccount:trainer-system:trainer-controller-manager"
COLLECTOR: Final = "system:serviceaccount:kube-system:generic-garbage-collector"
JOB: Final = {**train_job_object(), "metadata": {"name": "job", "namespace": "team", "uid": "u"}}
OWNER: Final = controller_reference(JOB)
POLICY: Final = {name_of(obj): obj for obj in rendered("admissionpolicy") if obj["kind"] == "ValidatingAdmissionPolicy"}
OWN, JOBS, PODS, SNAPSHOTS, WORKLOADS = (
    f"{name}.trainer.kubeflow.org" for name in ("own-objects", "jobs", "pods", "snapshots", "workloads")
)
WRITTEN: Final = {
    "configmaps": "",
    "secrets": "",
    "jobsets": "jobset.x-k8s.io",
    "podgroups": "scheduling.k8s.io",
    "workloads": "scheduling.k8s.io",
    "horizontalpodautoscalers": "autoscaling",
}


def request(
    operation: str,
    resource: str,
    new: Object | None = None,
    old: Object | None = None,
    *,
    user: str = MANAGER,
    group: str | None = None,
) -> Object:
    """The request of an AdmissionReview."""
    obj = new or old or {}
    resource, _, subresource = resource.partition("/")
    return {
        "operation": operation,
        "resource": {"group": WRITTEN.get(resource, "") if group is None else group, "resource": resource},
        "subResource": subresource,
        "name": name_of(obj),
        "namespace": namespace_of(obj),
        "userInfo": {"username": user},
        "object": new,
        "oldObject": old,
    }


def child(namespace: str = "team", name: str = "child", **owner: Any) -> Object:
    """An object that belongs to a TrainJob."""
    return {"metadata": {"name": name, "namespace": namespace, "ownerReferences": [{**OWNER, **owner}]}}


def stranger(namespace: str = "team", name: str = "theirs") -> Object:
    """An object that belongs to nobody."""
    return {"metadata": {"name": name, "namespace": namespace}}


def ended(condition: str = "Complete", status: str = "True", **spec: Any) -> Object:
    """A TrainJob with one condition."""
    conditions = [{"type": "Suspended", "status": "False"}, {"type": condition, "status": status}]
    return {**JOB, "spec": spec, "status": {"conditions": conditions}}


def refusals(policy: Object, asked: Object) -> list[str]:
    """What a policy says against a request; nothing where it does not apply."""
    spec, constraints = policy["spec"], policy["spec"]["matchConstraints"]
    group, resource = asked["resource"]["group"], asked["resource"]["resource"]
    if asked["subResource"]:
        resource = f"{resource}/{asked['subResource']}"
    objects = [obj for obj in (asked["object"], asked["oldObject"]) if obj is not None]
    selector = LabelSelector.from_object(constraints.get("objectSelector") or {})
    if not any(
        group in rule["apiGroups"] and resource in rule["resources"] and asked["operation"] in rule["operations"]
        for rule in constraints["resourceRules"]
    ) or not any(selector.matches(labels_of(obj)) for obj in objects):
        return []
    variables = {"object": asked["object"], "oldObject": asked["oldObject"], "request": asked}
    conditions = spec.get("matchConditions") or []
    if not all(MatchCondition.compile(each["name"], each["expression"]).holds(variables) for each in conditions):
        return []
    return [
        each["message"]
        for each in spec["validations"]
        if not MatchCondition.compile(each["message"], each["expression"]).holds(variables)
    ]


@pytest.mark.parametrize("name", [OWN, JOBS, PODS, SNAPSHOTS, WORKLOADS])
def test_bound(name: str) -> None:
    """Each policy denies, everywhere, also when it cannot be evaluated."""
    bindings = of_kind(rendered("admissionpolicy"), "ValidatingAdmissionPolicyBinding")
    assert [each["spec"] for each in bindings if name_of(each) == name] == [
        {"policyName": name, "validationActions": ["Deny"]}
    ]
    assert POLICY[name]["spec"]["failurePolicy"] == "Fail"


def test_everything_that_the_manager_writes_in_namespaces_is_covered() -> None:
    """What config/rbac and config/v1 let it write everywhere is in a policy, but for what is harmless or reviews."""
    granted = {
        (group, resource)
        for role in (*of_kind(rendered("rbac"), "ClusterRole"), *of_kind(rendered("v1/rbac"), "ClusterRole"))
        for rule in role["rules"]
        if {"create", "delete", "patch"} & set(rule["verbs"]) and "resourceNames" not in rule
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    covered = {
        (group, resource)
        for name in (OWN, JOBS, PODS, WORKLOADS)
        for rule in POLICY[name]["spec"]["matchConstraints"]["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert granted - covered == {
        ("", "events"),
        ("authentication.k8s.io", "tokenreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
        ("trainer.kubeflow.org", "trainjobs/status"),
        ("trainer.kubeflow.org", "optimizationjobs/status"),
        ("kubeflow.org", "pytorchjobs/status"),
        ("kubeflow.org", "jaxjobs/status"),
    }
    assert covered <= granted


@pytest.mark.parametrize("resource", WRITTEN)
@pytest.mark.parametrize(
    ("operation", "new", "old"),
    [
        pytest.param("CREATE", child(), None, id="create"),
        pytest.param("UPDATE", child(), child(), id="update"),
        pytest.param("DELETE", None, child(), id="delete"),
    ],
)
def test_own_objects(resource: str, operation: str, new: Object | None, old: Object | None) -> None:
    """The manager writes and deletes what belongs to TrainJobs."""
    assert refusals(POLICY[OWN], request(operation, resource, new, old)) == []


@pytest.mark.parametrize("resource", WRITTEN)
@pytest.mark.parametrize(
    ("operation", "new", "old", "complaint"),
    [
        pytest.param("CREATE", stranger(), None, "writes only objects", id="create nobody's"),
        pytest.param("CREATE", child(controller=False), None, "writes only objects", id="no controller"),
        pytest.param("CREATE", child(kind="Job"), None, "writes only objects", id="of another kind"),
        pytest.param("CREATE", child(apiVersion="batch/v1"), None, "writes only objects", id="of another group"),
        pytest.param("UPDATE", child(), stranger(), "changes and deletes only", id="take over"),
        pytest.param("UPDATE", stranger(), child(), "writes only objects", id="let go"),
        pytest.param("DELETE", None, stranger(), "changes and deletes only", id="delete"),
        pytest.param("CREATE", child("kube-system"), None, "nothing in namespaces of Kubernetes", id="kube-system"),
        pytest.param("DELETE", None, child("kube-system"), "nothing in namespaces of Kubernetes", id="and there"),
    ],
)
def test_objects_of_others(
    resource: str, operation: str, new: Object | None, old: Object | None, complaint: str
) -> None:
    """It touches nothing else, and nothing in namespaces of Kubernetes; others may."""
    (message,) = refusals(POLICY[OWN], request(operation, resource, new, old))
    assert complaint in message
    assert refusals(POLICY[OWN], request(operation, resource, new, old, user="jane")) == []


@pytest.mark.parametrize(
    ("secret", "is_refused"),
    [
        pytest.param(stranger("trainer-system", "trainer-webhook-certificates"), False, id="its certificates"),
        pytest.param(stranger("trainer-system", "another"), True, id="another Secret"),
        pytest.param(stranger("team", "trainer-webhook-certificates"), True, id="another namespace"),
    ],
)
def test_certificates(secret: Object, is_refused: bool) -> None:
    """The Secret of its own certificates belongs to no TrainJob, and is the only one that it changes."""
    assert bool(refusals(POLICY[OWN], request("UPDATE", "secrets", secret, secret))) is is_refused


def code(*owners: str, immutable: bool = True, namespace: str = "team", **fields: Any) -> Object:
    """A ConfigMap with code, of these TrainJobs."""
    references = [{**owner_reference(JOB), "uid": uid, **fields} for uid in owners]
    metadata = {"name": "job-code-0123456789", "namespace": namespace, "ownerReferences": references}
    return {"metadata": metadata, "immutable": immutable, "data": {}}


@pytest.mark.parametrize(
    ("new", "old", "is_refused"),
    [
        pytest.param(code("a", "b"), code("a"), False, id="a further owner"),
        pytest.param(code("b"), code("a"), True, id="an owner goes"),
        pytest.param(code("a", "b"), code("a", immutable=False), True, id="that could be changed"),
        pytest.param(code("a", "b", kind="Pod"), code("a"), True, id="an owner of another kind"),
        pytest.param(code("a", "b", controller=False), code("a"), False, id="no controller"),
        pytest.param(code("a"), stranger(), True, id="of nobody"),
        pytest.param(
            code("a", "b", namespace="kube-system"), code("a", namespace="kube-system"), True, id="kube-system"
        ),
    ],
)
def test_code(new: Object, old: Object, is_refused: bool) -> None:
    """Of code that belongs to TrainJobs it makes further ones owners, and nothing else."""
    assert bool(refusals(POLICY[OWN], request("UPDATE", "configmaps", new, old))) is is_refused
    assert refusals(POLICY[OWN], request("DELETE", "configmaps", None, old)) != []


@pytest.mark.parametrize(
    ("job", "is_refused"),
    [
        pytest.param(ended(ttlSecondsAfterFinished=0), False, id="complete"),
        pytest.param(ended("Failed", ttlSecondsAfterFinished=60), False, id="failed"),
        pytest.param(ended(), True, id="to be kept"),
        pytest.param(ended("Failed", "False", ttlSecondsAfterFinished=60), True, id="it runs"),
        pytest.param({**JOB, "spec": {"ttlSecondsAfterFinished": 60}}, True, id="it has not started"),
        pytest.param({**JOB, "spec": {"ttlSecondsAfterFinished": 60}, "status": {}}, True, id="no conditions"),
    ],
)
@pytest.mark.parametrize("resource", ["trainjobs", "optimizationjobs"])
def test_jobs(resource: str, job: Object, is_refused: bool) -> None:
    """It deletes TrainJobs and sweeps that have ended and say how long they are kept, and no others of people."""
    asked = request("DELETE", resource, None, job, group="trainer.kubeflow.org")
    assert bool(refusals(POLICY[JOBS], asked)) is is_refused
    asked["userInfo"] = {"username": "jane"}
    assert refusals(POLICY[JOBS], asked) == []


SWEEP: Final = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "OptimizationJob",
    "metadata": {"name": "s", "uid": "u"},
}
TRIAL: Final = {
    **child(**controller_reference(SWEEP)),
    "spec": {"runtimeRef": {"name": "r"}, "trainer": {"image": "a"}},
}


def trial(spec: Object, **metadata: Any) -> Object:
    """A trial of a sweep after a change."""
    return {**TRIAL, "metadata": {**TRIAL["metadata"], **metadata}, "spec": spec}


@pytest.mark.parametrize(
    ("operation", "new", "old", "complaint"),
    [
        pytest.param("CREATE", TRIAL, None, "", id="create"),
        pytest.param("UPDATE", trial(TRIAL["spec"] | {"suspend": True}), TRIAL, "", id="suspend"),
        pytest.param("UPDATE", TRIAL, trial(TRIAL["spec"] | {"suspend": True}), "", id="resume"),
        pytest.param("UPDATE", trial(TRIAL["spec"], annotations={"a": "b"}), TRIAL, "", id="annotate"),
        pytest.param(
            "UPDATE", trial(TRIAL["spec"] | {"trainer": {"image": "b"}}), TRIAL, "nothing but suspend", id="image"
        ),
        pytest.param("UPDATE", trial({"trainer": {"image": "a"}}), TRIAL, "nothing but suspend", id="removed"),
        pytest.param("UPDATE", trial(TRIAL["spec"], ownerReferences=[]), TRIAL, "changes no owner", id="let go"),
        pytest.param("DELETE", None, TRIAL, "deletes only", id="delete"),
    ],
)
def test_trials(operation: str, new: Object | None, old: Object | None, complaint: str) -> None:
    """It makes, suspends and resumes trials of sweeps, and does nothing else to them."""
    found = refusals(POLICY[JOBS], request(operation, "trainjobs", new, old, group="trainer.kubeflow.org"))
    assert [complaint in message for message in found] == [True] * bool(complaint)


def workload(spec: Object, namespace: str = "team", **owner: Any) -> Object:
    """A Workload of Kueue."""
    return {**child(namespace, **owner), "spec": {"queueName": "gpus"} | spec}


OF_A_JOBSET: Final = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}


@pytest.mark.parametrize(
    ("new", "old", "complaint"),
    [
        pytest.param(workload({"active": False}), workload({}), "", id="deactivate"),
        pytest.param(workload({"active": True}), workload({"active": False}), "", id="activate"),
        pytest.param(workload({"active": False}, **OF_A_JOBSET), workload({}, **OF_A_JOBSET), "", id="of a JobSet"),
        pytest.param(workload({"queueName": "a"}), workload({}), "nothing of Workloads but", id="another queue"),
        pytest.param({**workload({}), "spec": {}}, workload({}), "nothing of Workloads but", id="no queue"),
        pytest.param(stranger() | {"spec": {}}, stranger() | {"spec": {}}, "changes only Workloads", id="nobody's"),
        pytest.param(
            workload({}, kind="Job"), workload({}, kind="Job"), "changes only Workloads", id="of another kind"
        ),
        pytest.param(
            workload({}, "kube-system"), workload({}, "kube-system"), "nothing in namespaces", id="kube-system"
        ),
    ],
)
def test_workloads(new: Object, old: Object, complaint: str) -> None:
    """It deactivates and activates Workloads of TrainJobs and their JobSets, and does nothing else to any."""
    asked = request("UPDATE", "workloads", new, old, group="kueue.x-k8s.io")
    assert [complaint in message for message in refusals(POLICY[WORKLOADS], asked)] == [True] * bool(complaint)
    asked["userInfo"] = {"username": "jane"}
    assert refusals(POLICY[WORKLOADS], asked) == []


def test_runtimes_of_sweeps() -> None:
    """It makes no runtimes for sweeps."""
    asked = request("CREATE", "trainingruntimes", TRIAL, None, group="trainer.kubeflow.org")
    assert refusals(POLICY[JOBS], asked) != []


@pytest.mark.parametrize(("stated", "is_refused"), [pytest.param(0, False, id="none"), pytest.param(2, True, id="two")])
def test_number_of_nodes(stated: int, is_refused: bool) -> None:
    """It states the number of nodes where a TrainJob states none, and changes no other."""
    old, new = ({"metadata": JOB["metadata"], "spec": {"replicas": replicas}} for replicas in (stated, 4))
    asked = request("UPDATE", "trainjobs/scale", new, old, group="trainer.kubeflow.org")
    assert bool(refusals(POLICY[JOBS], asked)) is is_refused


SNAPSHOT: Final = make_snapshot(JOB, CLUSTER_TRAINING_RUNTIMES, runtime_object())
UNLABELLED: Final = {**SNAPSHOT, "metadata": {**SNAPSHOT["metadata"], "labels": {}}}


@pytest.mark.parametrize(
    ("user", "operation", "new", "old", "is_refused"),
    [
        pytest.param(MANAGER, "CREATE", SNAPSHOT, None, False, id="the manager makes one"),
        pytest.param(MANAGER, "UPDATE", SNAPSHOT, SNAPSHOT, False, id="the manager applies it"),
        pytest.param(COLLECTOR, "UPDATE", SNAPSHOT, SNAPSHOT, False, id="garbage collection"),
        pytest.param(COLLECTOR, "CREATE", SNAPSHOT, None, True, id="garbage collection makes none"),
        pytest.param("jane", "DELETE", None, SNAPSHOT, False, id="it is deleted with its namespace"),
        pytest.param("jane", "CREATE", UNLABELLED, None, False, id="another ConfigMap"),
        pytest.param("jane", "CREATE", SNAPSHOT, None, True, id="forged"),
        pytest.param("jane", "UPDATE", SNAPSHOT, UNLABELLED, True, id="made one"),
        pytest.param("jane", "UPDATE", UNLABELLED, SNAPSHOT, True, id="made none"),
        pytest.param(
            "system:serviceaccount:team:trainer-controller-manager", "CREATE", SNAPSHOT, None, True, id="a namesake"
        ),
    ],
)
def test_snapshots(user: str, operation: str, new: Object | None, old: Object | None, is_refused: bool) -> None:
    """Nobody but the manager makes or changes a snapshot of a runtime."""
    asked = request(operation, "configmaps", new, old, user=user)
    assert [SNAPSHOT_LABEL in message for message in refusals(POLICY[SNAPSHOTS], asked)] == [True] * is_refused
    if user == MANAGER:
        assert refusals(POLICY[OWN], asked) == []
