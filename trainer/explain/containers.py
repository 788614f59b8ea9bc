"""Containers that fail and are started again, run out of memory, or do not pass their probes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainer.explain.cause import Cause, Subject, kubectl, log_line, one_line
from trainer.explain.exits import exit_remedy
from trainer.explain.snapshot import Snapshot
from trainer.framework.plugin_api.failure import is_killed_child
from trainer.kube.clock import parse_timestamp
from trainer.kube.events.compact import last_seen
from trainer.kube.objects import Object, has_finished, is_being_deleted, name_of
from trainer.kube.resource import PODS
from trainer.workloads.container_end import OUT_OF_MEMORY, ContainerEnd, last_end
from trainer.workloads.containers import container_statuses, has_ended, memory_limit, unended_beside
from trainer.workloads.pod_life import CRASHING, pod_life

_RECENT = 600
"""Seconds for which a container that runs again is not trusted: it may run out of memory again."""
_FAILED = "ContainerFailed"


@dataclass(frozen=True, slots=True)
class Crash:
    """A container that has ended badly, in a pod that has not."""

    pod: Object
    container: str
    status: Object
    end: ContainerEnd
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
        if has_finished(pod) or is_being_deleted(pod):
            continue
        for status in container_statuses(pod):
            end = last_end(status)
            if end is not None and end.exit_code:
                yield Crash(pod, end.container, status, end, is_waiting="running" not in (status.get("state") or {}))


def present_crashes(snapshot: Snapshot) -> Iterator[tuple[str, Crash]]:
    """The crashes that hold the training, each with its reason; a container that runs again may have recovered."""
    for crash in crashes(snapshot):
        if crash.end.is_out_of_memory and (crash.is_waiting or _is_recent(snapshot, crash)):
            yield OUT_OF_MEMORY, crash
        elif crash.is_waiting:
            yield _FAILED if crash.is_final else CRASHING, crash


def container_causes(snapshot: Snapshot) -> Iterator[Cause]:
    """One cause for each reason, with the first container as its example; then probes that fail."""
    found: dict[str, list[Crash]] = {}
    for reason, crash in present_crashes(snapshot):
        found.setdefault(reason, []).append(crash)
    for reason, alike in found.items():
        yield _crash(snapshot, reason, alike)
    yield from _probes(snapshot)


def _is_recent(snapshot: Snapshot, crash: Crash) -> bool:
    finished = crash.end.finished
    return bool(finished) and (snapshot.now - parse_timestamp(finished)).total_seconds() < _RECENT


def _crash(snapshot: Snapshot, reason: str, alike: list[Crash]) -> Cause:
    crash = alike[0]
    pod, container = crash.key
    said = "" if crash.end.is_own else f" ({crash.end.reason})"
    others = f"; so do those of {len(alike) - 1} more" if len(alike) > 1 else ""
    text = f"container {container} exited with code {crash.end.exit_code}{said}"
    count = crash.status.get("restartCount") or 0
    again = f", and is started again with growing pauses (restart {count})" if crash.is_waiting else ""
    held_by = pod_life(crash.pod).held_by if crash.is_final else ()
    if crash.is_final:
        beside = ", ".join(unended_beside(crash.pod, container))
        again = f", and is not started again{f', while {beside} still runs in the pod' if beside else ''}"
    log = snapshot.logs.get(crash.key) or crash.end.message[:4096].splitlines()[-10:]
    limit = memory_limit(crash.pod, container)
    is_for_memory = reason == OUT_OF_MEMORY or crash.end.is_killed or is_killed_child(text, log)
    limited = f", whose limit of memory is {limit}" if limit else ", which has no limit of memory of its own"
    message = f"{text} in pod {pod}{limited if is_for_memory and limit is not None else ''}{again}{others}"
    previous = ["--previous"] if crash.is_of_previous_run else []
    command = kubectl("logs", pod, "-c", container, *previous, namespace=snapshot.namespace)
    about = Subject(PODS.kind, pod, snapshot.namespace)
    remedy = exit_remedy(text, log, is_limited=None if limit is None else bool(limit))
    if held_by:
        remedy = f"{remedy}; and {held_remedy(crash.pod, held_by)}"
    return Cause(reason, about, one_line(message), remedy, command, details=tuple(map(log_line, log)))


def held_remedy(pod: Object, held_by: Sequence[str]) -> str:
    """How containers that keep a pod come to end with the one that trains."""
    sidecars = [str(each.get("name")) for each in (pod.get("spec") or {}).get("initContainers") or []]
    if all(name in sidecars for name in held_by):
        grace = (pod.get("spec") or {}).get("terminationGracePeriodSeconds") or 30
        return f"wait: the kubelet asks {', '.join(held_by)} to end, and kills it after {grace} s"
    names = ", ".join(name for name in held_by if name not in sidecars)
    return (
        f"let {names} end with the training: in the runtime make it a native sidecar, which is an init container with "
        "restartPolicy: Always, or give it a way to end"
    )


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
