"""What the kubelet remembers of a container, in the terms of `status.containerStatuses`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from trainer.kube.objects import Object
from trainer.workloads.containers import ALWAYS, RestartPolicy, is_sidecar

LOST_EXIT_CODE = 137
LOST_REASON = "ContainerStatusUnknown"
_LOST = "The container could not be located when the pod was deleted.  The container used to be Running"


@dataclass(frozen=True, slots=True)
class Waiting:
    """The container does not run yet, or not now."""

    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    """The container runs."""

    started_at: str


@dataclass(frozen=True, slots=True)
class Terminated:
    """The container has ended."""

    exit_code: int
    reason: str
    finished_at: str
    started_at: str = ""
    signal: int = 0
    message: str = ""
    container_id: str = ""


State: TypeAlias = Waiting | Running | Terminated


@dataclass(slots=True)
class ContainerRecord:
    """State of one container of a pod."""

    name: str
    image: str
    state: State
    last: Terminated | None = None
    restart_count: int = 0
    container_id: str = ""
    policy: RestartPolicy = ALWAYS
    """Whether it is restarted when it ends. Default: Always, as in Kubernetes."""
    sidecar: bool = False
    """Whether it is an init container that runs beside the others. Default: False."""
    passes_startup: bool = True
    """Whether the startup probe, if there is one, says that the running container has started."""
    passes_probe: bool = True
    """Whether the readiness probe, if there is one, says that the running container is ready."""

    @classmethod
    def restore(
        cls,
        container: Mapping[str, Any],
        status: Mapping[str, Any] | None,
        policy: RestartPolicy,
        *,
        waiting: str,
        now: str,
    ) -> ContainerRecord:
        """The record of a container that a former process of the kubelet may have run.

        Args:
            container: its specification.
            status: its entry in the pod's status, if there is one. What runs by that has ended with the former kubelet.
            policy: whether it is restarted when it ends.
            waiting: reason while it has not been started.
            now: time of the end of what was lost so.
        """
        record = cls(container["name"], container.get("image") or "", Waiting(waiting), policy=policy)
        if status is None:
            return record
        record.restart_count = status.get("restartCount") or 0
        record.container_id = status.get("containerID") or ""
        record.last = _terminated(status.get("lastState") or {})
        state = status.get("state") or {}
        if "running" in state:
            since = state["running"].get("startedAt") or ""
            record.state = Terminated(
                LOST_EXIT_CODE, LOST_REASON, now, since, message=_LOST, container_id=record.container_id
            )
        elif "terminated" in state:
            record.state = _terminated(state) or record.state
        return record

    @classmethod
    def restore_init(
        cls,
        container: Mapping[str, Any],
        status: Mapping[str, Any] | None,
        policy: RestartPolicy,
        *,
        now: str,
    ) -> ContainerRecord:
        """The record of an init container; see `restore`."""
        record = cls.restore(container, status, policy, waiting="PodInitializing", now=now)
        record.sidecar = is_sidecar(container)
        return record

    @property
    def has_run(self) -> bool:
        """Whether it runs or has run."""
        return not isinstance(self.state, Waiting) or self.last is not None

    @property
    def is_lost(self) -> bool:
        """Whether it ended with the kubelet that ran it."""
        return isinstance(self.state, Terminated) and self.state.reason == LOST_REASON

    @property
    def has_succeeded(self) -> bool:
        """Whether it has ended with exit code 0."""
        return isinstance(self.state, Terminated) and self.state.exit_code == 0

    @property
    def is_started(self) -> bool:
        """Whether it runs and has got through its start."""
        return isinstance(self.state, Running) and self.passes_startup

    @property
    def is_initialized(self) -> bool:
        """For an init container: whether what comes after it may start."""
        return self.is_started if self.sidecar else self.has_succeeded

    @property
    def is_ready(self) -> bool:
        """Whether it runs and may be relied upon."""
        return self.is_started and self.passes_probe

    @property
    def outcome(self) -> Terminated | None:
        """How it ended last, if it is not running."""
        if isinstance(self.state, Terminated):
            return self.state
        return self.last if isinstance(self.state, Waiting) else None

    def run_again(self, waiting: str) -> None:
        """Forget that it has ended: it is to run once more, because its pod begins anew."""
        if isinstance(self.state, Terminated):
            self.last, self.state = self.state, Waiting(waiting)

    def end(self, now: str, message: str) -> None:
        """Settle on a terminated state for a container that will not run again and whose end nobody saw."""
        if isinstance(self.state, Terminated):
            return
        started_at = self.state.started_at if isinstance(self.state, Running) else ""
        lost = Terminated(LOST_EXIT_CODE, LOST_REASON, now, started_at, message=message)
        self.state = self.outcome or lost

    def to_status(self, *, init: bool) -> Object:
        """The entry of containerStatuses or initContainerStatuses."""
        status: Object = {
            "name": self.name,
            "image": self.image,
            "imageID": "",
            "restartCount": self.restart_count,
            "ready": self.has_succeeded if init and not self.sidecar else self.is_ready,
            "started": self.is_started,
            "state": _state_object(self.state),
            "lastState": _state_object(self.last) if self.last else {},
        }
        return status | _without_empty({"containerID": self.container_id})


def _state_object(state: State) -> Object:
    match state:
        case Waiting(reason, message):
            return {"waiting": _without_empty({"reason": reason, "message": message})}
        case Running(started_at):
            return {"running": {"startedAt": started_at}}
        case Terminated():
            optional = {
                "signal": state.signal,
                "message": state.message,
                "startedAt": state.started_at,
                "containerID": state.container_id,
            }
            required = {"exitCode": state.exit_code, "reason": state.reason, "finishedAt": state.finished_at}
            return {"terminated": required | _without_empty(optional)}


def _without_empty(fields: Object) -> Object:
    return {name: value for name, value in fields.items() if value}


def _terminated(state: Mapping[str, Any]) -> Terminated | None:
    fields = state.get("terminated")
    if not fields:
        return None
    return Terminated(
        fields.get("exitCode") or 0,
        fields.get("reason") or "",
        fields.get("finishedAt") or "",
        fields.get("startedAt") or "",
        fields.get("signal") or 0,
        fields.get("message") or "",
        fields.get("containerID") or "",
    )
