"""References to labels that only the operators gave pods."""

from __future__ import annotations

from typing import Any

import pytest

from packages.v1_jobs.tests.conversion.jobs import converted, fields, job, pods, variables
from trainer.kube.objects import Object

OLD = "training.kubeflow.org"
NAME = "metadata.labels['jobset.sigs.k8s.io/jobset-name']"
COMPLETION = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
JOB_INDEX = "metadata.labels['jobset.sigs.k8s.io/job-index']"
REPLICATED = "jobset.sigs.k8s.io/replicatedjob-name"
JOBSET = "jobset.sigs.k8s.io/jobset-name"
INDEX = "batch.kubernetes.io/job-completion-index"


def reference(path: str) -> Object:
    """A container with the variable A, which is a field of the pod."""
    return {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": path}}}]}


def label(name: str) -> Object:
    """A container with the variable A, which is a label of the pod."""
    return reference(f"metadata.labels['{name}']")


WORKERS = ("PyTorchJob", {"Worker": 2})
ELASTIC = {"elasticPolicy": {"minReplicas": 1, "maxReplicas": 4}}


@pytest.mark.parametrize(
    ("kind", "roles", "name", "expected"),
    [
        pytest.param(*WORKERS, f"{OLD}/job-name", {"node": NAME}, id="job-name"),
        pytest.param(*WORKERS, f"{OLD}/replica-index", {"node": COMPLETION}, id="replica-index"),
        pytest.param(*WORKERS, f"{OLD}/replica-type", {"node": "worker"}, id="replica-type"),
        pytest.param(*WORKERS, f"{OLD}/operator-name", {"node": "pytorchjob-controller"}, id="operator-name"),
        pytest.param(*WORKERS, "job-name", {"node": NAME}, id="legacy-name"),
        pytest.param(*WORKERS, "group-name", {"node": "kubeflow.org"}, id="legacy-group"),
        pytest.param(*WORKERS, "pytorch-replica-index", {"node": COMPLETION}, id="legacy-of-the-framework"),
        pytest.param("PyTorchJob", {"Worker": 1}, "job-role", {"node": "master"}, id="alone"),
        pytest.param(
            "PyTorchJob",
            {"Master": 1, "Worker": 2},
            f"{OLD}/replica-index",
            {"master": COMPLETION, "worker": JOB_INDEX},
            id="parted-index",
        ),
        pytest.param(
            "PyTorchJob",
            {"Master": 1, "Worker": 2},
            f"{OLD}/replica-type",
            {"master": "master", "worker": "worker"},
            id="parted-type",
        ),
        pytest.param(
            "XGBoostJob",
            {"Master": 1, "Worker": 2},
            f"{OLD}/job-role",
            {"master": "master", "worker": ""},
            id="parted-role",
        ),
        pytest.param(
            "PyTorchJob", {"Master": 1, "Worker": 2}, f"{OLD}/job-name", {"node": NAME}, id="equal-whatever-the-role"
        ),
        pytest.param(
            "TFJob",
            {"Chief": 1, "PS": 2, "Worker": 2},
            f"{OLD}/replica-type",
            {"chief": "chief", "ps": "ps", "node": "worker"},
            id="tensorflow-type",
        ),
        pytest.param("TFJob", {"PS": 2, "Worker": 2}, "replica-index", {"ps": COMPLETION, "node": COMPLETION}, id="tf"),
        pytest.param("JAXJob", {"Worker": 3}, f"{OLD}/replica-index", {"node": COMPLETION}, id="jax"),
        pytest.param(
            "PaddleJob",
            {"Master": 2, "Worker": 2},
            f"{OLD}/replica-index",
            {"master": COMPLETION, "worker": JOB_INDEX},
            id="paddle",
        ),
        pytest.param("PaddleJob", {"Worker": 2}, f"{OLD}/job-role", {"node": ""}, id="paddle-has-no-leader"),
        pytest.param(
            "MPIJob/v2beta1",
            {"Launcher": 1, "Worker": 2},
            f"{OLD}/job-role",
            {"launcher": "launcher", "node": "worker"},
            id="mpi-operator",
        ),
        pytest.param(
            "MPIJob",
            {"Launcher": 1, "Worker": 2},
            "mpi-job-role",
            {"launcher": "launcher", "node": "worker"},
            id="legacy-mpi",
        ),
    ],
)
def test_variables(kind: str, roles: dict[str, int], name: str, expected: dict[str, str]) -> None:
    """A label of the operator becomes what says the same of the pod here."""
    result = converted(
        job(kind, roles, label(name), **(ELASTIC if kind == "PyTorchJob" and "Master" not in roles else {}))
    )

    assert {place: variables(pod)["A"] for place, pod in pods(result).items()} == expected
    assert not [field for field in fields(result) if field.endswith("env[A]")]


@pytest.mark.parametrize(
    ("kind", "roles", "name", "spec"),
    [
        pytest.param("PyTorchJob", {"Worker": 2}, f"{OLD}/job-role", ELASTIC, id="which-worker-leads"),
        pytest.param(
            "MPIJob/v2beta1",
            {"Launcher": 1, "Worker": 2},
            f"{OLD}/replica-index",
            {"runLauncherAsWorker": True},
            id="numbered-behind-the-launcher",
        ),
        pytest.param("JAXJob", {"Worker": 2}, f"{OLD}/unheard-of", {}, id="unknown"),
    ],
)
def test_lost_variables(kind: str, roles: dict[str, int], name: str, spec: Any) -> None:
    """One that nothing says here is lost."""
    found = fields(converted(job(kind, roles, label(name), **spec)))

    assert [field for field in found if field.endswith(".env[A]")]


@pytest.mark.parametrize(
    ("path", "template"),
    [
        pytest.param("metadata.labels['team']", {}, id="own-label"),
        pytest.param("metadata.labels['job-role']", {"metadata": {"labels": {"job-role": "mine"}}}, id="own-legacy"),
        pytest.param("metadata.namespace", {}, id="namespace"),
        pytest.param("status.podIP", {}, id="address"),
    ],
)
def test_other_fields(path: str, template: Object) -> None:
    """What the operator had no part in stays."""
    result = converted(job("JAXJob", {"Worker": 2}, reference(path), template=template))

    assert variables(pods(result)["node"])["A"] == path
    assert result.findings == ()


def test_the_name_of_the_pod() -> None:
    """It was a host that kept its name; now it is neither, which is lost with what is."""
    (finding,) = converted(job("JAXJob", {"Worker": 2}, reference("metadata.name"))).findings

    assert finding.field == "spec.jaxReplicaSpecs[Worker].template.spec.containers[jax].env[A]"
    assert "write demo-node-0-INDEX.demo where a host or a lasting name is meant" in finding.message


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param(f"{OLD}/job-name", NAME, id="a-field"),
        pytest.param(f"{OLD}/replica-type", None, id="a-value"),
    ],
)
@pytest.mark.parametrize("is_projected", [pytest.param(False, id="volume"), pytest.param(True, id="projected")])
def test_files(name: str, expected: str | None, is_projected: bool) -> None:
    """A file of the downward API has another field, or is lost where only a value says the same."""
    item = {"path": "f", "fieldRef": {"fieldPath": f"metadata.labels['{name}']"}}
    source: Object = {"downwardAPI": {"items": [item]}}
    volume = {"name": "v"} | ({"projected": {"sources": [source]}} if is_projected else source)
    result = converted(job("JAXJob", {"Worker": 2}, pod={"volumes": [volume]}))

    assert (expected or name) in str(pods(result)["node"]["volumes"])
    path = "spec.jaxReplicaSpecs[Worker].template.spec.volumes[v].downwardAPI.items[f]"
    assert fields(result) == ([] if expected else [path])


def anti(selector: Object, *, soft: bool = False, **term: Any) -> Object:
    """A pod that stays apart from others."""
    found: Object = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector} | term
    if soft:
        weighted = [{"weight": 1, "podAffinityTerm": found}]
        return {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [found]}}}


def spread(selector: Object, **members: Any) -> Object:
    """A pod that is spread."""
    own = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return {"topologySpreadConstraints": [own | members]}


def labels(**values: str) -> Object:
    """A selector of old labels, whose names have underscores here."""
    return {"matchLabels": {f"{OLD}/{name.replace('_', '-')}": value for name, value in values.items()}}


@pytest.mark.parametrize(
    ("kind", "roles", "pod", "expected"),
    [
        pytest.param("JAXJob", {"Worker": 2}, anti(labels(job_name="demo")), {JOBSET: "demo"}, id="job-name"),
        pytest.param(
            "JAXJob",
            {"Worker": 2},
            anti(labels(job_name="demo", replica_type="worker"), soft=True),
            {JOBSET: "demo", REPLICATED: "node"},
            id="role",
        ),
        pytest.param("JAXJob", {"Worker": 2}, anti(labels(replica_index="0")), {INDEX: "0"}, id="index"),
        pytest.param("JAXJob", {"Worker": 2}, spread(labels(job_name="demo")), {JOBSET: "demo"}, id="spread"),
        pytest.param(
            "JAXJob",
            {"Worker": 2},
            anti({"matchLabels": {"job-name": "demo", "team": "a"}}),
            {JOBSET: "demo", "team": "a"},
            id="legacy-beside-others",
        ),
        pytest.param(
            "XGBoostJob",
            {"Master": 1, "Worker": 2},
            anti(labels(job_name="demo", job_role="master")),
            {JOBSET: "demo", REPLICATED: "master"},
            id="leader",
        ),
        pytest.param(
            "TFJob",
            {"PS": 2, "Worker": 2},
            anti(labels(replica_type="worker", replica_index="1")),
            {REPLICATED: "node", INDEX: "1"},
            id="index-of-a-role",
        ),
        pytest.param(
            "MPIJob/v2beta1",
            {"Launcher": 1, "Worker": 2},
            anti(labels(job_role="worker")),
            {REPLICATED: "node"},
            id="mpi-operator",
        ),
    ],
)
def test_selectors(kind: str, roles: dict[str, int], pod: Object, expected: dict[str, str]) -> None:
    """A selector of pods by labels of the operator selects them by those that they have."""
    result = converted(job(kind, roles, pod=pod))

    for found in pods(result).values():
        terms = found.get("topologySpreadConstraints") or next(iter(found["affinity"]["podAntiAffinity"].values()))
        (selector,) = [each.get("podAffinityTerm", each)["labelSelector"] for each in terms]
        assert selector == {"matchLabels": expected}
    assert not [field for field in fields(result) if "elector" in field]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            {"key": f"{OLD}/job-name", "operator": "In", "values": ["demo"]},
            {"key": JOBSET, "operator": "In", "values": ["demo"]},
            id="in",
        ),
        pytest.param(
            {"key": f"{OLD}/replica-type", "operator": "NotIn", "values": ["worker"]},
            {"key": REPLICATED, "operator": "NotIn", "values": ["node"]},
            id="not-in",
        ),
        pytest.param(
            {"key": f"{OLD}/job-name", "operator": "Exists"}, {"key": JOBSET, "operator": "Exists"}, id="exists"
        ),
    ],
)
def test_expressions(given: Object, expected: Object) -> None:
    """Requirements keep their operator."""
    result = converted(job("JAXJob", {"Worker": 2}, pod=anti({"matchExpressions": [given]})))

    assert str({"matchExpressions": [expected]}) in str(pods(result)["node"])
    assert result.findings == ()


def test_keys_of_a_spread() -> None:
    """Keys whose values are those of the pod itself have other names, too."""
    result = converted(job("JAXJob", {"Worker": 2}, pod=spread({}, matchLabelKeys=[f"{OLD}/job-name", "own"])))

    assert pods(result)["node"]["topologySpreadConstraints"][0]["matchLabelKeys"] == [JOBSET, "own"]


@pytest.mark.parametrize(
    ("selector", "field"),
    [
        pytest.param(labels(job_name="other"), f"matchLabels[{OLD}/job-name]", id="another-job"),
        pytest.param(labels(operator_name="jaxjob-controller"), f"matchLabels[{OLD}/operator-name]", id="all-jobs"),
        pytest.param(labels(job_role="master"), f"matchLabels[{OLD}/job-role]", id="which-worker-leads"),
        pytest.param(
            {"matchExpressions": [{"key": "group-name", "operator": "Exists"}]},
            "matchExpressions[group-name]",
            id="expression",
        ),
    ],
)
def test_lost_selectors(selector: Object, field: str) -> None:
    """What no label here says is lost."""
    result = converted(job("JAXJob", {"Worker": 2}, pod=spread(selector)))

    path = "spec.jaxReplicaSpecs[Worker].template.spec.topologySpreadConstraints[0].labelSelector"
    assert fields(result) == [f"{path}.{field}"]


def test_file_of_all_labels() -> None:
    """A file with all labels lacks those of the operator, which are lost."""
    item = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}
    volume = {"name": "v", "downwardAPI": {"items": [item]}}
    (finding,) = converted(job("JAXJob", {"Worker": 2}, pod={"volumes": [volume]})).findings

    assert finding.field.endswith("volumes[v].downwardAPI.items[labels]")
    assert "lacks the labels training.kubeflow.org/*" in finding.message
