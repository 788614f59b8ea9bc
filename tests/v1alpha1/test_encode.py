"""v2alpha1 in the shape of v1alpha1, and back."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.definitions import schema_of
from trainer.api.model import ApiModel
from trainer.kube.objects import Object, name_of
from trainer.v1alpha1 import trainingruntime, trainjob
from trainer.v1alpha1.crds import crds
from trainer.v1alpha1.decode import decode, is_decodable
from trainer.v1alpha1.encode import encode, is_encodable

ROOT = Path(__file__).parents[2]
UPSTREAM = ROOT.parent / "shared" / "peer" / "upstream"
MODELS: dict[str, type[ApiModel]] = {
    "TrainJob": trainjob.TrainJob,
    "TrainingRuntime": trainingruntime.TrainingRuntime,
    "ClusterTrainingRuntime": trainingruntime.ClusterTrainingRuntime,
}
SCHEMAS = {definition["spec"]["names"]["kind"]: schema_of(definition) for definition in crds("v1alpha1")}
STEP = "trainer.kubeflow.org/trainjob-ancestor-step"


def objects(*folders: Path) -> list[Any]:
    """The objects in all files below some folders."""
    files = sorted(file for folder in folders for file in folder.rglob("*.yaml"))
    return [
        pytest.param(obj, id=f"{file.relative_to(ROOT.parent)} {obj['kind']} {name_of(obj)}")
        for file in files
        for obj in yaml.load_all(file.read_text(), yaml.CSafeLoader)
        if is_decodable(obj) or is_encodable(obj)
    ]


def train_job(**spec: Any) -> Object:
    """A TrainJob of v2alpha1."""
    ref = {"runtimeRef": {"name": "r"}}
    return {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "demo"},
        "spec": ref | spec,
        "status": {"state": "Running"},
    }


def runtime(*jobs: Object, policy: Object | None = None, **template: Any) -> Object:
    """A runtime of v2alpha1."""
    metadata = {"metadata": template.pop("metadata")} if "metadata" in template else {}
    spec = {"template": metadata | {"spec": {"replicatedJobs": [*jobs], **template}}}
    return {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "r"},
        "spec": spec | ({} if policy is None else {"mlPolicy": policy}),
    }


def job(name: str, *containers: str, **fields: Any) -> Object:
    """A replicated Job."""
    pods = {"containers": [{"name": each, "image": "i"} for each in containers or ("trainer",)]}
    return {"name": name, "template": {"spec": {"template": {"spec": pods}}}} | fields


def override(*jobs: str, **fields: Any) -> Object:
    """Changes to some replicated Jobs."""
    return {"targetJobs": [{"name": name} for name in jobs], **fields}


@pytest.mark.parametrize(
    "obj", objects(ROOT / "config" / "v1alpha1" / "runtimes", *([UPSTREAM] if UPSTREAM.exists() else []))
)
def test_there_and_back(obj: Object) -> None:
    """What is decoded is encoded as it was, but for a number of processes that is the default."""
    decoded = decode(obj)
    encoded = encode(decoded.object)
    wanted = copy.deepcopy(obj)
    mpi = wanted["spec"].get("mlPolicy", {}).get("mpi", {})
    if mpi.get("numProcPerNode") == 1:
        del mpi["numProcPerNode"]
    assert encoded.object == {name: value for name, value in wanted.items() if name != "status"}
    assert (decoded.losses, encoded.losses) == ((), ())


@pytest.mark.parametrize("obj", objects(ROOT / "config" / "runtimes", ROOT / "examples"))
def test_shipped_objects(obj: Object) -> None:
    """All that is shipped for v2alpha1 fits the schema and rules of v1alpha1, and is the same after another time."""
    if is_decodable(obj):
        assert not is_encodable(obj)
        return
    encoded = encode(obj).object
    MODELS[obj["kind"]].from_object(encoded, strict=True)
    assert SCHEMAS[obj["kind"]].validate(copy.deepcopy(encoded)) == []
    again = encode(decode(encoded).object)
    assert again.object == encoded


PODS: Object = {"serviceAccountName": "a"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            {"managedBy": "kubeflow.org/trainjob-controller"},
            {"managedBy": "trainer.kubeflow.org/trainjob-controller"},
            id="manager",
        ),
        pytest.param(
            {"managedBy": "kueue.x-k8s.io/multikueue"}, {"managedBy": "kueue.x-k8s.io/multikueue"}, id="other"
        ),
        pytest.param(
            {"datasetConfig": {"storageUri": "hf://d"}},
            {"initializer": {"dataset": {"storageUri": "hf://d"}}},
            id="dataset",
        ),
        pytest.param({"modelConfig": {"input": {}}}, {"initializer": {"model": {}}}, id="model"),
        pytest.param(
            {"trainer": {"command": ["torchrun 'a b.py'"]}}, {"trainer": {"command": ["torchrun", "a b.py"]}}, id="line"
        ),
        pytest.param({"trainer": {"command": ["it's"]}}, {"trainer": {"command": ["it's"]}}, id="no line"),
        pytest.param({"trainer": {"numProcPerNode": "4"}}, {"trainer": {"numProcPerNode": 4}}, id="processes"),
        pytest.param({"trainer": {"numProcPerNode": "auto"}}, {"trainer": {}}, id="default processes"),
        pytest.param(
            {"podSpecOverrides": [override("Node", "other", **PODS)]},
            {
                "runtimePatches": [
                    {
                        "manager": "trainer.kubeflow.org/convert",
                        "trainingRuntimeSpec": {
                            "template": {
                                "spec": {
                                    "replicatedJobs": [
                                        {"name": name, "template": {"spec": {"template": {"spec": PODS}}}}
                                        for name in ("node", "other")
                                    ]
                                }
                            }
                        },
                    }
                ]
            },
            id="override",
        ),
    ],
)
def test_train_jobs(given: Object, expected: Object) -> None:
    """Everything that has a counterpart is written there."""
    encoded = encode(train_job(**given))
    assert encoded.object == {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "demo"},
        "spec": {"runtimeRef": {"name": "r"}, **expected},
    }
    assert encoded.losses == ()


def test_authors() -> None:
    """Each patch has an author of its own; patches keep their order, since later ones win."""
    overrides = [
        override("node", manager="a.io/b", time="t", metadata={"labels": {"a": "b"}}),
        override("other", manager="a.io/b", time="t"),
        override("node", manager="a.io/b", time="t"),
        override("node", manager="kueue"),
        override("node"),
    ]
    spec = encode(train_job(podSpecOverrides=overrides, jobSetMetadata={"labels": {"x": "y"}})).object["spec"]
    patches = [(patch, patch["trainingRuntimeSpec"]["template"]) for patch in spec["runtimePatches"]]
    found = [
        (patch["manager"], patch.get("time"), [each["name"] for each in template["spec"]["replicatedJobs"]])
        for patch, template in patches
    ]
    assert found == [
        ("a.io/b", "t", ["node", "other"]),
        ("a.io/b-2", "t", ["node"]),
        ("trainer.kubeflow.org/kueue", None, ["node"]),
        ("trainer.kubeflow.org/convert", None, ["node"]),
    ]
    assert patches[0][1]["metadata"] == {"labels": {"x": "y"}}


MOUNTS = [{"name": "a", "mountPath": "/a"}, {"name": "a", "mountPath": "/b"}]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        pytest.param({"ttlSecondsAfterFinished": 1}, "spec.ttlSecondsAfterFinished", id="ttl"),
        pytest.param({"modelConfig": {"output": {}}}, "spec.modelConfig.output", id="export"),
        pytest.param({"trainer": {"numProcPerNode": "gpu"}}, "spec.trainer.numProcPerNode", id="processes"),
        pytest.param({"labels": {"a": "b"}}, "spec.labels", id="labels"),
        pytest.param({"annotations": {"a": "b"}}, "spec.annotations", id="annotations"),
        pytest.param(
            {"podSpecOverrides": [override("node", tolerations=[])]},
            "spec.podSpecOverrides[0].tolerations",
            id="tolerations",
        ),
        *(
            pytest.param(
                {"podSpecOverrides": [override("node", containers=[{"name": name, **change}])]},
                f"spec.podSpecOverrides[0].containers[0].{field}",
                id=field,
            )
            for name, change, field in (
                ("trainer", {"command": ["a"]}, "command"),
                ("side", {"envFrom": []}, "envFrom"),
                ("trainer", {"env": [{"name": "A"}]}, "env"),
                ("side", {"volumeMounts": MOUNTS}, "volumeMounts[1]"),
            )
        ),
    ],
)
def test_losses_of_train_jobs(spec: Object, path: str) -> None:
    """What has no counterpart is named, and the rest is written."""
    encoded = encode(train_job(suspend=True, **spec))
    assert [loss.field for loss in encoded.losses] == [path]
    trainjob.TrainJob.from_object(encoded.object, strict=True)


def test_replaced_tolerations() -> None:
    """They mean the same in both versions."""
    changes = override("node", tolerations=[{"key": "a"}], tolerationPolicy="Replace")
    assert encode(train_job(podSpecOverrides=[changes])).losses == ()


def test_runtime() -> None:
    """What v2alpha1 finds out is written: the Job and the container that train, and the number of nodes."""
    node = job("Node", template=job("", "trainer", "side")["template"])
    node["template"]["spec"] |= {"parallelism": 3}
    container = node["template"]["spec"]["template"]["spec"]["containers"][0]
    container |= {"command": ["sh -c 'a b'"], "env": [{"name": "A", "value": 1}]}
    after = job("after", "c", dependsOn=[{"name": "Node", "status": "Complete"}])
    given = runtime(job("init", "dataset-initializer"), node, after, successPolicy={"targetReplicatedJobs": ["Node"]})
    before = copy.deepcopy(given)
    encoded = encode(given)
    assert given == before
    spec = encoded.object["spec"]
    init, node, after = spec["template"]["spec"]["replicatedJobs"]
    assert spec["mlPolicy"] == {"numNodes": 3}
    assert (node["name"], node["template"]["metadata"]) == ("node", {"labels": {STEP: "trainer"}})
    assert init["template"]["metadata"] == {"labels": {STEP: "dataset-initializer"}}
    main, side = node["template"]["spec"]["template"]["spec"]["containers"]
    assert (main["name"], main["command"], main["env"]) == ("node", ["sh", "-c", "a b"], [{"name": "A", "value": "1"}])
    assert side["name"] == "side"
    assert after["dependsOn"] == [{"name": "node", "status": "Complete"}]
    assert spec["template"]["spec"]["successPolicy"] == {"targetReplicatedJobs": ["node"]}
    assert [loss.field for loss in encoded.losses] == ["spec.template.spec.replicatedJobs[init].name"]


def test_mpi() -> None:
    """The launcher has the label, and the order and success that the plugin of v2alpha1 adds are written."""
    labels = {"metadata": {"labels": {STEP: "trainer"}}}
    node = job("node")
    node["template"] |= labels
    spec = encode(runtime(job("launcher"), node, policy={"mpi": {"SSHAuthMountPath": "/ssh"}})).object["spec"]
    node, launcher = spec["template"]["spec"]["replicatedJobs"]
    assert spec["mlPolicy"] == {"mpi": {"sshAuthMountPath": "/ssh"}}
    assert (node["name"], node["template"]["metadata"]["labels"]) == ("node", {})
    assert (launcher["name"], launcher["template"]["metadata"]) == ("launcher", labels["metadata"])
    assert launcher["dependsOn"] == [{"name": "node", "status": "Ready"}]
    assert spec["template"]["spec"]["successPolicy"] == {"operator": "All", "targetReplicatedJobs": ["launcher"]}
    names = [each["template"]["spec"]["template"]["spec"]["containers"][0]["name"] for each in (node, launcher)]
    assert names == ["node", "node"]


INITIALIZERS = [job("fetch", "dataset-initializer"), job("model", "model-initializer")]
EXPORTER = job("finish", "model-exporter")


@pytest.mark.parametrize(
    ("policy", "jobs", "expected"),
    [
        pytest.param(
            {"torch": {}},
            [*INITIALIZERS, job("node"), job("board"), EXPORTER],
            {"model": "fetch Complete", "node": "model Complete", "board": "node Ready", "finish": "node Complete"},
            id="steps of a training",
        ),
        pytest.param(
            {"mpi": {}},
            [job("launcher"), job("node"), EXPORTER],
            {"launcher": "node Ready", "finish": "launcher Complete"},
            id="MPI",
        ),
        pytest.param({"torch": {}}, [job("node")], {}, id="one Job"),
    ],
)
def test_order(policy: Object, jobs: list[Object], expected: dict[str, str]) -> None:
    """Jobs wait as InOrder means it; in v1alpha1 that is readiness alone."""
    encoded = encode(runtime(*jobs, policy=policy, startupPolicy={"startupPolicyOrder": "InOrder"})).object
    template = encoded["spec"]["template"]["spec"]
    waits = {each["name"]: each.get("dependsOn", []) for each in template["replicatedJobs"]}
    assert {name: f"{on['name']} {on['status']}" for name, found in waits.items() for on in found} == expected
    assert "startupPolicy" not in template


@pytest.mark.parametrize(
    ("obj", "path"),
    [
        pytest.param(runtime(job("node"), policy={"tensorflow": {}}), "spec.mlPolicy.tensorflow", id="tensorflow"),
        pytest.param(runtime(job("node"), policy={"paddle": {}}), "spec.mlPolicy.paddle", id="paddle"),
        pytest.param(
            runtime(job("node"), policy={"torch": {"numProcPerNode": 2}}),
            "spec.mlPolicy.torch.numProcPerNode",
            id="torch",
        ),
        pytest.param(
            runtime(job("node"), policy={"torch": {"elasticPolicy": {"minNodes": 2}}}),
            "spec.mlPolicy.torch.elasticPolicy",
            id="elastic",
        ),
        pytest.param(
            runtime(job("node"), policy={"mpi": {"mpiImplementation": "Intel"}}),
            "spec.mlPolicy.mpi.mpiImplementation",
            id="Intel",
        ),
        pytest.param(
            runtime(job("node"), policy={"mpi": {"numProcPerNode": 1}}),
            "spec.mlPolicy.mpi.numProcPerNode",
            id="one process",
        ),
        pytest.param(runtime(job("node"), policy={"numNodes": 2, "mpi": {}}), "spec.mlPolicy.numNodes", id="nodes"),
        pytest.param(
            runtime(job("node"), metadata={"labels": {"kueue.x-k8s.io/queue-name": "a"}}),
            "spec.template.metadata.labels",
            id="queue",
        ),
        pytest.param(
            runtime(job("trainer-node"), job("launcher"), policy={"mpi": {}}),
            "spec.template.spec.replicatedJobs[trainer-node].name",
            id="name",
        ),
        pytest.param(
            runtime(job("node", "trainer", "node")),
            "spec.template.spec.replicatedJobs[node].template.spec.template.spec.containers[trainer].name",
            id="container",
        ),
    ],
)
def test_losses_of_runtimes(obj: Object, path: str) -> None:
    """What has no counterpart is named, and the rest is written."""
    encoded = encode(obj)
    assert [loss.field for loss in encoded.losses] == [path]
    trainingruntime.ClusterTrainingRuntime.from_object(encoded.object, strict=True)


@pytest.mark.parametrize(
    "spec", [None, [], {"trainer": 1, "podSpecOverrides": [1, {"targetJobs": 2, "containers": [3]}]}]
)
@pytest.mark.parametrize("kind", ["TrainJob", "TrainingRuntime"])
def test_wrong_objects(kind: str, spec: Any) -> None:
    """Nothing is refused: what is wrong is wrong in the result."""
    obj = {"apiVersion": "trainer.kubeflow.org/v2alpha1", "kind": kind, "metadata": {"name": "a"}, "spec": spec}
    assert encode(obj).object["apiVersion"] == "trainer.kubeflow.org/v1alpha1"


def test_failure_rules_have_names() -> None:
    """They need them in v1alpha1."""
    given = runtime(job("node"), failurePolicy={"rules": [{"action": "FailJobSet", "targetReplicatedJobs": ["Node"]}]})
    template = encode(given).object["spec"]["template"]["spec"]
    rule = {"name": "rule-1", "action": "FailJobSet", "targetReplicatedJobs": ["node"]}
    assert template["failurePolicy"]["rules"] == [rule]


def test_failure_policies_name_the_container_that_trains() -> None:
    """The rule of a Job follows its container, which is called otherwise."""
    codes = {"operator": "In", "values": [143]}
    trainer = job("node", "trainer")
    trainer["template"]["spec"]["podFailurePolicy"] = {
        "rules": [
            {"action": "FailJob", "onExitCodes": {"containerName": name, **codes}} for name in ("trainer", "other")
        ]
    }
    (encoded,) = encode(runtime(trainer)).object["spec"]["template"]["spec"]["replicatedJobs"]
    rules = encoded["template"]["spec"]["podFailurePolicy"]["rules"]
    assert [rule["onExitCodes"]["containerName"] for rule in rules] == ["node", "other"]
