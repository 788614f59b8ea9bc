"""`${trialParameters.NAME}` becomes what Kubernetes replaces, or is refused where it replaces nothing."""

from __future__ import annotations

from typing import Any

import pytest

from packages.v1_jobs.tests.katib.samples import experiment, job
from packages.v1_jobs.tests.katib.test_search import refusals
from trainer.kube.objects import Object
from trainer_devcluster.kubelet.variable_references import expand
from trainer_v1_jobs.katib import convert_experiment

LR = "KUBEFLOW_TRAINER_OPT_LR"
ELSEWHERE = (
    "trials differ in variables of the container that trains, and Kubernetes replaces these in its command, args and "
    "env alone: use it there, or convert one Experiment for each value"
)


def trainer(trial_spec: Object, **template: Any) -> Object:
    """What the trials say of their trainer."""
    result = convert_experiment(experiment(trial_spec, template))
    found: Object = result.optimization_job["spec"]["trainJobTemplate"]["spec"]["trainer"]
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("${trialParameters.lr}", f"$({LR})", id="alone"),
        pytest.param("--a=${trialParameters.lr}--b=${trialParameters.lr}", f"--a=$({LR})--b=$({LR})", id="twice"),
        pytest.param("$${trialParameters.lr}", f"$$$({LR})", id="behind a sign"),
        pytest.param("$$${trialParameters.lr}", f"$$$({LR})", id="behind two"),
        pytest.param("$(f ${trialParameters.lr})", f"$$(f $({LR}))", id="in a command of a shell"),
        pytest.param("$(f $(g $$ ${trialParameters.lr}) 1)", f"$$(f $$(g $$$$ $({LR})) 1)", id="in two"),
        pytest.param("$$(f ${trialParameters.lr})", f"$$(f $({LR}))", id="in a sign and parentheses"),
        pytest.param("$(f) ${trialParameters.lr} $(", f"$(f) $({LR}) $(", id="behind a command"),
        pytest.param("$(date) $HOME ${HOME} $$(x)", "$(date) $HOME ${HOME} $$(x)", id="nothing of Katib"),
        pytest.param("${trialParameters.lr", "${trialParameters.lr", id="without an end"),
    ],
)
def test_texts(text: str, expected: str) -> None:
    """What Kubernetes makes of the result is what it makes of Katib's text with the value in it."""
    (word,) = (
        trainer(job([text]))["args"] if "lr}" in text else trainer(job([text, "${trialParameters.lr}"]))["args"][:1]
    )

    assert word == expected
    assert expand(word, {LR: "0.5"}) == expand(text.replace("${trialParameters.lr}", "0.5"), {})


def test_variables() -> None:
    """A variable of the job comes after those that its value refers to, which trials fill in at their place."""
    env = [{"name": "A", "value": "a"}, {"name": "LR", "value": "lr ${trialParameters.lr}"}]

    assert trainer(job(env=env))["env"] == [{"name": LR, "value": ""}, env[0], {"name": "LR", "value": f"lr $({LR})"}]


def test_what_a_trial_is() -> None:
    """Its name and namespace are variables of its pods; what all trials share is written out."""
    parameters = [
        {"name": "lr", "reference": "lr"},
        {"name": "trial", "reference": "${trialSpec.Name}"},
        {"name": "space", "reference": "${trialSpec.Namespace}"},
        {"name": "kind", "reference": "${trialSpec.Kind}"},
        {"name": "version", "reference": "${trialSpec.APIVersion}"},
        {"name": "owner", "reference": "${trialSpec.Labels[mine/owner]}"},
        {"name": "note", "reference": "${trialSpec.Annotations[note]}"},
    ]
    words = [f"${{trialParameters.{each['name']}}}" for each in parameters]
    labelled = job(words, image="train:${trialParameters.owner}") | {
        "metadata": {"labels": {"mine/owner": "ann"}, "annotations": {"note": "n"}}
    }
    found = trainer(labelled, trialParameters=parameters)

    names = ["TRIAL_TRAINJOB_NAME", "TRIAL_TRAINJOB_NAMESPACE"]
    assert found["args"] == [f"$({LR})", *(f"$({name})" for name in names), "Job", "batch/v1", "ann", "n"]
    assert found["image"] == "train:ann"
    fields = [each["valueFrom"]["fieldRef"]["fieldPath"] for each in found["env"]]
    assert [each["name"] for each in found["env"]] == names
    assert fields == ["metadata.labels['jobset.sigs.k8s.io/jobset-name']", "metadata.namespace"]


def test_paths_in_volumes() -> None:
    """A path that differs is one with variables; another one stays."""
    mounts = [
        {"name": "out", "mountPath": "/out", "subPath": "runs/${trialParameters.lr}"},
        {"name": "out", "mountPath": "/in", "subPath": "in"},
    ]
    obj = job(volumeMounts=mounts)
    obj["spec"]["template"]["spec"]["volumes"] = [{"name": "out", "emptyDir": {}}]
    runtime = convert_experiment(experiment(obj)).runtime

    assert runtime is not None
    (replicated,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    (container,) = replicated["template"]["spec"]["template"]["spec"]["containers"]
    assert container["volumeMounts"] == [
        {"name": "out", "mountPath": "/out", "subPathExpr": f"runs/$({LR})"},
        mounts[1],
    ]


@pytest.mark.parametrize(
    ("trial_spec", "place"),
    [
        pytest.param(job(image="train:${trialParameters.lr}"), "containers[train].image", id="image"),
        pytest.param(
            job(resources={"limits": {"cpu": "${trialParameters.lr}"}}),
            "containers[train].resources.limits.cpu",
            id="resources",
        ),
        pytest.param(
            job(livenessProbe={"exec": {"command": ["x", "${trialParameters.lr}"]}}),
            "containers[train].livenessProbe.exec.command[1]",
            id="probe",
        ),
        pytest.param(job(env=[{"name": "${trialParameters.lr}", "value": "x"}]),
                     "containers[train].env[${trialParameters.lr}].name", id="name of a variable"),
    ],
)  # fmt: skip
def test_elsewhere(trial_spec: Object, place: str) -> None:
    """Where Kubernetes replaces nothing it is refused, with the place and what to do."""
    (problem,) = refusals(experiment(trial_spec))

    where = "spec.trialTemplate.trialSpec.spec.template.spec."
    assert problem == f"{where}{place}: Forbidden: has the trial parameter lr: {ELSEWHERE}"


def test_further_places() -> None:
    """So are other containers, labels, numbers of pods, and names of members."""
    obj = job()
    pods = obj["spec"]["template"]
    pods["metadata"] = {"labels": {"a": "${trialParameters.lr}"}}
    pods["spec"]["containers"].append({"name": "log", "image": "log:1", "args": ["${trialParameters.lr}"]})
    pods["spec"]["initContainers"] = [{"name": "first", "image": "log:1", "command": ["${trialParameters.lr}"]}]
    pods["spec"]["nodeSelector"] = {"${trialParameters.lr}": "x"}
    obj["spec"]["parallelism"] = "${trialParameters.lr}"
    obj["metadata"] = {"annotations": {"b": "${trialParameters.lr}"}}
    places = [
        each.partition(": ")[0].removeprefix("spec.trialTemplate.trialSpec.") for each in refusals(experiment(obj))
    ]

    assert sorted(places) == [
        "metadata.annotations.b",
        "spec.parallelism",
        "spec.template.metadata.labels.a",
        "spec.template.spec.containers[log].args[0]",
        "spec.template.spec.initContainers[first].command[0]",
        "spec.template.spec.nodeSelector",
    ]


@pytest.mark.parametrize(
    ("parameter", "problem"),
    [
        pytest.param(
            {"name": "other", "reference": "lr"},
            "spec.trialTemplate.trialSpec.spec.template.spec.containers[train].args[0]: Not found: "
            '"${trialParameters.lr}": there is no such name in spec.trialTemplate.trialParameters',
            id="unknown name",
        ),
        pytest.param(
            {"name": "lr", "reference": "rate"},
            'spec.trialTemplate.trialParameters[lr].reference: Not found: "rate": there is no such parameter in '
            "spec.parameters",
            id="unknown parameter",
        ),
        pytest.param(
            {"name": "lr", "reference": "${trialSpec.Labels[owner]}"},
            'spec.trialTemplate.trialParameters[lr].reference: Not found: "${trialSpec.Labels[owner]}": there is no '
            "such member of trialSpec",
            id="unknown label",
        ),
    ],
)
def test_references(parameter: Object, problem: str) -> None:
    """What nothing stands behind is named."""
    assert refusals(experiment(template={"trialParameters": [parameter]})) == [problem]
