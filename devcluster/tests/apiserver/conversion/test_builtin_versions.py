"""Built-in kinds that are served in two versions, through HTTP."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from devcluster.tests.apiserver.http_client import APPLY, MERGE, STRATEGIC

if TYPE_CHECKING:
    from devcluster.tests.apiserver.http_client import Api
    from trainer.kube.objects import Object

CORE_EVENTS = "/api/v1/namespaces/default/events"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
AUTOSCALERS_V1 = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
METRICS = "autoscaling.alpha.kubernetes.io/metrics"
ABOUT = {"kind": "Pod", "name": "p", "namespace": "default"}
MOMENT = "2026-11-21T20:00:00.000000Z"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def make_event(**changes: Any) -> Object:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "new"},
        "eventTime": MOMENT,
        "reportingController": "example.com/controller",
        "reportingInstance": "controller-0",
        "action": "Do",
        "reason": "Done",
        "regarding": ABOUT,
        "note": "hello",
        "type": "Normal",
        **changes,
    }


def make_core_event() -> Object:
    return {
        "metadata": {"name": "old"},
        "involvedObject": ABOUT,
        "message": "hello",
        "reason": "Done",
        "source": {"component": "c"},
        "type": "Normal",
        "count": 2,
        "firstTimestamp": "2026-11-21T20:00:00Z",
        "lastTimestamp": "2026-11-21T20:01:00Z",
    }


def make_autoscaler(name: str = "a", annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    return {
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"scaleTargetRef": target, "maxReplicas": 5, **spec},
    }


def spec_of(obj: Object) -> Object:
    """The fields of an event, without metadata and what is written although it is empty."""
    kept = {name: value for name, value in obj.items() if value not in ("", None, {})}
    return {name: value for name, value in kept.items() if name not in ("apiVersion", "kind", "metadata")}


async def test_new_event_in_both_versions(api: Api) -> None:
    """An event of events.k8s.io/v1 is the same object in core/v1, with the names that its fields have there."""
    assert (await api("POST", EVENTS, make_event())).code == 201
    core = (await api("GET", f"{CORE_EVENTS}/new")).body
    assert (core["apiVersion"], core["reportingComponent"], core["source"]) == ("v1", "example.com/controller", {})
    assert spec_of(core) == {
        "eventTime": MOMENT,
        "reportingComponent": "example.com/controller",
        "reportingInstance": "controller-0",
        "action": "Do",
        "reason": "Done",
        "involvedObject": ABOUT,
        "message": "hello",
        "type": "Normal",
    }
    assert (await api("DELETE", f"{EVENTS}/new")).code == 200
    assert (await api("GET", f"{CORE_EVENTS}/new")).code == 404


async def test_old_event_in_both_versions(api: Api) -> None:
    """What only core/v1 has is in the deprecated fields of events.k8s.io/v1."""
    assert (await api("POST", CORE_EVENTS, make_core_event())).code == 201
    event = (await api("GET", f"{EVENTS}/old")).body
    assert spec_of(event) == {
        "regarding": ABOUT,
        "note": "hello",
        "reason": "Done",
        "deprecatedSource": {"component": "c"},
        "type": "Normal",
        "deprecatedCount": 2,
        "deprecatedFirstTimestamp": "2026-11-21T20:00:00Z",
        "deprecatedLastTimestamp": "2026-11-21T20:01:00Z",
    }
    assert {"reportingController", "reportingInstance"}.isdisjoint(event)


async def test_events_are_selected_by_the_fields_of_their_version(api: Api) -> None:
    """Lists, watches and tables of events.k8s.io/v1 show what core/v1 has stored."""
    await api("POST", EVENTS, make_event())
    await api("POST", CORE_EVENTS, make_core_event())
    listed = (await api("GET", f"{EVENTS}?fieldSelector=regarding.name%3Dp")).body
    assert [(event["metadata"]["name"], event["note"]) for event in listed["items"]] == [
        ("new", "hello"), ("old", "hello"),
    ]  # fmt: skip
    assert (await api("GET", f"{EVENTS}?fieldSelector=regarding.name%3Dother")).body["items"] == []
    refused = await api("GET", f"{EVENTS}?fieldSelector=involvedObject.name%3Dp")
    assert (refused.code, refused.body["message"]) == (400, "field label not supported: involvedObject.name")
    watched = await api(
        "GET", f"{EVENTS}?watch=1&timeoutSeconds=1&fieldSelector=reportingController%3Dexample.com/controller"
    )
    assert (watched.body["type"], watched.body["object"]["regarding"]) == ("ADDED", ABOUT)
    assert len((await api("GET", EVENTS, Accept=TABLE)).body["rows"]) == 2


async def test_series_of_an_event(api: Api) -> None:
    """A reporter continues an event by its series and can change nothing else."""
    await api("POST", EVENTS, make_event())
    series = {"count": 2, "lastObservedTime": MOMENT}
    assert (await api("PATCH", f"{EVENTS}/new", {"series": series}, STRATEGIC)).code == 200
    assert (await api("GET", f"{CORE_EVENTS}/new")).body["series"] == series
    refused = await api("PATCH", f"{EVENTS}/new", {"note": "changed"}, MERGE)
    text = 'Event.events.k8s.io "new" is invalid: message: Invalid value: "changed": field is immutable'
    assert (refused.code, refused.body["message"]) == (422, text)


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        pytest.param({"eventTime": None}, ["eventTime"], id="no time"),
        pytest.param({"type": "Odd"}, ["type"], id="type"),
        pytest.param({"deprecatedCount": 1}, ["count"], id="deprecated count"),
        pytest.param({"deprecatedSource": {"host": "h"}}, ["source"], id="deprecated source"),
        pytest.param({"series": {"count": 1}}, ["series.count", "series.lastObservedTime"], id="series"),
        pytest.param({"action": ""}, ["action"], id="no action"),
        pytest.param({"reason": "r" * 129}, ["reason"], id="long reason"),
        pytest.param({"note": "n" * 1025}, ["message"], id="long note"),
        pytest.param({"reportingController": "-"}, ["reportingController"], id="reporter"),
        pytest.param({"regarding": {"kind": "Node", "name": "n"}}, [], id="about a node"),
    ],
)
async def test_new_events_are_checked(api: Api, changes: Object, fields: list[str]) -> None:
    """events.k8s.io/v1 takes complete events only, in complaints that name the fields of core/v1."""
    answer = await api("POST", EVENTS, make_event(**changes))
    assert [cause["field"] for cause in (answer.body.get("details") or {}).get("causes", [])] == fields
    assert answer.code == (422 if fields else 201)


async def test_autoscaler_of_v1(api: Api) -> None:
    """The CPU goal of autoscaling/v1 is a metric of v2, and 80 percent when nothing else is said."""
    stated = await api("POST", AUTOSCALERS_V1, make_autoscaler(targetCPUUtilizationPercentage=60))
    assert (stated.code, stated.body["status"]) == (201, {"currentReplicas": 0, "desiredReplicas": 0})
    await api("POST", AUTOSCALERS_V1, make_autoscaler("b"))
    listed = (await api("GET", AUTOSCALERS)).body["items"]
    goals = [metric["resource"]["target"] for item in listed for metric in item["spec"]["metrics"]]
    assert goals == [{"type": "Utilization", "averageUtilization": goal} for goal in (60, 80)]
    status = {"status": {"currentReplicas": 3, "desiredReplicas": 4, "currentCPUUtilizationPercentage": 70}}
    assert (await api("PATCH", f"{AUTOSCALERS_V1}/a/status", status, MERGE)).body["status"] == status["status"]
    measured = (await api("GET", f"{AUTOSCALERS}/a")).body["status"]["currentMetrics"]
    assert measured == [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 70}}}]
    cells = [
        (await api("GET", f"{path}/a", Accept=TABLE)).body["rows"][0]["cells"] for path in (AUTOSCALERS, AUTOSCALERS_V1)
    ]
    assert cells[0][:-1] == cells[1][:-1] == ["a", "Deployment/d", "cpu: 70%/60%", "1", 5, 3]


async def test_autoscaler_of_v2_survives_v1(api: Api) -> None:
    """What autoscaling/v1 has no fields for is in annotations, so that a client of v1 loses nothing."""
    metric = {"metric": {"name": "m", "selector": {"matchLabels": {"a": "b"}}}}
    about = {"apiVersion": "v1", "kind": "Service", "name": "s"}
    metrics = [
        {"type": "Pods", "pods": {**metric, "target": {"type": "AverageValue", "averageValue": "10"}}},
        {"type": "Object", "object": {**metric, "describedObject": about, "target": {"type": "Value", "value": "3"}}},
        {"type": "External", "external": {**metric, "target": {"type": "AverageValue", "averageValue": "1"}}},
        {
            "type": "ContainerResource",
            "containerResource": {
                "name": "cpu", "container": "c", "target": {"type": "Utilization", "averageUtilization": 5},
            },
        },
        {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
    ]  # fmt: skip
    behavior = {"scaleDown": {"selectPolicy": "Disabled"}}
    await api("POST", AUTOSCALERS, make_autoscaler(metrics=metrics, behavior=behavior))
    stored = (await api("GET", f"{AUTOSCALERS}/a")).body
    shown = (await api("GET", f"{AUTOSCALERS_V1}/a")).body
    assert shown["spec"]["targetCPUUtilizationPercentage"] == 50
    assert [metric["type"] for metric in json.loads(shown["metadata"]["annotations"][METRICS])] == [
        "Pods", "Object", "External", "ContainerResource", "Resource",
    ]  # fmt: skip
    changed = await api("PATCH", f"{AUTOSCALERS_V1}/a", {"spec": {"maxReplicas": 7}}, MERGE)
    assert changed.code == 200
    after = (await api("GET", f"{AUTOSCALERS}/a")).body
    assert after["spec"] == {**stored["spec"], "maxReplicas": 7}
    assert "annotations" not in after["metadata"]


@pytest.mark.parametrize(
    ("annotation", "complaint"),
    [
        pytest.param("x", "JSON is malformed", id="no JSON"),
        pytest.param("{}", "must be an array of objects", id="no array"),
        pytest.param("[1]", "must be an array of objects", id="numbers"),
        pytest.param('[{"type":"Pods","pods":{"metricName":3}}]', "cannot unmarshal number", id="wrong type"),
        pytest.param('[{"type":"Odd"}]', "Unsupported value", id="unknown metric"),
    ],
)
async def test_bad_annotations_of_autoscalers(api: Api, annotation: str, complaint: str) -> None:
    """Annotations that stand for fields are checked like fields."""
    answer = await api("POST", AUTOSCALERS_V1, make_autoscaler(annotations={METRICS: annotation}))
    assert answer.code == 422
    assert complaint in answer.body["message"]


async def test_bad_annotations_through_status(api: Api) -> None:
    """A status is not a way around the check."""
    await api("POST", AUTOSCALERS_V1, make_autoscaler())
    patch = {"metadata": {"annotations": {METRICS: "x"}}, "status": {"currentReplicas": 1}}
    answer = await api("PATCH", f"{AUTOSCALERS_V1}/a/status", patch, MERGE)
    assert (answer.code, (await api("GET", f"{AUTOSCALERS_V1}/a")).code) == (422, 200)


async def test_apply_in_v1(api: Api) -> None:
    """Server-side apply works in the version that is not stored."""
    applied = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", **make_autoscaler()}
    path = f"{AUTOSCALERS_V1}/a?fieldManager=m"
    assert (await api("PATCH", path, applied, APPLY)).code == 201
    again = await api("PATCH", path, applied, APPLY)
    assert (again.code, again.body["metadata"]["managedFields"][0]["apiVersion"]) == (200, "autoscaling/v1")


async def test_versions_share_their_storage_version(api: Api) -> None:
    """Discovery tells that both versions are of the same stored objects; v2 is preferred."""
    hashes = {}
    for path in ("/api/v1", "/apis/events.k8s.io/v1", "/apis/autoscaling/v1", "/apis/autoscaling/v2"):
        resources = (await api("GET", path)).body["resources"]
        hashes[path] = [
            r["storageVersionHash"] for r in resources if r["name"] in ("events", "horizontalpodautoscalers")
        ]
    assert hashes["/api/v1"] == hashes["/apis/events.k8s.io/v1"] == ["r2yiGXH7wu8="]
    assert hashes["/apis/autoscaling/v1"] == hashes["/apis/autoscaling/v2"]
    assert (await api("GET", "/apis/autoscaling")).body["preferredVersion"]["version"] == "v2"
