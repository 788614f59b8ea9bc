"""The TrainJob of a trial is that of the template, with what makes it a trial."""

from __future__ import annotations

from typing import Literal

import pytest

from packages.sweeps.tests.jobs import sweep_object
from trainer.kube.objects import Object
from trainer_sweeps.api.optimizationjob import OptimizationJob
from trainer_sweeps.trials.train_job import is_queued, train_job_of

QUEUE = {"kueue.x-k8s.io/queue-name": "gpus", "kueue.x-k8s.io/priority-class": "low"}
ASSIGNMENT = {"lr": "0.5", "learning-rate.max": "1"}


def made(obj: Object, version: Literal["v1alpha1", "v2alpha1"] = "v2alpha1", number: int = 3) -> Object:
    """The TrainJob of a trial of an OptimizationJob."""
    return train_job_of(obj, OptimizationJob.from_object(obj).spec, number, ASSIGNMENT, version)


def test_a_trial_is_the_template_with_its_parameters() -> None:
    """Name, labels, owner, assignment, metric of the curve and environment are those of the trial; the rest stays."""
    template = {
        "metadata": {"labels": {"team": "a"}, "annotations": {"note": "n"}, "finalizers": ["example.com/keep"]},
        "spec": {
            "runtimeRef": {"name": "torch"},
            "trainer": {
                "numNodes": 2,
                "env": [{"name": "KUBEFLOW_TRAINER_OPT_LR", "value": "1"}, {"name": "X", "value": "x"}],
            },
        },
    }
    obj = sweep_object(metadata={"uid": "u"}, trainJobTemplate=template)
    assert made(obj) == {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "TrainJob",
        "metadata": {
            "name": "demo-trial-3",
            "namespace": "default",
            "labels": {
                "team": "a",
                "trainer.kubeflow.org/optimization-job": "demo",
                "trainer.kubeflow.org/optimization-trial": "3",
            },
            "annotations": {
                "note": "n",
                "trainer.kubeflow.org/optimization-parameters": (
                    '[{"name":"lr","value":"0.5"},{"name":"learning-rate.max","value":"1"}]'
                ),
                "trainer.kubeflow.org/trainer-status-curve-of": "loss",
            },
            "finalizers": ["example.com/keep"],
            "ownerReferences": [
                {
                    "apiVersion": "trainer.kubeflow.org/v2alpha1",
                    "kind": "OptimizationJob",
                    "name": "demo",
                    "uid": "u",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "runtimeRef": {"name": "torch"},
            "trainer": {
                "numNodes": 2,
                "env": [
                    {"name": "KUBEFLOW_TRAINER_OPT_LR", "value": "0.5"},
                    {"name": "X", "value": "x"},
                    {"name": "KUBEFLOW_TRAINER_OPT_LEARNING_RATE_MAX", "value": "1"},
                ],
            },
        },
    }
    assert obj["spec"]["trainJobTemplate"] == template


def test_what_one_trial_has_got_is_not_in_a_template() -> None:
    """A template that was copied from a trial neither ends the others before they begin nor gives them its curve."""
    copied = {f"trainer.kubeflow.org/{name}": "true" for name in ("optimization-held", "optimization-pruned")}
    copied |= {"trainer.kubeflow.org/trainer-status-curve": "{}", "note": "n"}
    template = {"metadata": {"annotations": copied}, "spec": {"runtimeRef": {"name": "torch"}}}
    annotations = made(sweep_object(trainJobTemplate=template))["metadata"]["annotations"]
    assert sorted(annotations) == [
        "note",
        "trainer.kubeflow.org/optimization-parameters",
        "trainer.kubeflow.org/trainer-status-curve-of",
    ]


@pytest.mark.parametrize(
    ("version", "own", "on_train_job", "on_job_set"),
    [
        pytest.param("v1alpha1", {}, QUEUE, None, id="v1alpha1"),
        pytest.param("v2alpha1", {}, {}, QUEUE, id="v2alpha1"),
        pytest.param(
            "v1alpha1",
            {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "own"}}},
            QUEUE | {"kueue.x-k8s.io/queue-name": "own"},
            None,
            id="own-queue-v1alpha1",
        ),
        pytest.param(
            "v2alpha1",
            {"spec": {"runtimeRef": {"name": "torch"}, "labels": {"kueue.x-k8s.io/queue-name": "own", "a": "b"}}},
            {},
            QUEUE | {"kueue.x-k8s.io/queue-name": "own", "a": "b"},
            id="own-queue-v2alpha1",
        ),
    ],
)
def test_the_queue_of_the_sweep_is_that_of_its_trials(
    version: Literal["v1alpha1", "v2alpha1"], own: Object, on_train_job: Object, on_job_set: Object | None
) -> None:
    """Kueue finds the queue where the version has it; that of the template wins."""
    template = {"spec": {"runtimeRef": {"name": "torch"}}} | own
    obj = sweep_object(metadata={"labels": QUEUE | {"other": "label"}}, version=version, trainJobTemplate=template)
    train_job = made(obj, version)
    labels = train_job["metadata"]["labels"]
    assert {name: value for name, value in labels.items() if not name.startswith("trainer")} == on_train_job
    assert train_job["spec"].get("labels") == on_job_set
    assert train_job["apiVersion"] == f"trainer.kubeflow.org/{version}"
    assert is_queued(train_job)
