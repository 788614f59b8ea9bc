"""The precedence table of docs/trainjob.md, field by field."""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.framework.samples import replicated_job, runtime_object, train_job_object
from tests.framework.static_reader import StaticReader
from trainer.api.trainingruntime import ClusterTrainingRuntime
from trainer.api.trainjob import TrainJob
from trainer.framework.pipeline import Pipeline
from trainer.kube.objects import Object
from trainer.manager import built_in_plugins

Layer: TypeAlias = Callable[["Input"], None]
"""Lets one place say something."""

DOCUMENT = Path(__file__).parents[2] / "docs" / "trainjob.md"

INITIALIZER, NODE, FINALIZER = range(3)


def container(name: str) -> Object:
    """A container of the runtime, with what Kubernetes asks of it."""
    return {"name": name, "image": "i"}


class Input:
    """A runtime with initializer, node and finalizer, and a TrainJob of it, both empty as yet."""

    def __init__(self) -> None:
        self.runtime = runtime_object(
            replicated_job("Initializer", container("dataset-initializer"), container("model-initializer")),
            replicated_job(
                "Node",
                container("trainer"),
                container("sidecar"),
                pod={"initContainers": [container("init")], "volumes": [{"name": "v", "emptyDir": {}}]},
            ),
            replicated_job("Finalizer", container("model-exporter")),
            policy={"torch": {}},
        )
        self.spec: Object = {}

    def built(self) -> Object:
        """The JobSet."""
        job = TrainJob.from_object(train_job_object(**self.spec))
        runtime = ClusterTrainingRuntime.from_object(self.runtime)
        (component,) = Pipeline(built_in_plugins(StaticReader())).build(job, runtime)
        return component.object


@dataclass(frozen=True)
class Row:
    """One row of the table."""

    layers: list[Layer]
    """From weak to strong."""
    read: Callable[[Object], Any]
    """What has come of it in the JobSet."""
    values: list[Any]
    """What `read` gives when the layer of the same index is the strongest that says something."""


def put(target: Any, path: str, value: Any) -> None:
    """Set a value deep in a tree of mappings; numbers are indexes of lists."""
    *parents, last = path.split("/")
    for step in parents:
        target = target[int(step)] if step.isdigit() else target.setdefault(step, {})
    target[last] = value


def in_runtime(path: str, value: Any) -> Layer:
    """The runtime says it."""
    return lambda given: put(given.runtime["spec"], path, value)


def in_job(path: str, value: Any) -> Layer:
    """The TrainJob says it."""
    return lambda given: put(given.spec, path, value)


def in_override(job: int, **fields: Any) -> Layer:
    """An override says it."""
    name = ("Initializer", "Node", "Finalizer")[job]
    return lambda given: given.spec.setdefault("podSpecOverrides", []).append({"targetJobs": [{"name": name}]} | fields)


def in_container_override(job: int, container: str, kind: str = "containers", **fields: Any) -> Layer:
    """An override of a container says it."""
    return in_override(job, **{kind: [{"name": container} | fields]})


def plugin(_given: Input) -> None:
    """The torch plugin always says it."""


def pod(jobset: Object, job: int = NODE) -> Any:
    """A pod spec of the JobSet."""
    return jobset["spec"]["replicatedJobs"][job]["template"]["spec"]["template"]["spec"]


def container_of(jobset: Object, name: str) -> Any:
    """A container of the JobSet, by name."""
    pods = [pod(jobset, job) for job in (INITIALIZER, NODE, FINALIZER)]
    containers = [c for spec in pods for c in [*spec["containers"], *spec.get("initContainers", [])]]
    return next(found for found in containers if found["name"] == name)


def entry(items: list[Object], key: str, value: str, field: str) -> Any:
    """A field of the entry with this key; that there is only one is part of the answer."""
    (found,) = [item for item in items if item[key] == value]
    return found[field]


POD = f"template/spec/replicatedJobs/{NODE}/template/spec/template"
TRAINER = f"{POD}/spec/containers/0"
SIDECAR = f"{POD}/spec/containers/1"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NODE_RULE = {"weight": 1, "preference": {"matchExpressions": [{"key": "k", "operator": "Exists"}]}}


def scalar(field: str, *layers: Layer, values: list[Any], name: str = "trainer") -> Row:
    """A row whose value is a field of a container."""
    return Row(list(layers), lambda jobset: container_of(jobset, name).get(field), values)


def env(value: str, name: str = "A") -> list[Object]:
    """One environment variable, beside one that nobody else sets."""
    return [{"name": f"ONLY_{value.upper()}", "value": "x"}, {"name": name, "value": value}]


def storage_rows(name: str, job: int, position: int, field: str) -> dict[str, Row]:
    """The three rows of a container that fetches or exports data."""
    path = f"template/spec/replicatedJobs/{job}/template/spec/template/spec/containers/{position}"

    def variable(key: str) -> Callable[[Object], Any]:
        return lambda jobset: entry(container_of(jobset, name)["env"], "name", key, "value")

    return {
        f"STORAGE_URI of {name}": Row(
            [
                in_runtime(f"{path}/env", env("a://1", "STORAGE_URI")),
                in_container_override(job, name, env=env("a://2", "STORAGE_URI")),
                in_job(f"{field}/storageUri", "a://3"),
                in_job(f"{field}/env", env("a://4", "STORAGE_URI")),
            ],
            variable("STORAGE_URI"),
            ["a://1", "a://2", "a://3", "a://4"],
        ),
        f"env of {name}": Row(
            [
                in_runtime(f"{path}/env", env("runtime")),
                in_container_override(job, name, env=env("override")),
                in_job(f"{field}/env", env("job")),
            ],
            variable("A"),
            ["runtime", "override", "job"],
        ),
        f"envFrom of {name}": Row(
            [
                in_runtime(f"{path}/envFrom", [{"secretRef": {"name": "s", "optional": True}}]),
                in_container_override(job, name, envFrom=[{"secretRef": {"name": "s", "optional": False}}]),
                in_job(f"{field}/secretRef", {"name": "s"}),
            ],
            lambda jobset: container_of(jobset, name)["envFrom"],
            [
                [{"secretRef": {"name": "s", "optional": True}}],
                [{"secretRef": {"name": "s", "optional": False}}],
                [{"secretRef": {"name": "s"}}],
            ],
        ),
    }


def label_rows(kind: str) -> dict[str, Row]:
    """Labels or annotations of the JobSet, its Jobs and their pods."""
    job = f"template/spec/replicatedJobs/{NODE}/template"
    places: dict[str, tuple[str, Callable[[Object], Any]]] = {
        "JobSet": ("template/metadata", lambda jobset: jobset["metadata"]),
        "Jobs": (f"{job}/metadata", lambda jobset: jobset["spec"]["replicatedJobs"][NODE]["template"]["metadata"]),
        "pods": (
            f"{POD}/metadata",
            lambda jobset: jobset["spec"]["replicatedJobs"][NODE]["template"]["spec"]["template"]["metadata"],
        ),
    }
    rows: dict[str, Row] = {}
    for name, (path, metadata) in places.items():
        overrides = {
            "JobSet": in_job("jobSetMetadata", {kind: {"a": "override"}}),
            "Jobs": in_override(NODE, jobMetadata={kind: {"a": "override"}}),
            "pods": in_override(NODE, metadata={kind: {"a": "override"}}),
        }
        rows[f"{kind} of the {name}"] = Row(
            [in_runtime(f"{path}/{kind}", {"a": "runtime", "only": "x"}), overrides[name], in_job(kind, {"a": "job"})],
            lambda jobset, metadata=metadata: metadata(jobset)[kind]["a"],  # type: ignore[misc]
            ["runtime", "override", "job"],
        )
    return rows


ROWS: dict[str, Row] = {
    "image of the trainer": scalar(
        "image",
        in_runtime(f"{TRAINER}/image", "runtime"),
        in_job("trainer/image", "job"),
        values=["runtime", "job"],
    ),
    "command of the trainer": scalar(
        "command",
        in_runtime(f"{TRAINER}/command", ["runtime"]),
        in_container_override(NODE, "trainer", command=["override"]),
        in_job("trainer/command", ["job"]),
        values=[["runtime"], ["override"], ["job"]],
    ),
    "args of the trainer": scalar(
        "args",
        in_runtime(f"{TRAINER}/args", ["runtime"]),
        in_container_override(NODE, "trainer", args=["override"]),
        in_job("trainer/args", ["job"]),
        values=[["runtime"], ["override"], ["job"]],
    ),
    # The third place of this row, the plugin, has a test of its own.
    "env of the trainer": Row(
        [
            in_runtime(f"{TRAINER}/env", env("runtime")),
            in_container_override(NODE, "trainer", env=env("override")),
            in_job("trainer/env", env("job")),
        ],
        lambda jobset: entry(container_of(jobset, "trainer")["env"], "name", "A", "value"),
        ["runtime", "override", "job"],
    ),
    "envFrom of the trainer": scalar(
        "envFrom",
        in_runtime(f"{TRAINER}/envFrom", [{"configMapRef": {"name": "c", "optional": True}}]),
        in_container_override(NODE, "trainer", envFrom=[{"configMapRef": {"name": "c", "optional": False}}]),
        values=[
            [{"configMapRef": {"name": "c", "optional": True}}],
            [{"configMapRef": {"name": "c", "optional": False}}],
        ],
    ),
    "ports of the trainer": Row(
        [in_runtime(f"{TRAINER}/ports", [{"containerPort": 29400, "name": "mine"}]), plugin],
        lambda jobset: container_of(jobset, "trainer")["ports"],
        [None, [{"containerPort": 29400, "protocol": "TCP"}]],
    ),
    "resources of the trainer": Row(
        [
            in_runtime(f"{TRAINER}/resources", {"limits": {"cpu": 1, "memory": "1Gi"}}),
            in_job("trainer/resourcesPerNode", {"limits": {"cpu": 2}}),
        ],
        lambda jobset: container_of(jobset, "trainer")["resources"]["limits"]["cpu"],
        [1, 2],
    ),
    "number of nodes": Row(
        [
            in_runtime(f"template/spec/replicatedJobs/{NODE}/template/spec/parallelism", 2),
            in_runtime("mlPolicy/numNodes", 3),
            in_job("trainer/numNodes", 4),
        ],
        lambda jobset: {
            jobset["spec"]["replicatedJobs"][NODE]["template"]["spec"][name] for name in ("parallelism", "completions")
        },
        [{2}, {3}, {4}],
    ),
    "processes per node": Row(
        [in_runtime("mlPolicy/torch/numProcPerNode", 2), in_job("trainer/numProcPerNode", 3)],
        lambda jobset: entry(container_of(jobset, "trainer")["env"], "name", "PET_NPROC_PER_NODE", "value"),
        ["2", "3"],
    ),
    **storage_rows("dataset-initializer", INITIALIZER, 0, "datasetConfig"),
    **storage_rows("model-initializer", INITIALIZER, 1, "modelConfig/input"),
    **storage_rows("model-exporter", FINALIZER, 0, "modelConfig/output"),
    "command of other containers": scalar(
        "command",
        in_runtime(f"{SIDECAR}/command", ["runtime"]),
        in_container_override(NODE, "sidecar", command=["override"]),
        values=[["runtime"], ["override"]],
        name="sidecar",
    ),
    "args of other containers": scalar(
        "args",
        in_runtime(f"{SIDECAR}/args", ["runtime"]),
        in_container_override(NODE, "sidecar", args=["override"]),
        values=[["runtime"], ["override"]],
        name="sidecar",
    ),
    "env of other containers": Row(
        [in_runtime(f"{SIDECAR}/env", env("runtime")), in_container_override(NODE, "sidecar", env=env("override"))],
        lambda jobset: entry(container_of(jobset, "sidecar")["env"], "name", "A", "value"),
        ["runtime", "override"],
    ),
    "env of init containers": Row(
        [
            in_runtime(f"{POD}/spec/initContainers/0/env", env("runtime")),
            in_container_override(NODE, "init", "initContainers", env=env("override")),
        ],
        lambda jobset: entry(container_of(jobset, "init")["env"], "name", "A", "value"),
        ["runtime", "override"],
    ),
    "volumeMounts": Row(
        [
            in_runtime(f"{TRAINER}/volumeMounts", [{"mountPath": "/a", "name": "v", "subPath": "runtime"}]),
            in_container_override(
                NODE, "trainer", volumeMounts=[{"mountPath": "/a", "name": "v", "subPath": "override"}]
            ),
        ],
        lambda jobset: entry(container_of(jobset, "trainer")["volumeMounts"], "mountPath", "/a", "subPath"),
        ["runtime", "override"],
    ),
    "volumes": Row(
        [
            in_runtime(f"{POD}/spec/volumes", [{"name": "v", "hostPath": {"path": "/runtime"}}]),
            in_override(NODE, volumes=[{"name": "v", "hostPath": {"path": "/override"}}]),
        ],
        lambda jobset: entry(pod(jobset)["volumes"], "name", "v", "hostPath")["path"],
        ["/runtime", "/override"],
    ),
    "serviceAccountName": Row(
        [
            in_runtime(f"{POD}/spec/serviceAccountName", "runtime"),
            in_override(NODE, serviceAccountName="override"),
        ],
        lambda jobset: pod(jobset)["serviceAccountName"],
        ["runtime", "override"],
    ),
    "imagePullSecrets": Row(
        [
            in_runtime(f"{POD}/spec/imagePullSecrets", [{"name": "g"}]),
            in_override(NODE, imagePullSecrets=[{"name": "g"}, {"name": "h"}]),
        ],
        lambda jobset: [secret["name"] for secret in pod(jobset)["imagePullSecrets"]],
        [["g"], ["g", "h"]],
    ),
    "securityContext of pods": Row(
        [
            in_runtime(f"{POD}/spec/securityContext", {"runAsUser": 1, "fsGroup": 7}),
            in_override(NODE, securityContext={"runAsUser": 2}),
        ],
        lambda jobset: pod(jobset)["securityContext"]["runAsUser"],
        [1, 2],
    ),
    "securityContext of containers": Row(
        [
            in_runtime(f"{TRAINER}/securityContext", {"runAsUser": 1, "privileged": False}),
            in_container_override(NODE, "trainer", securityContext={"runAsUser": 2}),
        ],
        lambda jobset: container_of(jobset, "trainer")["securityContext"]["runAsUser"],
        [1, 2],
    ),
    "affinity": Row(
        [
            in_runtime(f"{POD}/spec/affinity", {"nodeAffinity": {PREFERRED: []}}),
            in_override(NODE, affinity={"nodeAffinity": {PREFERRED: [NODE_RULE]}}),
        ],
        lambda jobset: pod(jobset)["affinity"]["nodeAffinity"][PREFERRED],
        [[], [NODE_RULE]],
    ),
    "terminationGracePeriodSeconds": Row(
        [
            in_runtime(f"{POD}/spec/terminationGracePeriodSeconds", 30),
            in_override(NODE, terminationGracePeriodSeconds=0),
        ],
        lambda jobset: pod(jobset)["terminationGracePeriodSeconds"],
        [30, 0],
    ),
    "nodeSelector": Row(
        [
            in_runtime(f"{POD}/spec/nodeSelector", {"a": "runtime", "only": "x"}),
            in_override(NODE, nodeSelector={"a": "override"}),
        ],
        lambda jobset: pod(jobset)["nodeSelector"]["a"],
        ["runtime", "override"],
    ),
    "tolerations": Row(
        [
            in_runtime(f"{POD}/spec/tolerations", [{"key": "k", "effect": "NoSchedule", "value": "runtime"}]),
            in_override(NODE, tolerations=[{"key": "k", "effect": "NoSchedule", "value": "override"}]),
        ],
        lambda jobset: entry(pod(jobset)["tolerations"], "key", "k", "value"),
        ["runtime", "override"],
    ),
    "tolerations with `tolerationPolicy: Replace`": Row(
        [
            in_runtime(f"{POD}/spec/tolerations", [{"key": "k"}]),
            in_override(NODE, tolerations=[{"key": "l"}], tolerationPolicy="Replace"),
        ],
        lambda jobset: [toleration["key"] for toleration in pod(jobset)["tolerations"]],
        [["k"], ["l"]],
    ),
    "schedulingGates": Row(
        [
            in_runtime(f"{POD}/spec/schedulingGates", [{"name": "g"}]),
            in_override(NODE, schedulingGates=[{"name": "g"}, {"name": "h"}]),
        ],
        lambda jobset: [gate["name"] for gate in pod(jobset)["schedulingGates"]],
        [["g"], ["g", "h"]],
    ),
    **label_rows("labels"),
    **label_rows("annotations"),
    "suspend": Row(
        [in_runtime("template/spec/suspend", True), in_job("suspend", False)],
        lambda jobset: jobset["spec"]["suspend"],
        [None, False],
    ),
}

CASES = [
    pytest.param(row, chosen, id=f"{name}: {'+'.join(str(index + 1) for index in chosen)}")
    for name, row in ROWS.items()
    for size in range(1, len(row.layers) + 1)
    for chosen in itertools.combinations(range(len(row.layers)), size)
    # A layer whose own value never shows is always overwritten by the last.
    if row.values[chosen[-1]] is not None
]


@pytest.mark.parametrize(("row", "chosen"), CASES)
def test_the_strongest_wins(row: Row, chosen: tuple[int, ...]) -> None:
    """Of the places that say something, the one furthest right in the table is heard."""
    given = Input()
    for index in chosen:
        copy.copy(row.layers[index])(given)
    assert row.read(given.built()) == row.values[chosen[-1]]


def test_plugins_win_over_runtime_and_overrides() -> None:
    """What torchrun needs cannot be set by the runtime."""
    given = Input()
    in_runtime(f"{TRAINER}/env", [{"name": "PET_NNODES", "value": "7"}])(given)
    trainer = container_of(given.built(), "trainer")
    assert entry(trainer["env"], "name", "PET_NNODES", "value") == "1"


def test_merging_keeps_what_only_one_place_says() -> None:
    """Each entry of a merged list or map that only one place has is in the result."""
    given = Input()
    for layer in ROWS["env of the trainer"].layers:
        layer(given)
    names = [variable["name"] for variable in container_of(given.built(), "trainer")["env"]]
    assert {"ONLY_RUNTIME", "ONLY_OVERRIDE", "ONLY_JOB"} <= set(names)
    assert len(names) == len(set(names))


def test_every_row_of_the_document_is_tested() -> None:
    """The table in docs/trainjob.md and this one have the same rows, with the same number of places."""
    section = DOCUMENT.read_text().split("## Precedence")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    documented = {what: len(re.split(r", (?![^`]*`,)", places)) for what, _, places in rows[2:]}
    tested = {name: len(row.layers) + (name == "env of the trainer") for name, row in ROWS.items()}
    assert documented == tested
