"""The life of a pod without processes: what its status says next, and when.

Everything is derived from the object, so that a pod goes on where it was when the cluster is restarted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from trainer.kube.clock import parse_timestamp, timestamp
from trainer.kube.objects import Object, annotations_of, has_finished, is_being_deleted, name_of, namespace_of, uid_of
from trainer.workloads.pod_life import node_lost_since
from trainer_devcluster.kubelet.container_supervisor import format_duration
from trainer_devcluster.kubelet.network.pod_network import HOST_IP
from trainer_devcluster.kubelet.options import DEFAULT_RESTART_BACKOFF

_SIGTERM_CODE = 143
RUNS_FOR = "devcluster.trainer/runs-for"
"""How long each run of the containers lasts, as Go writes durations: `300ms`, `2s`, `1h30m`. Without it they end at
once, or never where they would be started again (`restartPolicy: Always`)."""
EXITS_WITH = "devcluster.trainer/exits-with"
"""The exit code of the containers. Default: 0."""
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)", re.ASCII)
_MAX_EXIT_CODE = 255


def next_status(pod: Object, now: datetime, address: str) -> tuple[Object | None, float | None]:
    """The course of a pod's life.

    Args:
        pod: as the API server has it.
        now: the time.
        address: what it has for `status.podIP`.

    Returns:
        The status to write now, None if nothing changes; and the seconds until there is another step, None if it takes
        something else than time.
    """
    status = pod.get("status") or {}
    if has_finished(pod):
        return None, None
    try:
        script = Script.of(pod)
    except ValueError as error:
        return _ended(pod, now) | {"phase": "Failed", "reason": "InvalidAnnotation", "message": str(error)}, None
    if is_being_deleted(pod):
        return _exited(pod, now, _SIGTERM_CODE, "Failed"), None
    containers = status.get("containerStatuses") or []
    if status.get("phase") != "Running" or not containers:
        return _running(pod, now, address), script.runs_for
    if node_lost_since(pod):
        return {"conditions": _conditions(pod, now, ready=True)}, None
    return _go_on(pod, containers, script, now, address)


def _go_on(
    pod: Object, containers: list[Object], script: Script, now: datetime, address: str
) -> tuple[Object | None, float | None]:
    state = containers[0].get("state") or {}
    if "waiting" in state:
        ended, count = containers[0]["lastState"]["terminated"]["finishedAt"], containers[0].get("restartCount") or 0
        left = _left(ended, DEFAULT_RESTART_BACKOFF.pause(count), now)
        return (None, left) if left > 0 else (_running(pod, now, address, restarts=count + 1), script.runs_for)
    if script.runs_for is None:
        return None, None
    left = _left(state["running"]["startedAt"], script.runs_for, now)
    if left > 0:
        return None, left
    policy = pod["spec"].get("restartPolicy") or "Always"
    if policy == "Always" or (policy == "OnFailure" and script.exit_code):
        pause = DEFAULT_RESTART_BACKOFF.pause(containers[0].get("restartCount") or 0)
        return _backing_off(pod, now, script.exit_code, pause), pause
    return _exited(pod, now, script.exit_code, "Failed" if script.exit_code else "Succeeded"), None


def _left(since: str, seconds: float, now: datetime) -> float:
    return (parse_timestamp(since) + timedelta(seconds=seconds) - now).total_seconds()


def _running(pod: Object, now: datetime, address: str, *, restarts: int = 0) -> Object:
    since, spec = timestamp(now), pod["spec"]
    state = {"running": {"startedAt": since}}
    before = _by_name(pod)
    status: Object = {
        "phase": "Running",
        "conditions": _conditions(pod, now, ready=True),
        "startTime": (pod.get("status") or {}).get("startTime") or since,
        "hostIP": HOST_IP,
        "hostIPs": [{"ip": HOST_IP}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "containerStatuses": [
            _container(pod, container, state, (before.get(container["name"]) or {}).get("lastState"), restarts)
            for container in spec["containers"]
        ],
    }
    if spec.get("initContainers"):
        done = _terminated(0, since, since)
        status["initContainerStatuses"] = [
            _container(pod, container, state if container.get("restartPolicy") == "Always" else done)
            for container in spec["initContainers"]
        ]
    return status


def _backing_off(pod: Object, now: datetime, code: int, pause: float) -> Object:
    name = f"pod={name_of(pod)}_{namespace_of(pod)}({uid_of(pod)})"
    before, statuses = _by_name(pod), []
    for container in pod["spec"]["containers"]:
        message = f"back-off {format_duration(pause)} restarting failed container={container['name']} {name}"
        state = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
        last = _terminated(code, _started(before, container), timestamp(now))
        count = (before.get(container["name"]) or {}).get("restartCount") or 0
        statuses.append(_container(pod, container, state, last, count))
    return {"conditions": _conditions(pod, now, ready=False), "containerStatuses": statuses}


def _exited(pod: Object, now: datetime, code: int, phase: str) -> Object:
    before, end = _by_name(pod), timestamp(now)
    statuses = [
        _container(
            pod,
            container,
            _terminated(code, _started(before, container) or end, end),
            (before.get(container["name"]) or {}).get("lastState"),
            (before.get(container["name"]) or {}).get("restartCount") or 0,
        )
        for container in pod["spec"]["containers"]
    ]
    reason = "PodCompleted" if phase == "Succeeded" else "PodFailed"
    sidecars = _stopped_sidecars(pod, end)
    conditions = _conditions(pod, now, ready=False, finished=reason)
    return {"phase": phase, "conditions": conditions, "containerStatuses": statuses} | sidecars


def _ended(pod: Object, now: datetime) -> Object:
    return {"startTime": timestamp(now), "conditions": _conditions(pod, now, ready=False, finished="PodFailed")}


def _stopped_sidecars(pod: Object, end: str) -> Object:
    statuses = (pod.get("status") or {}).get("initContainerStatuses") or []
    if not any("running" in entry["state"] for entry in statuses):
        return {}
    stopped = [
        entry | {"state": _terminated(0, entry["state"]["running"]["startedAt"], end), "started": False}
        if "running" in entry["state"]
        else entry
        for entry in statuses
    ]
    return {"initContainerStatuses": stopped}


def _container(pod: Object, container: Object, state: Object, last: Object | None = None, restarts: int = 0) -> Object:
    runs = "running" in state
    return {
        "name": container["name"],
        "image": container.get("image") or "",
        "imageID": "",
        "containerID": f"fake://{uid_of(pod)}/{container['name']}/{restarts}",
        "state": state,
        "lastState": last or {},
        "ready": runs or ((state.get("terminated") or {}).get("exitCode") == 0 and _is_init(pod, container)),
        "started": runs,
        "restartCount": restarts,
    }


def _is_init(pod: Object, container: Object) -> bool:
    return any(each["name"] == container["name"] for each in pod["spec"].get("initContainers") or [])


def _terminated(code: int, start: str, end: str) -> Object:
    reason = "Error" if code else "Completed"
    return {"terminated": {"exitCode": code, "reason": reason, "startedAt": start or end, "finishedAt": end}}


def _by_name(pod: Object) -> dict[str, Object]:
    return {entry["name"]: entry for entry in (pod.get("status") or {}).get("containerStatuses") or []}


def _started(before: dict[str, Object], container: Object) -> str:
    state = (before.get(container["name"]) or {}).get("state") or {}
    return str((state.get("running") or {}).get("startedAt") or "")


def _conditions(pod: Object, now: datetime, *, ready: bool, finished: str = "") -> list[Object]:
    """Those of the kubelet, since when they hold; conditions of others are kept."""
    present = {entry["type"]: entry for entry in (pod.get("status") or {}).get("conditions") or []}
    names = " ".join(container["name"] for container in pod["spec"]["containers"])
    unready: Object = {"status": "True"}
    if not ready:
        unready = {"status": "False", "reason": finished or "ContainersNotReady"}
        if not finished:
            unready["message"] = f"containers with unready status: [{names}]"
    initialized: Object = {"status": "True"} | ({"reason": finished} if finished == "PodCompleted" else {})
    wanted = {
        "PodReadyToStartContainers": {"status": "False" if finished else "True"},
        "Initialized": initialized,
        "Ready": unready,
        "ContainersReady": unready,
        "PodScheduled": {"status": "True"},
    }
    since = timestamp(now)
    ours = [
        {"type": kind, **fields, "lastProbeTime": None, "lastTransitionTime": _since(present.get(kind), fields, since)}
        for kind, fields in wanted.items()
    ]
    return [*ours, *(entry for kind, entry in present.items() if kind not in wanted)]


def _since(present: Object | None, fields: Object, now: str) -> str:
    if present is not None and present.get("status") == fields["status"]:
        return str(present.get("lastTransitionTime") or now)
    return now


@dataclass(frozen=True, slots=True)
class Script:
    """The scripted behaviour of a pod's containers."""

    runs_for: float | None
    """Seconds; None: until the pod is deleted."""
    exit_code: int

    @classmethod
    def of(cls, pod: Mapping[str, Any]) -> Script:
        """Read the annotations of a pod.

        Raises:
            ValueError: one of them makes no sense; the message names it.
        """
        annotations = annotations_of(pod)
        seconds: float | None = None
        if (given := annotations.get(RUNS_FOR)) is not None:
            seconds = _duration(given)
        elif (pod["spec"].get("restartPolicy") or "Always") != "Always":
            seconds = 0.0
        return cls(seconds, _exit_code(annotations.get(EXITS_WITH) or "0"))


def _duration(text: str) -> float:
    parts = _PART.findall(text)
    if "".join(number + unit for number, unit in parts) != text or not parts:
        raise ValueError(f"metadata.annotations[{RUNS_FOR}]: {text!r} is not a duration such as 300ms, 2s or 1h30m")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def _exit_code(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) > _MAX_EXIT_CODE:
        raise ValueError(f"metadata.annotations[{EXITS_WITH}]: {text!r} is not an exit code between 0 and 255")
    return int(text)
