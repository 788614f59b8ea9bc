"""Gangs of Kubernetes' Workload API, as objects on a real cluster have them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.explain.samples import answer, condition, jobset, node, pod, running, train_job, unscheduled
from trainer.explain import Unread
from trainer.kube.objects import Object

NAME = "demo-trainer-0123456789"
MEMBER: Object = {"schedulingGroup": {"podGroupName": NAME}}
OWN = "0/3 nodes are available: 3 Insufficient cpu."
OF_GANG = "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled"
COUNTED = "pod group is unschedulable, minCount (3) cannot be satisfied: 1 scheduled, 0 remaining"
FIRST = "2026-01-01T00:59:55Z"
SCHEDULED = condition("PodGroupInitiallyScheduled")
NOT_SCHEDULED = condition("PodGroupInitiallyScheduled", "False", "Unschedulable", COUNTED)
BEING_DELETED = (
    f"PodGroup {NAME} is being deleted, which waits for its finalizers (scheduling.k8s.io/podgroup-protection): "
    "kube-controller-manager takes them off when no pod is left"
)


def group(*conditions: Object, least: int = 3, metadata: Object | None = None) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": NAME, "namespace": "default"} | (metadata or {}),
        "spec": {"schedulingPolicy": {"gang": {"minCount": least}}},
        "status": {"conditions": [*conditions]},
    }


def members(*messages: str | None, **metadata: str) -> list[Object]:
    """Pods without nodes, by what the scheduler says of each."""
    return [
        unscheduled(text, index, spec=MEMBER)
        if text
        else pod(index, spec=MEMBER | {"nodeName": None}, metadata=metadata)
        for index, text in enumerate(messages)
    ]


def placed(index: int) -> Object:
    found = running(index)
    return found | {"spec": found["spec"] | MEMBER}


GOING = {"deletionTimestamp": FIRST, "finalizers": ["scheduling.k8s.io/podgroup-protection"]}


REFUSED = "all pods in a single pod group should have the same priority as the pod group's priority, got 0 and 1000"
PREEMPTS = "pod group is waiting for preemption to complete"
ONE_NODE = "0/1 nodes are available: 1 Insufficient cpu."
ALL_AT_ONCE = "wait for room for all of them at once, or ask for fewer nodes or less on each"


@pytest.mark.parametrize(
    ("objects", "message", "remedy", "details"),
    [
        pytest.param(
            (*members(OF_GANG, OF_GANG, OWN), group()),
            "the gang of 3 pods does not fit: at most 2 of them have a place: too little cpu",
            ALL_AT_ONCE,
            (),
            id="does-not-fit",
        ),
        pytest.param(
            (*members(OF_GANG, OF_GANG, OF_GANG), group(NOT_SCHEDULED)),
            "the gang of 3 pods does not fit: at most 1 of them has a place",
            ALL_AT_ONCE,
            (f"PodGroup {NAME}: Unschedulable: {COUNTED}",),
            id="the-pod-group-says-more",
        ),
        pytest.param(
            (*members(OF_GANG, OF_GANG, OWN), group(metadata=GOING)),
            "the gang of 3 pods does not fit: at most 2 of them have a place",
            ALL_AT_ONCE,
            (BEING_DELETED,),
            id="being-deleted",
        ),
        pytest.param(
            (*members(PREEMPTS, PREEMPTS, PREEMPTS), group()),
            "the gang of 3 pods waits until the pods that it preempts have ended",
            "wait: it starts then",
            (),
            id="preempts-others",
        ),
        pytest.param(
            (*members(REFUSED, REFUSED, REFUSED), group()),
            f"the scheduler refuses the gang of 3 pods: for example pod demo-node-0-0-abcde: {REFUSED}",
            "name what differs in all pods of the runtime alike: a gang has one scheduler and one priority",
            (),
            id="refused",
        ),
        pytest.param(
            (placed(0), placed(1), *members(OWN, OWN, OWN)[2:], group(SCHEDULED, least=2)),
            f"1 pod cannot start: too little cpu: pod demo-node-0-2-abcde: {OWN}",
            "wait for room, or ask for less",
            (),
            id="more-than-an-elastic-training-needs",
        ),
        pytest.param(
            (placed(0), placed(1), *members(*[ONE_NODE] * 3)[2:], group(SCHEDULED, least=2), node()),
            f"1 pod cannot start: too little cpu: pod demo-node-0-2-abcde: {ONE_NODE}",
            "wait for room, or ask for less",
            (),
            id="room-that-other-members-use",
        ),
    ],
)
def test_gang_without_a_place(objects: Any, message: str, remedy: str, details: tuple[str, ...]) -> None:
    """Its pods say it once, with what the PodGroup says beside them."""
    found = answer(train_job(), jobset(nodes=3, **MEMBER), *objects)
    [cause] = [each for each in found.causes if each.reason != "NodesMissing"]
    assert cause.reason == "Unschedulable"
    assert cause.message.startswith(message)
    assert (cause.remedy, cause.details) == (remedy, details)
    assert found.notes == ()


def of_scheduler(*pods: Object) -> list[Object]:
    """Pods that another scheduler places."""
    return [each | {"spec": each["spec"] | {"schedulerName": "bin-packer"}} for each in pods]


GATES = "the feature gate GenericWorkload of kube-scheduler (Kubernetes 1.36: GangScheduling, too)"
DESCRIBE = f"kubectl describe podgroups.scheduling.k8s.io {NAME} -n default"
PLACES_SINGLY = "says nothing of the PodGroup: it places the pods one by one, so that some hold nodes"


@pytest.mark.parametrize(
    ("objects", "reason", "message", "remedy", "command"),
    [
        pytest.param(
            (*members(None, None), group()),
            "GangIncomplete",
            "the gang needs 3 pods at the same time, and 2 exist",
            "see why the other pods are not there: their Job cannot make them, or is not done with it",
            "kubectl describe jobs -n default",
            id="incomplete",
        ),
        pytest.param(
            (*members(OF_GANG, OF_GANG), group()),
            "GangIncomplete",
            "the gang needs 3 pods at the same time, and 2 exist",
            "see why the other pods are not there: their Job cannot make them, or is not done with it",
            "kubectl describe jobs -n default",
            id="incomplete-after-it-was-tried",
        ),
        pytest.param(
            (*members(None, None, None),),
            "NoPodGroup",
            f"the pods are members of PodGroup {NAME}, which does not exist",
            "see the events of the TrainJob: the manager makes the PodGroup, and makes it again",
            DESCRIBE,
            id="no-pod-group",
        ),
        pytest.param(
            (placed(0), *members(OWN, OWN, OWN)[1:], group()),
            "GangNotHandled",
            f"default-scheduler {PLACES_SINGLY}",
            f"have {GATES} switched on",
            DESCRIBE,
            id="gates-of-the-scheduler",
        ),
        pytest.param(
            (*of_scheduler(placed(0), *members(OWN, OWN, OWN)[1:]), group()),
            "GangNotHandled",
            f"bin-packer {PLACES_SINGLY}",
            "leave schedulerName of the runtime out: bin-packer may not know PodGroups of scheduling.k8s.io",
            DESCRIBE,
            id="another-scheduler",
        ),
    ],
)
def test_gang_that_is_not_tried(
    objects: tuple[Object, ...], reason: str, message: str, remedy: str, command: str
) -> None:
    """What the gang lacks before its scheduler tries it, of which the pods say nothing."""
    found = answer(train_job(), jobset(nodes=3, **MEMBER), *objects)
    [cause] = [each for each in found.causes if each.about.kind == "PodGroup"]
    assert (cause.reason, cause.message, cause.remedy, cause.command) == (reason, message, remedy, command)
    assert all(each.remedy != ALL_AT_ONCE for each in found.causes if reason == "GangNotHandled")
    assert found.notes == ()


@pytest.mark.parametrize(
    ("objects", "fields"),
    [
        pytest.param((*members(None, None, creationTimestamp=FIRST), group()), {}, id="just-made"),
        pytest.param((*members(None, None, None), group()), {}, id="nobody-has-tried"),
        pytest.param((placed(0), placed(1), *members(OWN, OWN, OWN)[2:], group(SCHEDULED, least=2)), {}, id="elastic"),
        pytest.param(members(OF_GANG), {"unread": (Unread("podgroups", "forbidden"),)}, id="may-not-be-read"),
    ],
)
def test_not_the_gang(objects: Any, fields: dict[str, Any]) -> None:
    """Nothing is said of a gang that was just made, has its place, or may not be read."""
    found = answer(train_job(), jobset(nodes=3, **MEMBER), *objects, **fields)
    assert [each for each in found.causes if each.about.kind == "PodGroup"] == []


DOES_NOT_FIT = "the gang of 3 pods does not fit: at most 2 of them have a place: too little cpu"
ON_THEIR_WAY = "2 of 2 pods are on their way: 2 Pending, for at most 120 s"
INCOMPLETE = "the gang of 3 pods is not complete: waits for the others: 2 of 3 exist"


@pytest.mark.parametrize(
    ("messages", "reported", "expected"),
    [
        pytest.param(
            (OF_GANG, OF_GANG, OWN), ("Unschedulable", DOES_NOT_FIT), ("Unschedulable", DOES_NOT_FIT), id="does-not-fit"
        ),
        pytest.param((None, None), ("GangIncomplete", INCOMPLETE), ("GangIncomplete", INCOMPLETE), id="incomplete"),
        pytest.param((None, None), None, ("Starting", ON_THEIR_WAY), id="silence-proves-nothing"),
        pytest.param(
            (None, None, None),
            ("NoScheduler", "at least 2 pods cannot start"),
            ("NoScheduler", "at least 2 pods cannot start"),
            id="no-scheduler",
        ),
    ],
)
def test_pod_groups_that_may_not_be_read(
    messages: tuple[str | None, ...], reported: tuple[str, str] | None, expected: tuple[str, str]
) -> None:
    """The manager, which reads them, has said what the gang waits for."""
    pending = [] if reported is None else [condition("Pending", reason=reported[0], message=reported[1])]
    objects = (jobset(nodes=3, **MEMBER), *members(*messages))
    found = answer(train_job(*pending), *objects, unread=(Unread("podgroups", "forbidden"),))
    assert [(each.reason, each.message) for each in found.causes] == [expected]


def test_pod_groups_that_may_not_be_read_before_the_manager_has_said_it() -> None:
    """The scheduler's words about the pods are a cause without the PodGroup."""
    found = answer(
        train_job(), jobset(nodes=1, **MEMBER), *members(OF_GANG), unread=(Unread("podgroups", "forbidden"),)
    )
    assert [(each.reason, each.about.kind, each.remedy) for each in found.causes] == [
        ("Unschedulable", "Pod", ALL_AT_ONCE)
    ]


def test_a_node_that_is_large_enough_for_one() -> None:
    """It is not said that others use what the members themselves need at the same time."""
    pods = members(OF_GANG, OF_GANG, "0/1 nodes are available: 1 Insufficient cpu.")
    cause = answer(train_job(), jobset(nodes=3, **MEMBER), *pods, group(), node()).causes[0]
    assert cause.message.startswith("the gang of 3 pods does not fit: at most 2 of them have a place: too little cpu")
    assert cause.remedy.startswith("wait for room for all of them at once, or ask for fewer nodes")


def test_gangs_that_the_api_server_drops() -> None:
    """Pods without the field of their template are placed one by one, which is worth knowing also while they run."""
    found = answer(train_job(state="Running"), jobset(nodes=1, ready=1, **MEMBER), running())
    assert found.causes == ()
    [note] = found.notes
    assert (
        "the API server has dropped their spec.schedulingGroup, since its feature gate GenericWorkload is off" in note
    )


def test_pods_without_the_field_that_wait() -> None:
    """They wait one by one, for what their scheduler says of each."""
    found = answer(train_job(), jobset(nodes=1, **MEMBER), unscheduled(OWN))
    assert [(each.reason, each.message) for each in found.causes] == [
        ("Unschedulable", f"1 pod cannot start: too little cpu: pod demo-node-0-0-abcde: {OWN}")
    ]


POLICY = "ClusterTrainingRuntime/plain spec.podGroupPolicy"
HAVE = "have what the message names switched on or installed"


@pytest.mark.parametrize(
    ("reason", "message", "remedy"),
    [
        pytest.param(
            "JobsBuildFailed",
            f"{POLICY}.workload.topologyKey: Forbidden: switch on the feature gate TopologyAwareWorkloadScheduling",
            HAVE,
            id="gate",
        ),
        pytest.param(
            "JobsBuildFailed",
            f"{POLICY}.workload: Forbidden: the JobSet of the cluster does not keep schedulingGroup; install v0.12",
            HAVE,
            id="old-jobset",
        ),
        pytest.param(
            "JobsBuildFailed",
            f"{POLICY}.volcano: Forbidden: the cluster does not have podgroups.scheduling.volcano.sh; install Volcano",
            HAVE,
            id="no-kind",
        ),
        pytest.param(
            "JobsCreationFailed",
            "No Jobs yet: PodGroup is made anew once kube-controller-manager has taken its finalizer off",
            "wait: it is made again by itself; one that stays is kept by a finalizer",
            id="is-made-anew",
        ),
    ],
)
def test_what_a_gang_needs(reason: str, message: str, remedy: str) -> None:
    """A gang that the cluster does not offer waits for the administrator of the cluster, and for no field."""
    job = train_job(condition("Created", "False", reason, message), state="Blocked")
    [cause] = answer(job).causes
    assert cause.remedy.startswith(remedy)
