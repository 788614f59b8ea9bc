"""PodGroups and Workloads of the Workload API."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from packages.devcluster.tests.apiserver.kinds.context import created, make_context
from trainer.kube.errors import ApiError
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.kinds import built_in_kinds
from trainer_devcluster.apiserver.kinds.workload import PodGroupStrategy, WorkloadStrategy
from trainer_devcluster.feature_gates import FeatureGates

GANG = {"gang": {"minCount": 3}}
RACK = {"topology": [{"key": "rack"}]}
CLAIM = {"name": "imex", "resourceClaimTemplateName": "imex"}
HIGH: Object = {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10}
ALL_GATES = FeatureGates(
    generic_workload=True, topology_aware_workload_scheduling=True, dra_workload_resource_claims=True
)


def group(**spec: Any) -> Object:
    return {"metadata": {"name": "gang", "namespace": "ns"}, "spec": {"schedulingPolicy": deepcopy(GANG), **spec}}


def workload(*templates: Object) -> Object:
    return {"metadata": {"name": "job"}, "spec": {"podGroupTemplates": list(templates)}}


@pytest.mark.parametrize(
    ("spec", "field", "detail"),
    [
        pytest.param({}, "", "", id="gang"),
        pytest.param({"schedulingPolicy": {"basic": {}}}, "", "", id="basic"),
        pytest.param({"schedulingPolicy": {}}, "schedulingPolicy", "must specify one of: `basic`, `gang`", id="none"),
        pytest.param(
            {"schedulingPolicy": {"basic": {}, **GANG}},
            "schedulingPolicy",
            "must specify exactly one of: `basic`, `gang`",
            id="both",
        ),
        pytest.param(
            {"schedulingPolicy": {"gang": {"minCount": 0}}},
            "schedulingPolicy.gang.minCount",
            "must be greater than or equal to 1",
            id="nobody",
        ),
        pytest.param(
            {"schedulingPolicy": {"gang": {}}},
            "schedulingPolicy.gang.minCount",
            "must be greater than or equal to 1",
            id="no number",
        ),
        pytest.param({"disruptionMode": {}}, "disruptionMode", "must specify one of: `all`, `single`", id="no mode"),
        pytest.param(
            {"workloadRef": {"workloadName": "job", "templateName": "a.b"}},
            "workloadRef.templateName",
            "a lowercase RFC 1123 label",
            id="dot in a name",
        ),
    ],
)
def test_specification(spec: Object, field: str, detail: str) -> None:
    """What is wrong with the specification of a PodGroup is named, in a template as well."""
    causes = PodGroupStrategy().validate(group(**spec), make_context())
    named = {"name": "trainer", **group(**spec)["spec"]}
    of_template = WorkloadStrategy().validate(workload(named), make_context())
    if not field:
        assert causes == of_template == []
        return
    assert [cause.path for cause in causes] == [f"spec.{field}"]
    assert [cause.path for cause in of_template] == [f"spec.podGroupTemplates[0].{field}"]
    assert detail in str(causes[0])


@pytest.mark.parametrize("obj", [{}, {"spec": None}], ids=["absent", "null"])
def test_no_specification(obj: Object) -> None:
    """What it lacks is named."""
    _, causes = created(PodGroupStrategy(), {"metadata": {"name": "gang"}, **obj})
    assert [cause.path for cause in causes] == ["spec.schedulingPolicy"]
    assert created(WorkloadStrategy(), {"metadata": {"name": "job"}, **obj})[1] == []


def test_templates() -> None:
    """Each has a name."""
    causes = WorkloadStrategy().validate(workload({"schedulingPolicy": GANG}), make_context())
    assert [cause.path for cause in causes] == ["spec.podGroupTemplates[0].name"]


@pytest.mark.parametrize(
    ("gates", "kept"),
    [pytest.param(FeatureGates(), set(), id="off"), pytest.param(ALL_GATES, {"claims", "constraints"}, id="on")],
)
def test_fields_of_gates(gates: FeatureGates, kept: set[str]) -> None:
    """A new object loses the fields of gates that are off in silence; one that has them keeps them."""
    fields = {"schedulingConstraints": RACK, "resourceClaims": [CLAIM]}
    pod_group, named = group(**fields), workload({"name": "trainer", "schedulingPolicy": GANG, **fields})
    PodGroupStrategy().prepare_for_create(pod_group, make_context(gates=gates))
    WorkloadStrategy().prepare_for_create(named, make_context(gates=gates))
    expected = {"schedulingPolicy"} | (fields.keys() if kept else set())
    assert pod_group["spec"].keys() == expected
    assert named["spec"]["podGroupTemplates"][0].keys() == expected | {"name"}
    changed, old = group(**fields), group(**fields)
    PodGroupStrategy().prepare_for_update(changed, old, make_context(gates=gates))
    assert changed == old


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        pytest.param({"schedulingPolicy": {"gang": {"minCount": 5}}}, [], id="least number"),
        pytest.param({"schedulingPolicy": {"basic": {}}}, ["spec.schedulingPolicy"], id="policy"),
        pytest.param({"disruptionMode": {"all": {}}}, ["spec.disruptionMode"], id="added"),
    ],
)
def test_changes(change: Object, fields: list[str]) -> None:
    """Nothing but the least number may change."""
    causes = PodGroupStrategy().validate_update(group(**change), group(), make_context())
    assert [cause.path for cause in causes] == fields


def test_admission() -> None:
    """A new PodGroup gets the priority of its class, and is protected until its pods have ended."""
    obj, causes = created(PodGroupStrategy(), group(priorityClassName="high"), HIGH)
    assert causes == []
    assert obj["spec"]["priority"] == 10
    assert obj["metadata"]["finalizers"] == ["scheduling.k8s.io/podgroup-protection"]
    text = r'podgroups\.scheduling\.k8s\.io "gang" is forbidden: .* must not be provided in PodGroup spec'
    with pytest.raises(ApiError, match=text):
        created(PodGroupStrategy(), group(priority=3), HIGH)


def test_kinds() -> None:
    """They are served where the gate is on."""
    extra = set(built_in_kinds(ALL_GATES)) - set(built_in_kinds(FeatureGates()))
    assert {kind.resource.qualified_name for kind in extra} == {
        "podgroups.scheduling.k8s.io",
        "workloads.scheduling.k8s.io",
    }
