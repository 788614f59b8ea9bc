"""Containers that fail and are started again, run out of memory, or do not pass their probes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trainer.explain.cause import Cause, Subject, kubectl, log_line, one_line
from trainer.explain.exits import exit_remedy
from trainer.explain.snapshot import Snapshot
from trainer.kube.clock import parse_timestamp
from trainer.kube.events.compact import last_seen
from trainer.kube.objects import Object, mapping_at, name_of
from trainer.kube.resource import PODS
from trainer.workloads.containers import container_statuses, has_ended

_OUT_OF_MEMORY = "OOMKilled"
_RECENT = 600
"""Seconds for which a container that runs again is not trusted: it may run out of memory again."""
CRASH_LOOP = "CrashLoopBackOff"
_FAILED = "ContainerFailed"


@dataclass(frozen=True, slots=True)
class Crash:
    """A container that has ended badly, in a pod that has not."""

    pod: Object
    container: str
    status: Object
    end: Object
    """How it ended the last time."""
    is_waiting: bool
    """Whether it does not run: it waits for its next start, or has ended for good."""

    @property
    def key(self) -> tuple[str, str]:
        """Pod and container."""
        return name_of(self.pod), self.container

    @property
    def is_final(self) -> bool:
        """Whether it is not started again, since its restart policy is Never."""
        return has_ended(self.pod, self.container)

    @property
    def is_of_previous_run(self) -> bool:
        """Whether the end is that of a run before the present one, whose log is the previous one."""
        return "terminated" not in (self.status.get("state") or {})


def crashes(snapshot: Snapshot) -> Iterator[Crash]:
    """The containers of present pods that have failed, and whose pods have not."""
    for pod in snapshot.pods:
        if (pod.get("status") or {}).get("phase") not in {"Pending", "Running"}:
            continue
        for status in container_statuses(pod):
            state, last = status.get("state") or {}, status.get("lastState") or {}
            end = state.get("terminated") or last.get("terminated") or {}
            if end.get("exitCode"):
                yield Crash(pod, str(status.get("name") or ""), status, end, is_waiting="running" not in state)


def present_crashes(snapshot: Snapshot) -> Iterator[tuple[str, Crash]]:
    """The crashes that hold the training, each with its reason; a container that runs again may have recovered."""
    for crash in crashes(snapshot):
        if crash.end.get("reason") == _OUT_OF_MEMORY and (crash.is_waiting or _is_recent(snapshot, crash)):
            yield _OUT_OF_MEMORY, crash
        elif crash.is_waiting:
            yield _FAILED if crash.is_final else CRASH_LOOP, crash


def container_causes(snapshot: Snapshot) -> Iterator[Cause]:
    """One cause for each reason, with the first container as its example; then probes that fail."""
    found: dict[str, list[Crash]] = {}
    for reason, crash in present_crashes(snapshot):
        found.setdefault(reason, []).append(crash)
    for reason, alike in found.items():
        yield _crash(snapshot, reason, alike)
    yield from _probes(snapshot)


def _is_recent(snapshot: Snapshot, crash: Crash) -> bool:
    finished = crash.end.get("finishedAt")
    return finished is not None and (snapshot.now - parse_timestamp(finished)).total_seconds() < _RECENT


def _crash(snapshot: Snapshot, reason: str, alike: list[Crash]) -> Cause:
    crash = alike[0]
    pod, container = crash.key
    code, said = crash.end.get("exitCode"), crash.end.get("reason") or ""
    others = f"; so do those of {len(alike) - 1} more" if len(alike) > 1 else ""
    text = f"container {container} exited with code {code}{f' ({said})' if said not in {'', 'Error'} else ''}"
    count = crash.status.get("restartCount") or 0
    again = f", and is started again with growing pauses (restart {count})" if crash.is_waiting else ""
    if crash.is_final:
        again = f", and is not started again{_still_running(crash)}"
    limit = _memory_limit(crash) if reason == _OUT_OF_MEMORY else None
    limited = f", whose limit of memory is {limit}" if limit else ", which has no limit of memory of its own"
    message = f"{text} in pod {pod}{'' if limit is None else limited}{again}{others}"
    log = snapshot.logs.get(crash.key) or str(crash.end.get("message") or "")[:4096].splitlines()[-10:]
    previous = ["--previous"] if crash.is_of_previous_run else []
    command = kubectl("logs", pod, "-c", container, *previous, namespace=snapshot.namespace)
    about = Subject(PODS.kind, pod, snapshot.namespace)
    remedy = exit_remedy(text, log, is_limited=limit != "")
    return Cause(reason, about, one_line(message), remedy, command, details=tuple(map(log_line, log)))


def _still_running(crash: Crash) -> str:
    """The containers that keep its pod from failing."""
    running = [
        str(each.get("name")) for each in container_statuses(crash.pod) if "running" in (each.get("state") or {})
    ]
    return f", while {', '.join(running)} still runs in the pod" if running else ""


def _memory_limit(crash: Crash) -> str | None:
    """The limit, empty if it has none, and None if that is not known."""
    spec = crash.pod.get("spec") or {}
    for each in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        if each.get("name") == crash.container:
            return str(mapping_at(each, "resources", "limits").get("memory") or "")
    return None


def _probes(snapshot: Snapshot) -> Iterator[Cause]:
    """The newest event about a probe of a container that runs and is not ready, or was killed for its probe."""
    for pod in snapshot.pods:
        status = pod.get("status") or {}
        started = (
            each
            for each in container_statuses(pod)
            if "running" in (each.get("state") or {}) or each.get("restartCount")
        )
        unready = [each for each in started if not each.get("ready")]
        if status.get("phase") != "Running" or not unready:
            continue
        events = snapshot.events_about(PODS.kind, name_of(pod), "Unhealthy")
        if not events:
            continue
        said = one_line(max(events, key=last_seen).get("message"))
        names = ", ".join(str(each.get("name")) for each in unready)
        remedy = "correct the probe in the runtime, or give the program more time (startupProbe, initialDelaySeconds)"
        command = kubectl("describe", "pod", name_of(pod), namespace=snapshot.namespace)
        about = Subject(PODS.kind, name_of(pod), snapshot.namespace)
        yield Cause(
            "Unhealthy",
            about,
            one_line(f"container {names} of pod {name_of(pod)} is not ready: {said}").rstrip(": "),
            remedy,
            command,
        )
        return
