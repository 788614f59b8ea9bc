"""Rows of pods and jobs in tables, after the server-side printers of Kubernetes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from trainer.kube.objects import (
    Object,
    find_condition,
    has_finished,
    is_being_deleted,
    is_condition_true,
    metadata_of,
    name_of,
)
from trainer_devcluster.apiserver.objects.durations import age, between

NONE: Final = "<none>"


def pod_cells(pod: Object, now: datetime) -> list[Any]:
    """Name, ready, status, restarts, age; wide: IP, node, nominated node, readiness gates."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    summary = _PodSummary(pod)
    restarts = str(summary.restarts)
    if summary.restarts and summary.last_restart:
        restarts += f" ({age(summary.last_restart, now)} ago)"
    return [
        name_of(pod),
        f"{summary.ready}/{summary.total}",
        summary.reason,
        restarts,
        age(metadata_of(pod).get("creationTimestamp"), now),
        status.get("podIP") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _readiness_gates(pod),
    ]


def pod_conditions(pod: Object) -> list[Object]:
    """The row condition by which clients can hide finished pods."""
    if not has_finished(pod):
        return []
    phase = pod["status"]["phase"]
    message = "The pod has completed successfully." if phase == "Succeeded" else "The pod failed."
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}]


def job_cells(job: Object, now: datetime) -> list[Any]:
    """Name, status, completions, duration, age; wide: containers, images, selector."""
    spec, status = job.get("spec") or {}, job.get("status") or {}
    containers = ((spec.get("template") or {}).get("spec") or {}).get("containers") or []
    start, end = status.get("startTime"), status.get("completionTime")
    duration = "" if not start else between(start, end) if end else age(start, now)
    return [
        name_of(job),
        _job_status(job),
        _completions(spec, status.get("succeeded") or 0),
        duration,
        age(metadata_of(job).get("creationTimestamp"), now),
        ",".join(container.get("name", "") for container in containers),
        ",".join(container.get("image", "") for container in containers),
        label_selector(spec.get("selector")),
    ]


def label_selector(selector: Any) -> str:
    """A LabelSelector object as text; `<none>` when it selects nothing."""
    if not selector:
        return NONE
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for requirement in selector.get("matchExpressions") or ():
        key, operator, values = requirement.get("key"), requirement.get("operator"), requirement.get("values") or ()
        if operator in ("Exists", "DoesNotExist"):
            parts.append(key if operator == "Exists" else f"!{key}")
        else:
            parts.append(f"{key} {str(operator).lower()} ({','.join(sorted(values))})")
    return ",".join(parts) or NONE


class _PodSummary:
    """What all containers of a pod come to, in the words of the STATUS column."""

    def __init__(self, pod: Object) -> None:
        self.spec, self.status = pod.get("spec") or {}, pod.get("status") or {}
        self.reason: str = self.status.get("reason") or self.status.get("phase") or ""
        self.ready = self.restarts = 0
        self.last_restart = ""
        self.sidecars = {
            container.get("name")
            for container in self.spec.get("initContainers") or ()
            if container.get("restartPolicy") == "Always"
        }
        self.total = len(self.spec.get("containers") or ()) + len(self.sidecars)
        scheduled = find_condition(pod, "PodScheduled")
        if scheduled is not None and scheduled.get("reason") == "SchedulingGated":
            self.reason = "SchedulingGated"
        initializing = self._look_at_init_containers()
        if not initializing or is_condition_true(pod, "Initialized"):
            self._look_at_containers(ready=is_condition_true(pod, "Ready"))
        if is_being_deleted(pod):
            if self.status.get("reason") == "NodeLost":
                self.reason = "Unknown"
            elif not has_finished(pod):
                self.reason = "Terminating"

    def _look_at_init_containers(self) -> bool:
        """Whether one of them has not finished."""
        for position, container in enumerate(self.status.get("initContainerStatuses") or ()):
            self._count_restarts(container)
            terminated = (container.get("state") or {}).get("terminated")
            if terminated and not terminated.get("exitCode"):
                continue
            if container.get("name") in self.sidecars and container.get("started"):
                self.ready += bool(container.get("ready"))
                continue
            self.reason = f"Init:{self._init_reason(container, position)}"
            return True
        return False

    def _init_reason(self, container: Object, position: int) -> str:
        state = container.get("state") or {}
        waiting = (state.get("waiting") or {}).get("reason")
        if state.get("terminated"):
            return _termination(state["terminated"])
        if waiting and waiting != "PodInitializing":
            return str(waiting)
        return f"{position}/{len(self.spec.get('initContainers') or ())}"

    def _look_at_containers(self, *, ready: bool) -> None:
        self.restarts, self.last_restart = 0, ""
        self._count_all_restarts()
        running = False
        for container in reversed(self.status.get("containerStatuses") or ()):
            state = container.get("state") or {}
            waiting = (state.get("waiting") or {}).get("reason")
            if waiting:
                self.reason = waiting
            elif state.get("terminated"):
                self.reason = _termination(state["terminated"])
            elif container.get("ready") and state.get("running") is not None:
                running = True
                self.ready += 1
        if self.reason == "Completed" and running:
            self.reason = "Running" if ready else "NotReady"

    def _count_all_restarts(self) -> None:
        for container in self.status.get("initContainerStatuses") or ():
            if container.get("name") in self.sidecars:
                self._count_restarts(container)
        for container in self.status.get("containerStatuses") or ():
            self._count_restarts(container)

    def _count_restarts(self, container: Object) -> None:
        self.restarts += container.get("restartCount") or 0
        finished = ((container.get("lastState") or {}).get("terminated") or {}).get("finishedAt") or ""
        self.last_restart = max(self.last_restart, finished)


def _termination(terminated: Object) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode') or 0}"


def _readiness_gates(pod: Object) -> str:
    gates: Iterable[Object] = (pod.get("spec") or {}).get("readinessGates") or []
    names = [gate.get("conditionType", "") for gate in gates]
    return f"{sum(is_condition_true(pod, name) for name in names)}/{len(names)}" if names else NONE


def _job_status(job: Object) -> str:
    for condition in ("Complete", "Failed"):
        if is_condition_true(job, condition):
            return condition
    if is_being_deleted(job):
        return "Terminating"
    for condition in ("Suspended", "FailureTarget"):
        if is_condition_true(job, condition):
            return condition
    return "Running"


def _completions(spec: Object, succeeded: int) -> str:
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"
