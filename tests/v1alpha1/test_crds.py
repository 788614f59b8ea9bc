"""The CustomResourceDefinitions of v1alpha1, beside those of Kubeflow Trainer (Go)."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainer.kube.objects import Object, name_of
from trainer.v1alpha1.crds import crds, crds_yaml
from trainer_devcluster.apiserver.schema.structural import StructuralSchema

CONFIG = Path(__file__).parents[2] / "config" / "v1alpha1"
UPSTREAM = Path(__file__).parents[3] / "shared" / "peer" / "upstream"
DEFINITIONS = crds("v1alpha1")
released = pytest.mark.skipif(
    not UPSTREAM.is_dir(), reason="the files of Kubeflow Trainer (Go) are not beside the checkout"
)


def schema_of(definition: Object) -> Any:
    """The schema of the only version."""
    (version,) = definition["spec"]["versions"]
    assert (version["name"], version["storage"]) == ("v1alpha1", True)
    return version["schema"]["openAPIV3Schema"]


def test_config_holds_the_generated_crds() -> None:
    """`python -m hack.generate_crds` brings it up to date."""
    assert (CONFIG / "crd" / "trainer.kubeflow.org.yaml").read_text() == crds_yaml("v1alpha1")


LIMITS = ("minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum", "minProperties", "enum", "required")


def rules_and_defaults(schema: Any, path: str = "") -> Iterator[tuple[str, str, str]]:
    """The rules about values, their limits and the defaults, by path."""
    for limit in LIMITS if not path.startswith(".status") else ():  # which managers alone write
        found = schema.get(limit)
        if found is not None:
            yield path, limit, repr(sorted(found) if isinstance(found, list) else found)
    if "default" in schema:
        yield path, "default", repr(schema["default"])
    for rule in schema.get("x-kubernetes-validations", []):
        yield path, "rule", rule["message"]
    for name, inner in (schema.get("properties") or {}).items():
        yield from rules_and_defaults(inner, f"{path}.{name}")
    if isinstance(schema.get("items"), dict):
        yield from rules_and_defaults(schema["items"], f"{path}[]")


def upstream_definitions() -> list[Object]:
    """The definitions of Kubeflow Trainer (Go)."""
    return [yaml.load(file.read_text(), yaml.CSafeLoader) for file in sorted(UPSTREAM.glob("crds/*.yaml"))]


OF_KUBERNETES = (".valueFrom.", ".volumes[]", ".affinity.", ".securityContext.")
"""Parts whose schemas are those of Kubernetes; all of the pods in runtimes are."""


@released
@pytest.mark.parametrize("definition", DEFINITIONS, ids=name_of)
def test_rules_and_defaults_of_the_released_trainer(definition: Object) -> None:
    """TrainJobs and the policies of runtimes have its rules, with their texts, its limits and its defaults."""
    theirs = next(each for each in upstream_definitions() if name_of(each) == name_of(definition))
    ours = {*rules_and_defaults(schema_of(definition))}
    missing = {
        each
        for each in {*rules_and_defaults(schema_of(theirs))} - ours
        if not any(part in each[0] for part in OF_KUBERNETES) and not each[0].startswith(".spec.template.spec")
    }
    assert missing <= {
        # It stands one level higher, so that it can tell whether the TrainJob is suspended.
        (".spec.trainer", "rule", "field is immutable"),
        (".status.trainerStatus", "rule", "lastUpdatedTime is required when trainerStatus is present"),
        # With more than 128 KiB Linux starts no process.
        (".spec.trainer.command[]", "maxLength", "1048576"),
        (".spec.trainer.args[]", "maxLength", "1048576"),
    }


def upstream_objects() -> Iterator[Any]:
    """The examples and shipped runtimes of Kubeflow Trainer (Go)."""
    for file in sorted([*UPSTREAM.glob("examples/*.yaml"), *UPSTREAM.glob("runtimes/**/*.yaml")]):
        for obj in yaml.load_all(file.read_text(), yaml.CSafeLoader):
            if obj and obj.get("kind") in {"TrainJob", "TrainingRuntime", "ClusterTrainingRuntime"}:
                yield pytest.param(obj, id=f"{file.stem}-{name_of(obj)}")


def within(part: Any, whole: Any) -> bool:
    """Whether nothing of a value was lost in another, which may have more."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(name in whole and within(value, whole[name]) for name, value in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) == len(whole) and all(map(within, part, whole))
    return bool(part == whole)


@released
@pytest.mark.parametrize("obj", [*upstream_objects()])
def test_objects_of_the_released_trainer(obj: Object) -> None:
    """They are accepted and come back with nothing lost; defaults are added."""
    definition = next(each for each in DEFINITIONS if each["spec"]["names"]["kind"] == obj["kind"])
    schema = StructuralSchema.from_crd(schema_of(definition))
    stored = copy.deepcopy(obj)
    schema.prune(stored)
    schema.default(stored)
    assert schema.validate(stored) == []
    assert within(obj, stored)


def test_defaults_that_go_clients_need() -> None:
    """Without them Go's MPI plugin, which runs inside Kueue, panics or counts no pods."""
    definition = next(each for each in DEFINITIONS if each["spec"]["names"]["kind"] == "ClusterTrainingRuntime")
    obj: Object = {"spec": {"mlPolicy": {"mpi": {}}, "template": {"spec": {"replicatedJobs": [{"name": "node"}]}}}}
    StructuralSchema.from_crd(schema_of(definition)).default(obj)
    assert obj["spec"]["mlPolicy"]["mpi"] == {
        "mpiImplementation": "OpenMPI",
        "numProcPerNode": 1,
        "runLauncherAsNode": False,
        "sshAuthMountPath": "/root/.ssh",
    }
    assert obj["spec"]["template"]["spec"]["replicatedJobs"][0]["replicas"] == 1


def test_variables_that_go_clients_read() -> None:
    """They are texts: one integer would keep Kueue and the SDK from reading any runtime."""
    definition = next(each for each in DEFINITIONS if each["spec"]["names"]["kind"] == "TrainingRuntime")
    pods = {"containers": [{"name": "node", "image": "i", "env": [{"name": "A", "value": 1}]}]}
    job = {"name": "node", "template": {"spec": {"template": {"spec": pods}}}}
    obj = {"metadata": {"name": "r"}, "spec": {"template": {"spec": {"replicatedJobs": [job]}}}}
    errors = StructuralSchema.from_crd(schema_of(definition)).validate(obj)
    assert [str(each) for each in errors if ".env[0].value" in str(each)]
