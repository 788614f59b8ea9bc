"""The jobs of trials: which kinds they are of, and what is lost of them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from packages.v1_jobs.tests.katib.samples import LR, experiment, job
from packages.v1_jobs.tests.katib.test_search import converted, refusals
from trainer.kube.objects import Object
from trainer_v1_jobs.commands.operator_jobs import shipped_runtimes
from trainer_v1_jobs.katib import convert_experiment, first_trial

TRIAL = "spec.trialTemplate.trialSpec"


def with_job_fields(**fields: Any) -> Object:
    """A Job with further fields."""
    obj = job()
    obj["spec"] |= fields
    return obj


def pytorch_job(master: Object, worker: Object, **spec: Any) -> Object:
    """A PyTorchJob of two roles, by what differs from a plain one."""
    plain = {"template": {"spec": {"containers": [job()["spec"]["template"]["spec"]["containers"][0]]}}}
    plain["template"]["spec"]["containers"][0] |= {"name": "pytorch"}
    roles = {"Master": copy.deepcopy(plain) | master, "Worker": copy.deepcopy(plain) | worker}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "spec": {"pytorchReplicaSpecs": roles} | spec}


@pytest.mark.parametrize(
    ("trial_spec", "lost"),
    [
        pytest.param(with_job_fields(parallelism=2, completions=2, completionMode="Indexed"), [], id="nodes"),
        pytest.param(with_job_fields(podReplacementPolicy="Failed"), [], id="policy"),
        pytest.param(
            with_job_fields(ttlSecondsAfterFinished=5, suspend=True, manualSelector=True),
            [
                (
                    f"{TRIAL}.spec.ttlSecondsAfterFinished: is left out: trials stay, to be compared; "
                    "ttlSecondsAfterFinished of the OptimizationJob deletes all of them"
                ),
                f"{TRIAL}.spec.manualSelector: is left out: the trials are Jobs of JobSets, which set it",
                f"{TRIAL}.spec.suspend: is left out: set suspend of the OptimizationJob",
            ],
            id="what a JobSet sets",
        ),
        pytest.param(
            pytorch_job({"restartPolicy": "Never"}, {}, runPolicy={"cleanPodPolicy": "None", "backoffLimit": 1}),
            [
                "spec.trialTemplate.primaryContainerName: is left out: the metrics are those of pytorch, which trains",
                (
                    f"{TRIAL}.spec.pytorchReplicaSpecs[Worker].restartPolicy: becomes Never, as that of Master: pods "
                    "that get the parameters of trials are alike"
                ),
                (
                    f"{TRIAL}.spec.runPolicy.cleanPodPolicy: has no counterpart: pods that still run when the training "
                    "ends or fails are deleted, finished ones stay; collect the logs that you need while the pods run"
                ),
                (
                    f"{TRIAL}.spec.runPolicy.backoffLimit: has no effect, as before: with restartPolicy Never the "
                    "first failure is the last"
                ),
            ],
            id="losses of a job of an operator",
        ),
    ],
)
def test_losses(trial_spec: Object, lost: list[str]) -> None:
    """They are named with their path in the Experiment."""
    spec, found = converted(experiment(trial_spec))

    assert spec["trainJobTemplate"]["spec"]["trainer"]["args"] == ["$(KUBEFLOW_TRAINER_OPT_LR)"]
    assert sorted(found) == sorted(lost)


def test_roles_that_stay() -> None:
    """Roles of a TFJob get the parameters each, and keep their restart policies."""
    pods = {"spec": {"containers": [{"name": "tensorflow", "image": "x", "args": ["${trialParameters.lr}"]}]}}
    roles = {
        "PS": {"restartPolicy": "Never", "template": pods},
        "Worker": {"restartPolicy": "OnFailure", "template": pods},
    }
    tf_job = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "spec": {"tfReplicaSpecs": roles}}

    assert converted(experiment(tf_job, {"primaryContainerName": "tensorflow"}))[1] == []


def test_a_released_train_job() -> None:
    """What is lost of a TrainJob has its path in the Experiment."""
    train_job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "spec": {
            "runtimeRef": {"name": "torch-distributed"},
            "managedBy": "kueue.x-k8s.io/multikueue",
            "trainer": {"args": ["${trialParameters.lr}"]},
        },
    }
    (lost,) = converted(experiment(train_job))[1]

    assert lost.startswith(f"{TRIAL}.spec.managedBy: is left out: Kueue sends no TrainJobs of v2alpha1")


@pytest.mark.parametrize(
    ("template", "lost"),
    [
        pytest.param({"retain": True}, [], id="kept jobs"),
        pytest.param({"failureCondition": 'status.conditions.#(type=="Failed")#|#(status=="True")#'}, [], id="usual"),
        pytest.param(
            {"successCondition": "status.done", "primaryPodLabels": {"role": "leader"}},
            [
                ("spec.trialTemplate.successCondition: is left out: a trial has succeeded when its TrainJob is "
                "complete and has a value of the objective"),
                ("spec.trialTemplate.primaryPodLabels: is left out: the metrics of a trial are those of its first "
                "node, or of its launcher"),
            ],
            id="others",
        ),
    ],
)  # fmt: skip
def test_templates(template: Object, lost: list[str]) -> None:
    """What says the same as here is not mentioned."""
    assert converted(experiment(template=template))[1] == lost


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        pytest.param(
            {"trialSpec": {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow"}},
            f'{TRIAL}: Unsupported value: "argoproj.io/v1alpha1 Workflow": supported values: "batch/v1 Job", '
            '"trainer.kubeflow.org TrainJob", "kubeflow.org/v1 PyTorchJob"',
            id="another kind",
        ),
        pytest.param(
            {
                "trialSpec": None,
                "configMap": {"configMapName": "jobs", "configMapNamespace": "katib", "templatePath": "small.yaml"},
            },
            "spec.trialTemplate.configMap: Forbidden: the job must be in the Experiment: put what kubectl get "
            "configmap jobs -n katib -o yaml shows under small.yaml as trialSpec in its place",
            id="a ConfigMap",
        ),
        pytest.param({"trialSpec": None}, f"{TRIAL}: Required value", id="no job"),
        pytest.param(
            {"trialSpec": with_job_fields(parallelism=1, completions=3)},
            f"{TRIAL}.spec.completions: Invalid value: 3: must be parallelism, which is 1: the pods of a TrainJob run",
            id="pods one after the other",
        ),
        pytest.param(
            {"trialSpec": with_job_fields(parallelism="two")},
            f'{TRIAL}.spec.parallelism: Invalid value: "two": must be an integer',
            id="no number",
        ),
        pytest.param(
            {"trialSpec": pytorch_job({"replicas": 2}, {})},
            f"{TRIAL}.spec.pytorchReplicaSpecs[Master].replicas: Invalid value: 2: must be 1",
            id="wrong job of an operator",
        ),
        pytest.param(
            {
                "trialSpec": pytorch_job(
                    {},
                    {"template": {"spec": {"containers": [
                        {"name": "pytorch", "image": "other:1", "args": ["${trialParameters.lr}"]}
                    ]}}},
                )
            },
            f"{TRIAL}: Forbidden: the pods of worker are a Job of their own, which gets no parameters of trials: give "
            "all roles equal pods, or use parameters in those of the first role alone",
            id="pods that get no parameters",
        ),
    ],
)  # fmt: skip
def test_refusals(changes: Object, problem: str) -> None:
    """They are named with the remedy."""
    (found,) = refusals(experiment(template=changes))

    assert found.startswith(problem)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param({}, "spec.template: Required value", id="no template"),
        pytest.param({"template": {"spec": {"containers": []}}}, "spec.template.spec.containers: ", id="no container"),
        pytest.param(
            {"template": {"spec": {"containers": [{"name": "a"}], "restartPolicy": "Never"}}},
            "spec.template.spec.containers[a].image: Required value",
            id="no image",
        ),
        pytest.param({"template": 5}, "spec.template: Invalid value", id="type"),
        pytest.param(job()["spec"] | {"paralelism": 2}, "spec.paralelism: ", id="unknown field"),
    ],
)
def test_wrong_jobs(spec: Object, problem: str) -> None:
    """They are errors of the Job, in the words of the API server."""
    found = refusals(experiment({"apiVersion": "batch/v1", "kind": "Job", "spec": spec}))

    assert any(each.startswith(f"{TRIAL}.{problem}") for each in found), found


def test_shipped_runtime() -> None:
    """A Job that says no more than the plain runtime needs none of its own."""
    obj = job(workingDir="/workspace")
    obj["spec"]["backoffLimit"] = 0
    result = convert_experiment(experiment(obj), runtimes=shipped_runtimes("v2alpha1"))

    assert result.runtime is None
    spec = result.optimization_job["spec"]["trainJobTemplate"]["spec"]
    assert spec["runtimeRef"] == {"kind": "ClusterTrainingRuntime", "name": "plain"}


def test_container_that_trains() -> None:
    """It is found by its name, and rules of failures that name it follow its new one."""
    obj = job()
    spec = obj["spec"]
    spec["template"]["spec"]["containers"].insert(0, {"name": "trainer", "image": "proxy:1"})
    codes = {"containerName": "train", "operator": "In", "values": [3]}
    spec["podFailurePolicy"] = {"rules": [{"action": "FailJob", "onExitCodes": codes}]}
    result = convert_experiment(experiment(obj))

    assert result.runtime is not None
    assert [str(each) for each in result.findings] == [
        (
            f"{TRIAL}.spec.template.spec.containers[trainer].name: becomes trainer-sidecar: the container that trains "
            "is called trainer beside others"
        )
    ]
    (replicated,) = result.runtime["spec"]["template"]["spec"]["replicatedJobs"]
    made = replicated["template"]["spec"]
    assert [each["name"] for each in made["template"]["spec"]["containers"]] == ["trainer-sidecar", "trainer"]
    assert made["podFailurePolicy"]["rules"][0]["onExitCodes"]["containerName"] == "trainer"


def test_names() -> None:
    """A trial is named after the Experiment, which may leave its name to the server."""
    obj = experiment()
    assert first_trial(convert_experiment(obj).optimization_job)["metadata"] == {"name": "demo-trial-1"}
    obj["metadata"] = {"generateName": "demo-", "namespace": "lab"}
    result = convert_experiment(obj)

    assert result.optimization_job["metadata"] == {"generateName": "demo-", "namespace": "lab"}
    assert result.runtime is not None
    assert result.runtime["metadata"]["name"] == "demo"
    obj["metadata"] = {"name": "a" * 41}
    assert refusals(obj)[0].startswith(f'metadata.name: Invalid value: "{"a" * 41}": must consist of')


def test_input_stays() -> None:
    """The Experiment is not changed."""
    obj = experiment(pytorch_job({}, {}), parameters=[LR])
    before = copy.deepcopy(obj)
    convert_experiment(obj)

    assert obj == before
