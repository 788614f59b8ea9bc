"""A pod's status: made from what its containers do, and brought to the API server, whatever the state of the server.

Kubernetes documentation, "Pod Lifecycle".
"""

from __future__ import annotations

from dataclasses import dataclass, field

import anyio
import structlog

from trainer.kube.backoff import Backoff
from trainer.kube.clock import Clock
from trainer.kube.errors import KubeError
from trainer.kube.objects import Object, name_of, namespace_of
from trainer.workloads.containers import RestartPolicy
from trainer_devcluster.kubelet.container_record import ContainerRecord, Running, Terminated
from trainer_devcluster.kubelet.errors import PodGoneError
from trainer_devcluster.kubelet.network.pod_network import HOST_IP
from trainer_devcluster.kubelet.pod_api import PodApi


@dataclass(slots=True)
class PodRecord:
    """The kubelet's record of a pod."""

    init: list[ContainerRecord]
    containers: list[ContainerRecord]
    start_time: str
    pod_ip: str = ""
    has_sandbox: bool = False
    begins_anew: bool = False
    """Whether containers ended with the kubelet that ran them, and may be restarted."""
    cannot_go_on: bool = False
    """Whether they ended so, and none may be restarted."""
    is_ending: bool = False
    """Whether no container will be started again, whatever the restart policy says."""
    failure: tuple[str, str] | None = None
    """Reason and message if the pod as a whole has failed."""

    @classmethod
    def restore(cls, pod: Object, now: str) -> PodRecord:
        """The record of a pod that may have been run by another kubelet before.

        Its containers ended with that kubelet. If they may be restarted, the pod begins anew, with its init containers,
        as after a restart of a node.
        """
        spec, status = pod["spec"], pod.get("status") or {}
        present = {
            entry["name"]: entry
            for kind in ("initContainerStatuses", "containerStatuses")
            for entry in status.get(kind) or []
        }
        init = [
            ContainerRecord.restore_init(
                each, present.get(each["name"]), RestartPolicy.of(pod, each, init=True), now=now
            )
            for each in spec.get("initContainers") or []
        ]
        waiting = "PodInitializing" if init else "ContainerCreating"
        containers = [
            ContainerRecord.restore(
                each, present.get(each["name"]), RestartPolicy.of(pod, each), waiting=waiting, now=now
            )
            for each in spec["containers"]
        ]
        record = cls(init, containers, status.get("startTime") or now, status.get("podIP") or "")
        if any(container.is_lost for container in (*init, *containers)):
            record.begins_anew = any(container.policy.survives_kill for container in containers)
            record.cannot_go_on = not record.begins_anew
            for container in init if record.begins_anew else ():
                container.run_again("PodInitializing")
        return record

    @property
    def is_initialized(self) -> bool:
        """Whether the containers have been started, or may be."""
        started = any(container.has_run for container in self.containers)
        return started or all(container.is_initialized for container in self.init)

    @property
    def initialization_has_failed(self) -> bool:
        """Whether an init container has failed for good."""
        ended = [(each.policy, each.state.exit_code) for each in self.init if isinstance(each.state, Terminated)]
        return any(code != 0 and not policy.restarts(code) for policy, code in ended)

    def end(self, now: str, message: str) -> None:
        """No container runs any more, and none will; `message` is for those whose end nobody saw."""
        self.is_ending = True
        if not self.pod_ip:
            # The pod was refused: its containers are not lost, they were never meant to run.
            return
        if self.is_initialized or all(each.has_succeeded for each in self.init if not each.sidecar):
            for container in self.containers:
                container.end(now, message)
        for container in self.init:
            if container.has_run:
                container.end(now, message)

    def phase(self) -> str:
        """The pod's phase."""
        running = any(isinstance(container.state, Running) for container in (*self.init, *self.containers))
        if not running and self.failure is not None:
            return "Failed"
        if not running and self.is_ending:
            return "Succeeded" if all(container.has_succeeded for container in self.containers) else "Failed"
        if not self.is_initialized:
            return "Failed" if self.initialization_has_failed and not running else "Pending"
        if not all(container.has_run for container in self.containers):
            return "Pending"
        ended = [
            (container.policy, container.outcome.exit_code)
            for container in self.containers
            if container.outcome is not None
        ]
        if running or any(policy.restarts(code) for policy, code in ended):
            return "Running"
        return "Failed" if any(code for _, code in ended) else "Succeeded"


@dataclass(slots=True)
class StatusBuilder:
    """Turns records of one pod into its status, and remembers since when its conditions hold."""

    _conditions: dict[str, Object] = field(default_factory=dict)

    def build(self, pod: Object, record: PodRecord, now: str) -> Object:
        """The status to write; conditions of others in `pod` are kept."""
        phase = record.phase()
        status: Object = {
            "phase": phase,
            "conditions": self._update_conditions(pod, record, phase, now),
            "startTime": record.start_time,
            "hostIP": HOST_IP,
            "hostIPs": [{"ip": HOST_IP}],
            # The API server has decided on it when the pod was created.
            "qosClass": (pod.get("status") or {}).get("qosClass") or "BestEffort",
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


def _wanted_conditions(record: PodRecord, phase: str) -> list[Object]:
    incomplete = [] if record.is_initialized else [each.name for each in record.init if not each.is_initialized]
    if phase == "Succeeded":
        initialized = _condition("Initialized", True, "PodCompleted")
    else:
        message = f"containers with incomplete status: [{' '.join(incomplete)}]"
        initialized = _condition("Initialized", not incomplete, "ContainersNotInitialized", message)
    return [
        _condition("PodReadyToStartContainers", record.has_sandbox),
        initialized,
        *[_readiness(name, record, phase) for name in ("Ready", "ContainersReady")],
        _condition("PodScheduled", True),
    ]


def _readiness(name: str, record: PodRecord, phase: str) -> Object:
    if finished := {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase):
        return _condition(name, False, finished)
    needed = [*(each for each in record.init if each.sidecar), *record.containers]
    unready = [container.name for container in needed if not container.is_ready]
    message = f"containers with unready status: [{' '.join(unready)}]"
    return _condition(name, not unready, "ContainersNotReady", message)


def _condition(name: str, holds: bool, reason: str = "", message: str = "") -> Object:
    condition: Object = {"type": name, "status": "True" if holds else "False"}
    if reason and (not holds or reason == "PodCompleted"):
        condition["reason"] = reason
    if message and not holds:
        condition["message"] = message
    return condition


log = structlog.get_logger(__name__)

_RETRY = Backoff(initial=0.2, maximum=10.0)


class StatusWriter:
    """Writes the latest status of one pod; what was overtaken before it could be written is left out."""

    def __init__(self, api: PodApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._wanted: tuple[Object, Object] | None = None
        self._written: Object | None = None
        self._changed = anyio.Event()
        self._idle = anyio.Event()
        self._idle.set()

    def publish(self, pod: Object, status: Object) -> None:
        """Write this status soon, instead of any that still waits."""
        if self._wanted is None and status == self._written:
            return
        self._wanted = (pod, status)
        self._changed.set()
        if self._idle.is_set():
            self._idle = anyio.Event()

    def forget(self) -> bool:
        """Somebody else has written the status, so that the next one is written even if it is the same as the last.

        Returns:
            Whether there was one to be overwritten.
        """
        had_written, self._written = self._written is not None, None
        return had_written

    async def flush(self) -> None:
        """Wait until the last status is on the server, or cannot get there because the pod is gone."""
        await self._idle.wait()

    async def run(self) -> None:
        """Write until cancelled."""
        failures = 0
        while True:
            await self._changed.wait()
            if self._wanted is None:
                self._changed = anyio.Event()
                self._idle.set()
                continue
            pod, status = self._wanted
            if await self._write(pod, status):
                failures = 0
                if self._wanted is not None and self._wanted[1] is status:
                    self._wanted = None
            else:
                await self._clock.sleep(_RETRY.pause(failures))
                failures += 1

    async def _write(self, pod: Object, status: Object) -> bool:
        try:
            await self._api.write_status(pod, status)
        except PodGoneError:
            log.debug("pod is gone, its status is not written", namespace=namespace_of(pod), pod=name_of(pod))
        except KubeError as error:
            log.warning("could not write pod status, will retry", pod=name_of(pod), error=str(error))
            return False
        self._written = status
        return True
