"""The CustomResourceDefinition of OptimizationJob, beside that of Kubeflow Trainer (Go)."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.generate_crds import DIRECTORIES
from packages.sweeps.tests.samples import CATEGORICAL, REMOVED, UNIFORM, changed, large_sweep, sweep
from tests.api.test_crds import walk
from tests.definitions import schema_of
from trainer.api.crds import stream_of
from trainer.kube.objects import Object
from trainer.v1alpha1.crds import crds
from trainer.v1alpha1.discovery import Version
from trainer_devcluster.apiserver.schema.structural import StructuralSchema
from trainer_sweeps.api.definitions import definition
from trainer_sweeps.api.optimizationjob import OptimizationJob
from trainer_sweeps.api.spec import IMMUTABLE, ONE_OBJECTIVE

ROOT = Path(__file__).parents[4]
UPSTREAM = ROOT.parent / "shared" / "peer" / "optimization" / "trainer.kubeflow.org_optimizationjobs.yaml"
VERSIONS = pytest.mark.parametrize("version", [*DIRECTORIES])
released = pytest.mark.skipif(not UPSTREAM.exists(), reason="the CRD of Kubeflow Trainer is not beside the checkout")
TEMPLATE = ".spec.trainJobTemplate.spec"


@cache
def schema(version: Version | None) -> StructuralSchema:
    """What an API server makes of our definition; None: of that of Kubeflow Trainer (Go)."""
    return schema_of(upstream() if version is None else definition(version))


@cache
def upstream() -> Object:
    """The definition of Kubeflow Trainer (Go)."""
    loaded: Object = yaml.load(UPSTREAM.read_text(), yaml.CSafeLoader)
    return loaded


@VERSIONS
def test_config_holds_the_generated_definition(version: Version) -> None:
    """`config` is up to date; `python -m hack.generate_crds` makes it so."""
    assert (DIRECTORIES[version] / "optimizationjobs.yaml").read_text() == stream_of([definition(version)])


@VERSIONS
def test_columns(version: Version) -> None:
    """`kubectl get optimizationjob` prints NAME STATE PROGRESS % BEST AGE; the status has a subresource."""
    (served,) = definition(version)["spec"]["versions"]
    columns = [column["name"] for column in served["additionalPrinterColumns"] if not column.get("priority")]
    assert columns == ["State", "Progress %", "Best", "Age"]
    assert (served["name"], served["subresources"]) == (version, {"status": {}})


@VERSIONS
def test_every_field_is_described(version: Version) -> None:
    """`kubectl explain` has a sentence for each field."""
    for path, inner in walk(schema(version).document):
        if path and ".metadata" not in path[:9] and not path.endswith((".items", ".additionalProperties")):
            assert inner.get("description", "").endswith("."), path


@VERSIONS
def test_template(version: Version) -> None:
    """The template is that of the TrainJobs of the version, with all rules that judge one value."""

    def rules(found: Object) -> set[tuple[str, str]]:
        return {(path, rule["rule"]) for path, each in walk(found) for rule in each.get("x-kubernetes-validations", ())}

    job = crds(version)[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec = schema(version).document["properties"]["spec"]["properties"]["trainJobTemplate"]["properties"]["spec"]
    assert [path for path, _ in walk(spec)] == [path for path, _ in walk(job)]
    assert rules(spec) == {(path, rule) for path, rule in rules(job) if "oldSelf" not in rule}


KEYWORDS = (
    "type", "format", "default", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems",
    "maxItems", "required", "x-kubernetes-list-type", "x-kubernetes-list-map-keys",
)  # fmt: skip


def facts(found: Any, path: str = "") -> Iterator[tuple[str, str, str]]:
    """What a schema accepts and says, by path, but for the template, which is that of TrainJobs."""
    if path == TEMPLATE:
        return
    for keyword in KEYWORDS:
        if keyword in found:
            value = found[keyword]
            yield path, keyword, repr(sorted(value) if isinstance(value, list) else value)
    for rule in found.get("x-kubernetes-validations", ()):
        yield path, "rule", rule["message"]
    for name, inner in (found.get("properties") or {}).items():
        yield from facts(inner, f"{path}.{name}")
    if isinstance(found.get("items"), dict):
        yield from facts(found["items"], f"{path}[]")


CONDITION = ".status.conditions[]"


@released
def test_fields_of_the_released_trainer() -> None:
    """Types, defaults, bounds and texts of rules are those of Kubeflow Trainer (Go), but where there is more here."""
    theirs, ours = ({*facts(schema(version).document)} for version in (None, "v1alpha1"))
    written_by_managers = {each for each in theirs if each[0].startswith(CONDITION)}
    assert theirs - ours - written_by_managers == {
        (".spec.objectives", "maxItems", "1"),
        (".spec", "rule", "OptimizationJobSpec is immutable and cannot be updated after creation"),
        (".spec.searchAlgorithm", "rule", "exactly one of the fields in [random grid] must be set"),
        (".spec.trainJobTemplate.metadata", "rule", "name and namespace cannot be set in a template."),
    }
    texts = {(path, text) for path, keyword, text in ours if keyword == "rule"}
    assert {(".spec", IMMUTABLE), (".spec.objectives", ONE_OBJECTIVE)} <= texts


def verdict(found: StructuralSchema, obj: Object, old: Object | None = None) -> list[str]:
    """What an API server says about an object, which it prunes and defaults before, and so about its former self."""

    def stored(each: Object) -> Object:
        result = copy.deepcopy(each)
        found.prune(result)
        found.default(result)
        return result

    return [str(error) for error in found.validate(stored(obj), None if old is None else stored(old))]


def interval(kind: str, **fields: str) -> tuple[str, Any]:
    """The first parameter in an interval."""
    return "parameters.0.searchSpace", {kind: fields}


SWEEPS = [
    pytest.param([], True, id="default"),
    pytest.param([("numTrials", REMOVED), ("parallelTrials", REMOVED)], True, id="one-trial"),
    pytest.param([("searchAlgorithm", {"random": {"seed": 2**63 - 1}})], True, id="seed"),
    pytest.param([("searchAlgorithm", {"grid": {}}), ("parameters.0.searchSpace", CATEGORICAL)], True, id="grid"),
    pytest.param([interval("uniform", min="-1.5e3", max="0", type="Int")], True, id="integers"),
    pytest.param([interval("uniform", min="9", max="10")], True, id="bounds-by-value"),
    pytest.param([("trainJobTemplate.metadata", {"labels": {"a": "b"}, "finalizers": ["a/b"]})], True, id="metadata"),
    pytest.param([("objectives", [])], False, id="no-objective"),
    pytest.param([("objectives", [{"metric": "a"}, {"metric": "b"}])], False, id="two-objectives"),
    pytest.param([("objectives.0.metric", "")], False, id="no-metric"),
    pytest.param([("objectives.0.metric", "a" * 65)], False, id="long-metric"),
    pytest.param([("objectives.0.direction", "Least")], False, id="direction"),
    pytest.param([("parameters", [])], False, id="no-parameters"),
    pytest.param([("parameters.1.name", "lr")], False, id="parameter-twice"),
    pytest.param([("parameters.0.name", "a" * 65)], False, id="long-name"),
    pytest.param([("parameters.0.searchSpace", {})], False, id="no-space"),
    pytest.param([("parameters.0.searchSpace", UNIFORM | CATEGORICAL)], False, id="two-spaces"),
    pytest.param([interval("uniform", min="1", max="1")], False, id="equal-bounds"),
    pytest.param([interval("uniform", min="10", max="9")], False, id="bounds-in-wrong-order"),
    pytest.param([interval("logUniform", min="10", max="9")], False, id="logarithmic-bounds-in-wrong-order"),
    pytest.param([interval("logUniform", min="0", max="1")], False, id="log-of-zero"),
    pytest.param([interval("uniform", min="01", max="2")], False, id="leading-zero"),
    pytest.param([interval("uniform", min="+1", max="2")], False, id="plus"),
    pytest.param([interval("uniform", min="0", max="9" * 65)], False, id="long-bound"),
    pytest.param([interval("uniform", min="0")], False, id="no-bound"),
    pytest.param([interval("uniform", min="0", max="1", type="Double")], False, id="type"),
    pytest.param([("parameters.1.searchSpace.categorical.choices", [])], False, id="no-choice"),
    pytest.param([("parameters.1.searchSpace.categorical.choices", ["a", "a"])], False, id="choice-twice"),
    pytest.param([("parameters.1.searchSpace.categorical.choices", ["a" * 65])], False, id="long-choice"),
    pytest.param(
        [("parameters.1.searchSpace.categorical.choices", [*map(str, range(101))])], False, id="too-many-choices"
    ),
    pytest.param([("searchAlgorithm", {"grid": {}})], False, id="grid-of-an-interval"),
    pytest.param([("searchAlgorithm", {})], False, id="no-algorithm"),
    pytest.param([("searchAlgorithm", {"random": {}, "grid": {}})], False, id="two-algorithms"),
    pytest.param([("numTrials", 0)], False, id="no-trials"),
    pytest.param([("numTrials", 101)], False, id="too-many-trials"),
    pytest.param([("parallelTrials", 5)], False, id="parallel"),
    pytest.param([("parallelTrials", 0)], False, id="none-in-parallel"),
    pytest.param([("trainJobTemplate", REMOVED)], False, id="no-template"),
    pytest.param([("trainJobTemplate", {})], False, id="no-spec-of-trials"),
    pytest.param([("trainJobTemplate.spec", {})], False, id="no-runtime"),
    pytest.param([("trainJobTemplate.metadata", {"name": "a"})], False, id="name-of-a-template"),
]
RELEASED_SWEEPS = [
    pytest.param([("trainJobTemplate.spec.trainer", {"numProcPerNode": "two"})], False, id="processes"),
    pytest.param([("trainJobTemplate.spec.managedBy", "me")], False, id="managed-by-others"),
    pytest.param(
        [("trainJobTemplate.spec.initializer", {"model": {"storageUri": "file"}})], False, id="storage-of-a-template"
    ),
]
OUR_SWEEPS = [
    # The rule of Kubeflow Trainer (Go) names the field by a word that is reserved in CEL.
    pytest.param([("trainJobTemplate.metadata", {"namespace": "a"})], False, id="namespace-of-a-template"),
    pytest.param([("trainJobTemplate.spec.trainer", {"numNodes": 0})], False, id="no-nodes"),
    pytest.param([("searchAlgorithm", {"tpe": {"startupTrials": 5}})], True, id="tpe"),
    pytest.param([("searchAlgorithm", {"tpe": {}, "random": {}})], False, id="two-algorithms-of-ours"),
    pytest.param([("pruneAlgorithm", {"median": {}})], True, id="median"),
    pytest.param([("pruneAlgorithm", {})], False, id="no-pruner"),
    pytest.param([("pruneAlgorithm", {"median": {}, "asha": {}})], False, id="two-pruners"),
    pytest.param([("pruneAlgorithm", {"asha": {"reductionFactor": 1}})], False, id="reduction"),
    pytest.param([("maxFailedTrials", -1)], False, id="failures"),
]


@released
@pytest.mark.parametrize(("changes", "is_accepted"), [*SWEEPS, *RELEASED_SWEEPS])
def test_what_the_released_trainer_accepts(changes: list[tuple[str, Any]], is_accepted: bool) -> None:
    """What its CRD accepts ours accepts, and what it refuses ours refuses."""
    obj = sweep(*changes, version="v1alpha1")
    theirs, ours = (verdict(schema(version), obj) for version in (None, "v1alpha1"))
    assert (not theirs, not ours) == (is_accepted, is_accepted), (theirs, ours)


@pytest.mark.parametrize(("changes", "is_accepted"), [*SWEEPS, *OUR_SWEEPS])
def test_what_is_accepted(changes: list[tuple[str, Any]], is_accepted: bool) -> None:
    """The CRD of v2alpha1 accepts and refuses the same, and judges what is ours."""
    assert (not verdict(schema("v2alpha1"), sweep(*changes))) == is_accepted


@released
def test_what_is_written_for_the_released_trainer() -> None:
    """Its CRD keeps and accepts all of a sweep and its status that it knows, and drops the rest."""
    obj = sweep(("searchAlgorithm", {"random": {"seed": 1}}), ("suspend", False), version="v1alpha1")
    condition = {"type": "Created", "status": "True", "reason": "TrainJobsCreated", "message": ""}
    status = {
        "state": "Running",
        "conditions": [condition | {"lastTransitionTime": "2026-01-01T00:00:00Z"}],
        "trialCounts": {"running": 1, "succeeded": 1, "failed": 0, "pruned": 0},
        "trials": [{"number": 1, "state": "Succeeded", "value": "0.5", "parameterValues": ["0.1", "16"]}],
        "result": {"trainJobName": "demo-trial-1", "value": "0.5", "parameters": [{"name": "lr", "value": "0.1"}]},
    }
    stored = copy.deepcopy(obj | {"status": status})
    assert verdict(schema("v1alpha1"), stored) == verdict(schema(None), stored) == []
    schema(None).prune(stored)
    assert [*stored["status"]] == ["conditions", "result"]
    assert [*stored["status"]["result"]] == ["trainJobName", "parameters"]
    assert OptimizationJob.from_object(stored).spec.num_trials == 4


@VERSIONS
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param([("suspend", True)], "", id="suspend"),
        pytest.param([("ttlSecondsAfterFinished", 60)], "", id="ttl"),
        pytest.param([("numTrials", 5)], IMMUTABLE, id="numTrials"),
        pytest.param([("parallelTrials", 1)], IMMUTABLE, id="parallelTrials"),
        pytest.param([("maxFailedTrials", 1)], IMMUTABLE, id="maxFailedTrials"),
        pytest.param([("pruneAlgorithm", {"asha": {}})], IMMUTABLE, id="pruneAlgorithm"),
        pytest.param([("searchAlgorithm", {"random": {"seed": 1}})], IMMUTABLE, id="searchAlgorithm"),
        pytest.param([("parameters.1.name", "size")], IMMUTABLE, id="parameters"),
        pytest.param([("objectives.0.aggregate", "Min")], IMMUTABLE, id="objectives"),
        pytest.param([("trainJobTemplate.spec.trainer", {"image": "other"})], IMMUTABLE, id="template"),
    ],
)
def test_changes(version: Version, changes: list[tuple[str, Any]], expected: str) -> None:
    """Nothing but suspend and ttlSecondsAfterFinished can be changed, in either direction."""
    old = sweep(version=version)
    new = changed(old, *changes)
    for before, after in ((old, new), (new, old)):
        errors = verdict(schema(version), after, before)
        assert [IMMUTABLE in error for error in errors] == ([True] if expected else []), errors
    assert verdict(schema(version), old, old) == []


@pytest.mark.parametrize(
    ("name", "is_accepted"),
    [
        pytest.param("a" * 53, True, id="longest"),
        pytest.param("a" * 54, False, id="too-long"),
        pytest.param("1st", False, id="digit"),
        pytest.param("a.b", False, id="dot"),
    ],
)
def test_names(name: str, is_accepted: bool) -> None:
    """All trials can have names; a sweep that is stored under another name can be changed, as to lose a finalizer."""
    obj = sweep(name=name)
    assert (not verdict(schema("v2alpha1"), obj)) == is_accepted
    assert verdict(schema("v2alpha1"), changed(obj, ("suspend", True)), obj) == []


@VERSIONS
def test_the_largest_sweep(version: Version) -> None:
    """100 parameters of 100 choices are accepted, within the budget that the API server has for rules."""
    obj = large_sweep(100, 100) | {"apiVersion": f"trainer.kubeflow.org/{version}"}
    assert verdict(schema(version), obj) == []
    assert verdict(schema(version), changed(obj, ("suspend", True)), obj) == []
