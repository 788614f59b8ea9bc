"""The order in which the containers of a pod start and end (Kubernetes documentation, "Sidecar Containers")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

from trainer_devcluster.kubelet.container_supervisor import ContainerSupervisor
from trainer_devcluster.kubelet.pod_spec import specified_grace_period

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anyio.abc import TaskGroup

    from trainer_devcluster.kubelet.container_record import ContainerRecord
    from trainer_devcluster.kubelet.pod_api import RunningPod
    from trainer_devcluster.kubelet.pod_status import PodRecord


class PodContainers:
    """Init containers one after the other, then the containers; sidecars run beside them and end last."""

    def __init__(self, pod: RunningPod, record: PodRecord) -> None:
        self._pod = pod
        self._record = record
        self._in_order: list[ContainerSupervisor] = []
        """Those that have been started, in this order."""

    async def run(self) -> None:
        """Run all containers until they have ended for good."""
        async with anyio.create_task_group() as sidecars:
            if await self._initialize(sidecars):
                await self._run_containers()
            # What still runs are sidecars, which nobody needs any more.
            self._pod.termination.request(specified_grace_period(self._pod.pod))

    async def _initialize(self, sidecars: TaskGroup) -> bool:
        """Whether the containers may be started."""
        containers = self._pod.pod["spec"].get("initContainers") or []
        for container, record in zip(containers, self._record.init, strict=True):
            supervisor = self._add(container, record)
            if not record.sidecar:
                await supervisor.supervise()
                if not record.has_succeeded:
                    return False
            else:
                sidecars.start_soon(supervisor.supervise)
                if not await self._pod.termination.unless_requested(supervisor.started):
                    return False
        return True

    async def _run_containers(self) -> None:
        supervisors = [
            self._add(container, record)
            for container, record in zip(self._pod.pod["spec"]["containers"], self._record.containers, strict=True)
        ]
        async with anyio.create_task_group() as tasks:
            for supervisor in supervisors:
                tasks.start_soon(supervisor.supervise)
                await supervisor.settled.wait()

    def _add(self, container: Mapping[str, Any], record: ContainerRecord) -> ContainerSupervisor:
        position = len(self._in_order)

        async def turn() -> None:
            for later in self._in_order[position + 1 :] if record.sidecar else ():
                await later.ended.wait()

        supervisor = ContainerSupervisor(self._pod, container, record, turn)
        self._in_order.append(supervisor)
        return supervisor
