"""How one run of a container is ended (Kubernetes documentation, "Pod Lifecycle": termination of Pods)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

from trainer.kube.clock import move_on_after
from trainer_devcluster.kubelet.container_action import LifecycleHook
from trainer_devcluster.kubelet.pod_spec import specified_grace_period
from trainer_devcluster.kubelet.termination import Termination

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from trainer_devcluster.kubelet.pod_api import RunningPod
    from trainer_devcluster.kubelet.sandbox import RunningContainer

SHORTEST_GRACE = 2.0
"""Seconds that a program has after SIGTERM even if its preStop hook has used up the grace period."""


class ContainerStop:
    """The end of a run, with its pod or by itself: preStop hook, SIGTERM, and SIGKILL after the grace period.

    Args:
        pod: the pod around the container.
        container: its specification.
        turn: when the pod ends, waits until it is the container's turn.

    Raises:
        ContainerCreateError: the hook names a port that the container does not have.
    """

    def __init__(self, pod: RunningPod, container: Mapping[str, Any], turn: Callable[[], Awaitable[None]]) -> None:
        self._pod = pod
        self._container = container
        self._turn = turn
        self._clock = pod.host.clock
        self._pre_stop = LifecycleHook.of(container, "preStop", pod.names.address)
        self._own = Termination(self._clock)
        self._message = ""
        self._is_under_way = False

    @property
    def was_requested(self) -> bool:
        """Whether it was for a reason of its own that the container had to end, and not with its pod."""
        return self._own.requested.is_set()

    def request(self, message: str, grace_period: float | None = None) -> None:
        """End the container, though its pod goes on.

        Args:
            message: what the event says.
            grace_period: seconds between SIGTERM and SIGKILL. Default: None, those of the pod.
        """
        self._message = message
        self._own.request(specified_grace_period(self._pod.pod) if grace_period is None else grace_period)

    async def carry_out(self, container: RunningContainer) -> None:
        """End the container when it has to; to be cancelled when it has ended."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._own.enforce)
            tasks.start_soon(self._with_the_pod, container)
            await self._own.requested.wait()
            await self._stop(container, self._own, self._message, None)

    async def _with_the_pod(self, container: RunningContainer) -> None:
        termination = self._pod.termination
        await termination.requested.wait()
        await self._stop(container, termination, f"Stopping container {self._container['name']}", self._turn)

    async def _stop(
        self,
        container: RunningContainer,
        termination: Termination,
        message: str,
        turn: Callable[[], Awaitable[None]] | None,
    ) -> None:
        if not self._is_under_way:
            self._is_under_way = True
            self._pod.announce("Normal", "Killing", message, container=self._container["name"])
            if self._pre_stop is not None and not termination.overdue.is_set():
                await termination.within_grace(lambda: self._run_hook(container))
            if turn is not None:
                await termination.within_grace(turn)
            asked = self._clock.monotonic()
            await container.terminate()
            await termination.overdue.wait()
            async with move_on_after(self._clock, asked + SHORTEST_GRACE - self._clock.monotonic()):
                await termination.at_once.wait()
        await termination.overdue.wait()
        await container.kill()

    async def _run_hook(self, container: RunningContainer) -> None:
        assert self._pre_stop is not None
        if not await self._pre_stop.carry_out(container, self._clock):
            name = self._container["name"]
            self._pod.announce("Warning", "FailedPreStopHook", "PreStopHook failed", container=name)
