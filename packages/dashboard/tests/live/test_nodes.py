"""What is shown of pods and events."""

from __future__ import annotations

import json
from typing import Any

import pytest

from packages.dashboard.tests.conftest import node_pod, train_job
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.objects import Object
from trainer_dashboard.live.nodes import EVENTS_SHOWN, EventRows, NodeRows


def event(name: str, **fields: Any) -> dict[str, Any]:
    shape = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": f"{name}.1", "namespace": "default"}}
    return shape | {"involvedObject": {"kind": "Pod", "name": name}, "lastTimestamp": "2026-01-01T00:00:05Z"} | fields


async def events_of(job: Object, events: list[Object], names: set[str]) -> list[Object]:
    """The events that are shown of a TrainJob."""
    named = [each | {"metadata": each["metadata"] | {"name": str(number)}} for number, each in enumerate(events)]
    return await EventRows().of(job, list(map(CachedObject.of, named)), names)


@pytest.mark.parametrize(
    ("involved", "is_shown"),
    [
        pytest.param("demo", True, id="itself"),
        pytest.param("demo-node-0-1-x7k2p", True, id="pod"),
        pytest.param("demo-2", False, id="another-train-job"),
        pytest.param("demo-2-node-0", False, id="job-of-another"),
        pytest.param("demo-3-node-0", True, id="no-such-train-job"),
    ],
)
async def test_owner(involved: str, is_shown: bool) -> None:
    """An event belongs to the TrainJob whose name fits best."""
    shown = await events_of(train_job(), [event(involved)], {"demo", "demo-2"})
    assert bool(shown) is is_shown


async def test_times() -> None:
    """Events of an earlier TrainJob of the same name are left out, and the newest come first, whatever their API."""
    events = [
        event("demo", lastTimestamp="2025-12-31T23:59:59Z"),
        event("demo", lastTimestamp=None, eventTime="2026-01-01T00:00:00.5Z", reason="b"),
        event("demo", lastTimestamp=None, series={"lastObservedTime": "2026-01-01T00:00:09.5Z"}, reason="c"),
        event("demo", lastTimestamp="2026-01-01T00:00:00Z", reason="a"),
    ]
    shown = await events_of(train_job(), events, {"demo"})
    assert shown[0]["reason"] == "c"
    assert sorted(each["reason"] for each in shown) == ["a", "b", "c"]
    assert len(await events_of(train_job(), [event("demo")] * 500, {"demo"})) == EVENTS_SHOWN


async def nodes_of(pods: list[Object]) -> list[Object]:
    """The nodes of a TrainJob with these pods."""
    found: list[Object] = json.loads(bytes(await NodeRows().of("demo", list(map(CachedObject.of, pods)))))
    return found


async def test_nodes() -> None:
    """Nodes are in their order, each with what it requests and why it does not run."""
    waiting = [{"name": "node", "restartCount": 2, "state": {"waiting": {"reason": "ImagePullBackOff"}}}]
    pods = [node_pod("demo", 10), node_pod("demo", 2, phase="Pending", containerStatuses=waiting)]
    beside = {"name": "sidecar", "resources": {"requests": {"cpu": "500m"}}}
    pods[1]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 8}, "requests": {"cpu": "2"}}
    pods[1]["spec"]["containers"].append(beside)
    first, second = await nodes_of(pods)
    assert (first["node"], first["reason"], first["restarts"]) == ("node-2", "ImagePullBackOff", 2)
    assert first["requests"] == {"nvidia.com/gpu": "8", "cpu": "2500m"}
    assert (second["node"], second["phase"], second["logs"]) == ("node-10", "Running", ["node"])


def ran(started: int, finished: int | None = None) -> dict[str, Any]:
    """A state of a container, with seconds of its first minute."""
    begin = f"2026-01-01T00:00:{started:02}Z"
    if finished is None:
        return {"running": {"startedAt": begin}}
    return {"terminated": {"startedAt": begin, "finishedAt": f"2026-01-01T00:00:{finished:02}Z"}}


@pytest.mark.parametrize(
    ("statuses", "seconds"),
    [
        pytest.param([], (None, None, None), id="not-started"),
        pytest.param([{"state": ran(5)}, {"state": ran(7)}], (5, None, None), id="runs"),
        pytest.param([{"state": ran(5, 9)}], (5, None, None), id="ended"),
        pytest.param([{"state": ran(20), "lastState": ran(5, 12), "restartCount": 1}], (5, 12, 20), id="restarted"),
        pytest.param([{"state": ran(20), "lastState": ran(9, 12), "restartCount": 4}], (3, 12, 20), id="often"),
        pytest.param(
            [{"state": {"waiting": {}}, "lastState": ran(5, 12), "restartCount": 1}], (5, 12, None), id="waits"
        ),
        pytest.param(
            [{"state": ran(4)}, {"state": ran(20), "lastState": ran(5, 12), "restartCount": 1}],
            (4, 12, 20),
            id="one-of-two",
        ),
    ],
)
async def test_runs(statuses: list[Object], seconds: tuple[int | None, ...]) -> None:
    """A restart within a pod does not change when it has started first."""
    initialized = {"type": "Initialized", "status": "True", "lastTransitionTime": "2026-01-01T00:00:03Z"}
    named = [{"name": f"container-{number}"} | status for number, status in enumerate(statuses)]
    (node,) = await nodes_of([node_pod("demo", containerStatuses=named, conditions=[initialized])])
    times = [None if second is None else f"2026-01-01T00:00:{second:02}Z" for second in seconds]
    assert [node["started"], node["stopped"], node["restarted"]] == times


async def test_unschedulable() -> None:
    """A pod that no node takes says so."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    (node,) = await nodes_of([node_pod("demo", phase="Pending", containerStatuses=[], conditions=[condition])])
    assert (node["reason"], node["logs"]) == ("Unschedulable", [])


EVICTED = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
ENDED = {"terminated": {"exitCode": 0, "finishedAt": "2026-01-01T00:00:05Z"}}


@pytest.mark.parametrize(
    ("deleted", "fields", "shown"),
    [
        pytest.param(True, {}, ("Terminating", ""), id="deleted"),
        pytest.param(True, {"conditions": [EVICTED]}, ("Terminating", "EvictionByEvictionAPI"), id="evicted"),
        pytest.param(
            False,
            {"phase": "Failed", "conditions": [EVICTED], "containerStatuses": []},
            ("Failed", "EvictionByEvictionAPI"),
            id="was evicted",
        ),
        pytest.param(
            False,
            {"containerStatuses": [{"name": "node", "state": ENDED}, {"name": "proxy", "state": {"running": {}}}]},
            ("Running", "EndedAndHeld"),
            id="kept by another container",
        ),
    ],
)
async def test_what_happens_to_a_pod(deleted: bool, fields: dict[str, Any], shown: tuple[str, str]) -> None:
    """Phase and reason say who has taken a pod away, or what keeps it."""
    pod = node_pod("demo", **fields)
    pod["spec"] |= {"restartPolicy": "Never", "containers": [{"name": "node"}, {"name": "proxy"}]}
    if deleted:
        pod["metadata"] |= {"deletionTimestamp": "2026-01-01T00:01:00Z", "deletionGracePeriodSeconds": 30}
    (node,) = await nodes_of([pod])
    assert (node["phase"], node["reason"]) == shown


def versioned(pod: Object, version: int) -> CachedObject:
    """A pod in a cache."""
    return CachedObject.of(pod | {"metadata": pod["metadata"] | {"resourceVersion": str(version)}})


async def test_pods_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many pages show thousands of pods, each version of a pod is read once, and what has gone is forgotten."""
    decode = CachedObject.decode
    read: list[str] = []

    def counted(pod: CachedObject) -> Object:
        read.append(pod.key.name)
        return decode(pod)

    monkeypatch.setattr(CachedObject, "decode", counted)
    rows = NodeRows()
    pods = [versioned(node_pod("demo", index), 1) for index in range(2000)]
    shown = [await rows.of("demo", pods) for _ in range(50)]
    assert len(read) == len(pods)
    assert len({bytes(each) for each in shown}) == 1
    assert len(json.loads(bytes(shown[0]))) == len(pods)
    pods[7] = versioned(node_pod("demo", 7, phase="Failed"), 2)
    assert json.loads(bytes(await rows.of("demo", pods)))[7]["phase"] == "Failed"
    assert read[len(pods) :] == ["demo-node-0-7-abcde"]
    assert bytes(await rows.of("demo", [])) == b"[]"
    await rows.of("demo", pods[:1])
    assert len(read) == len(pods) + 2


async def test_another_owner() -> None:
    """An event that was shown belongs to another TrainJob once there is one whose name fits better."""
    rows, events = EventRows(), [CachedObject.of(event("demo-2-node-0"))]
    assert len(await rows.of(train_job(), events, {"demo"})) == 1
    assert await rows.of(train_job(), events, {"demo", "demo-2"}) == []
