"""Computes a pod's status from what its containers do (Kubernetes documentation, "Pod Lifecycle")."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trainer.devcluster.kubelet.container_record import ContainerRecord, Running, Terminated
from trainer.devcluster.kubelet.network.pod_network import HOST_IP
from trainer.devcluster.kubelet.pod_spec import all_containers, init_policy, restart_policy, should_restart
from trainer.kube.quantity import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainer.kube.objects import Object

FINISHED = frozenset({"Succeeded", "Failed"})


@dataclass(slots=True)
class PodRecord:
    """What the kubelet remembers of a pod."""

    init: list[ContainerRecord]
    containers: list[ContainerRecord]
    start_time: str
    pod_ip: str = ""
    has_sandbox: bool = False
    is_ending: bool = False
    """Whether no container will be started again, whatever the restart policy says."""
    failure: tuple[str, str] | None = None
    """Reason and message if the pod as a whole has failed."""

    @classmethod
    def restore(cls, pod: Object, now: str) -> PodRecord:
        """The record of a pod that may have been run by another kubelet before."""
        spec, status = pod["spec"], pod.get("status") or {}
        init = spec.get("initContainers") or []
        return cls(
            _restore(init, status.get("initContainerStatuses"), "PodInitializing", now),
            _restore(spec["containers"], status.get("containerStatuses"), _waiting_reason(bool(init)), now),
            status.get("startTime") or now,
        )

    def end(self, now: str, message: str) -> None:
        """No container runs any more, and none will; `message` is for those whose end nobody saw."""
        self.is_ending = True
        if not self.pod_ip:
            # The pod was refused: its containers are not lost, they were never meant to run.
            return
        for container in self.containers if self._is_initialized else self.init:
            if self._is_initialized or container.has_started:
                container.end(now, message)

    def phase(self, policy: str) -> str:
        """The pod's phase."""
        running = any(isinstance(container.state, Running) for container in (*self.init, *self.containers))
        if not running and self.failure is not None:
            return "Failed"
        if not running and self.is_ending:
            return "Succeeded" if self._is_initialized and all(map(_succeeded, self.containers)) else "Failed"
        if not self._is_initialized:
            return "Failed" if self._init_failed(policy) else "Pending"
        if not all(container.has_started for container in self.containers):
            return "Pending"
        codes = [container.outcome.exit_code for container in self.containers if container.outcome is not None]
        if running or any(should_restart(policy, code) for code in codes):
            return "Running"
        return "Failed" if any(codes) else "Succeeded"

    @property
    def _is_initialized(self) -> bool:
        return all(_succeeded(container) for container in self.init)

    def _init_failed(self, policy: str) -> bool:
        codes = [container.state.exit_code for container in self.init if isinstance(container.state, Terminated)]
        return any(code != 0 and not should_restart(init_policy(policy), code) for code in codes)


@dataclass(slots=True)
class StatusBuilder:
    """Turns records of one pod into its status, and remembers since when its conditions hold."""

    _conditions: dict[str, Object] = field(default_factory=dict)

    def build(self, pod: Object, record: PodRecord, now: str) -> Object:
        """The status to write; conditions of others in `pod` are kept."""
        policy = restart_policy(pod)
        phase = record.phase(policy)
        status: Object = {
            "phase": phase,
            "conditions": self._update_conditions(pod, record, phase, now),
            "startTime": record.start_time,
            "hostIP": HOST_IP,
            "hostIPs": [{"ip": HOST_IP}],
            "qosClass": (pod.get("status") or {}).get("qosClass") or quality_of_service(pod),
            "containerStatuses": [container.to_status(init=False) for container in record.containers],
        }
        if record.init:
            status["initContainerStatuses"] = [container.to_status(init=True) for container in record.init]
        if record.pod_ip:
            status |= {"podIP": record.pod_ip, "podIPs": [{"ip": record.pod_ip}]}
        if record.failure is not None:
            status |= {"reason": record.failure[0], "message": record.failure[1]}
        return status

    def _update_conditions(self, pod: Object, record: PodRecord, phase: str, now: str) -> list[Object]:
        present = (pod.get("status") or {}).get("conditions") or []
        before = {condition["type"]: condition for condition in present} | self._conditions
        wanted = _wanted_conditions(record, phase)
        for condition in wanted:
            old = before.get(condition["type"]) or {}
            since = old.get("lastTransitionTime") if old.get("status") == condition["status"] else None
            self._conditions[condition["type"]] = condition | {
                "lastProbeTime": None,
                "lastTransitionTime": since or now,
            }
        others = [condition for condition in present if condition["type"] not in self._conditions]
        return [*self._conditions.values(), *others]


def quality_of_service(pod: Object) -> str:
    """`status.qosClass`: Guaranteed, Burstable or BestEffort."""
    containers = all_containers(pod)
    requests = [_amounts(container, "requests") for container in containers]
    limits = [_amounts(container, "limits") for container in containers]
    if not any((*requests, *limits)):
        return "BestEffort"
    equal = all((request or limit) == limit for request, limit in zip(requests, limits, strict=True))
    complete = all(set(limit) == {"cpu", "memory"} for limit in limits)
    return "Guaranteed" if equal and complete else "Burstable"


def _restore(
    containers: Sequence[Mapping[str, Any]], statuses: Sequence[Mapping[str, Any]] | None, waiting: str, now: str
) -> list[ContainerRecord]:
    present = {status["name"]: status for status in statuses or []}
    return [
        ContainerRecord.restore(container, present.get(container["name"]), waiting=waiting, now=now)
        for container in containers
    ]


def _waiting_reason(has_init: bool) -> str:
    return "PodInitializing" if has_init else "ContainerCreating"


def _succeeded(container: ContainerRecord) -> bool:
    return isinstance(container.state, Terminated) and container.state.exit_code == 0


def _amounts(container: Mapping[str, Any], kind: str) -> dict[str, object]:
    amounts = (container.get("resources") or {}).get(kind) or {}
    return {name: parse_quantity(amounts[name]) for name in ("cpu", "memory") if amounts.get(name)}


def _wanted_conditions(record: PodRecord, phase: str) -> list[Object]:
    incomplete = [container.name for container in record.init if not _succeeded(container)]
    unready = [container.name for container in record.containers if not container.is_ready]
    finished = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase)
    if finished:
        initialized = _condition("Initialized", not incomplete, finished)
        readiness = [_condition(name, False, finished) for name in ("Ready", "ContainersReady")]
    else:
        message = f"containers with incomplete status: [{' '.join(incomplete)}]"
        initialized = _condition("Initialized", not incomplete, "ContainersNotInitialized", message)
        message = f"containers with unready status: [{' '.join(unready)}]"
        readiness = [
            _condition(name, not unready and not incomplete, "ContainersNotReady", message)
            for name in ("Ready", "ContainersReady")
        ]
    return [
        _condition("PodReadyToStartContainers", record.has_sandbox),
        initialized,
        *readiness,
        _condition("PodScheduled", True),
    ]


def _condition(name: str, holds: bool, reason: str = "", message: str = "") -> Object:
    condition: Object = {"type": name, "status": "True" if holds else "False"}
    if reason and (not holds or reason == "PodCompleted"):
        condition["reason"] = reason
    if message and not holds:
        condition["message"] = message
    return condition
