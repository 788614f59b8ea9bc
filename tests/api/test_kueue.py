"""Kueue's labels are on what it queues: the TrainJob of v1alpha1, or the JobSet of one of v2alpha1."""

from __future__ import annotations

import pytest

from trainer.api.kueue import is_of_kueue, queued_as_jobset, queued_as_train_job, without_admission
from trainer.api.losses import Losses
from trainer.kube.objects import Object

QUEUE = {"kueue.x-k8s.io/queue-name": "lab"}
URGENT = QUEUE | {"kueue.x-k8s.io/priority-class": "urgent"}
PROVISIONED = {"provreq.kueue.x-k8s.io/maxRunDurationSeconds": "600"}


def train_job(metadata: Object | None = None, **spec: object) -> Object:
    """A TrainJob."""
    return {"kind": "TrainJob", "metadata": {"name": "a"} | (metadata or {}), "spec": spec}


@pytest.mark.parametrize(
    ("of_train_job", "of_jobset"),
    [
        pytest.param(train_job(), train_job(), id="nothing"),
        pytest.param(train_job({"labels": URGENT}), train_job(labels=URGENT), id="queue-and-priority"),
        pytest.param(
            train_job({"labels": QUEUE | {"team": "a"}}),
            train_job({"labels": {"team": "a"}}, labels=QUEUE),
            id="others",
        ),
        pytest.param(
            train_job({"labels": QUEUE, "annotations": PROVISIONED}),
            train_job(labels=QUEUE, annotations=PROVISIONED),
            id="annotations",
        ),
        pytest.param(train_job(suspend=True), train_job(suspend=True), id="suspended-without-a-queue"),
    ],
)
def test_there_and_back(of_train_job: Object, of_jobset: Object) -> None:
    """What Kueue reads moves with what it queues, and nothing else does."""
    losses = Losses()

    assert queued_as_jobset(of_train_job, losses) == of_jobset
    assert queued_as_train_job(of_jobset) == of_train_job
    assert losses.found == []


def test_a_queued_training_that_is_suspended() -> None:
    """Kueue, which resumes the JobSet, decides when it starts: the TrainJob does not keep it suspended."""
    assert queued_as_jobset(train_job({"labels": QUEUE}, suspend=True), Losses()) == train_job(labels=QUEUE)


def test_multikueue() -> None:
    """Where Kueue knows no TrainJobs nobody would run one that is left to it, which is said."""
    losses = Losses()

    assert queued_as_jobset(train_job(managedBy="kueue.x-k8s.io/multikueue"), losses) == train_job()
    assert [loss.field for loss in losses.found] == ["spec.managedBy"]


def test_labels_of_the_jobset_alone() -> None:
    """They are those of the TrainJob as well."""
    given = train_job({"labels": {"team": "a"}}, jobSetMetadata={"labels": QUEUE | {"b": "c"}})

    assert queued_as_train_job(given) == train_job(
        {"labels": {"team": "a"} | QUEUE}, jobSetMetadata={"labels": {"b": "c"}}
    )


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"kind": "TrainJob"}, id="empty"),
        pytest.param(train_job() | {"metadata": 5}, id="metadata"),
        pytest.param(train_job() | {"spec": []}, id="spec"),
        pytest.param(train_job({"labels": ["a"]}, labels=3, jobSetMetadata=4), id="labels"),
    ],
)
def test_wrong_objects(wrong: Object) -> None:
    """What is wrong stays so, for its reader to find."""
    assert queued_as_jobset(wrong, Losses()) == wrong
    assert queued_as_train_job(wrong) == wrong


def test_admitted_pods() -> None:
    """What Kueue wrote at admission is left out; what the author asks of it stays."""
    asked = {"kueue.x-k8s.io/podset-required-topology": "rack"}
    written = {"kueue.x-k8s.io/workload": "w"}
    template = {"metadata": {"labels": {"kueue.x-k8s.io/podset": "worker"}, "annotations": asked | written}, "spec": {}}

    assert without_admission(template) == {"metadata": {"annotations": asked}, "spec": {}}
    assert without_admission({"metadata": {"annotations": written}, "spec": {}}) == {"spec": {}}


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param("kueue.x-k8s.io/queue-name", True, id="own"),
        pytest.param("provreq.kueue.x-k8s.io/a", True, id="of-a-part"),
        pytest.param("mykueue.x-k8s.io/a", False, id="ends-alike"),
        pytest.param("kueue.x-k8s.io", False, id="no-domain"),
    ],
)
def test_keys(key: str, expected: bool) -> None:
    """A key is Kueue's by its domain."""
    assert is_of_kueue(key) is expected
