"""Lifecycle hooks (Kubernetes documentation, "Container Lifecycle Hooks")."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import structlog

from trainer_devcluster.kubelet.container_action import action_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer.kube.clock import Clock
    from trainer_devcluster.kubelet.probing import Probeable
    from trainer_devcluster.kubelet.shim.spec import ProbeSpec

HookKind: TypeAlias = Literal["postStart", "preStop"]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LifecycleHook:
    """What is done when a container has started, or before it is asked to end."""

    kind: HookKind
    action: ProbeSpec | None
    """A command or a request, of which any answer will do. Default: None, a pause instead."""
    seconds: float = 0.0
    """Length of the pause. Default: 0."""

    @classmethod
    def of(cls, container: Mapping[str, Any], kind: HookKind, address: str) -> Self | None:
        """A hook of a container in a pod with this address; None if it has none of this kind.

        Raises:
            ContainerCreateError: it names a port that the container does not have.
        """
        given: Mapping[str, Any] | None = (container.get("lifecycle") or {}).get(kind)
        if not given:
            return None
        if given.get("sleep"):
            return cls(kind, None, given["sleep"].get("seconds") or 0)
        action = action_of(given, container, address, field=f"lifecycle.{kind}", timeout=0)
        return cls(kind, replace(action, any_status=True))

    async def carry_out(self, container: Probeable, clock: Clock) -> bool:
        """Do it to the end; whether it succeeded."""
        if self.action is None:
            await clock.sleep(self.seconds)
            return True
        found = await container.probe(self.action)
        if not found.success:
            # Not in an event, where the kubelet keeps what a hook prints out of, since it may be a secret.
            log.warning("lifecycle hook failed", hook=self.kind, error=found.message)
        return found.success
