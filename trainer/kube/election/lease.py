"""Lease record: who leads, as it is written in a coordination.k8s.io/v1 Lease."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Self

from trainer.kube.objects import Object


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """The part of a Lease's spec that elections use, with the meaning that client-go gives it."""

    holder: str
    """Identity of the leader; empty when the last one has released the lease."""
    duration_seconds: int
    """So long after it has seen the record change, a candidate must leave the lease to its holder."""
    acquired: str
    """When the holder became the leader (MicroTime). For people: clocks of other machines are never trusted."""
    renewed: str
    """When the holder last confirmed that it leads (MicroTime); a candidate only looks whether it changes."""
    transitions: int = 0
    """How often the lease has changed hands."""

    @classmethod
    def of(cls, lease: Mapping[str, Any]) -> Self:
        """Decode a stored Lease; fields that are absent or malformed are empty or 0."""
        spec = _spec(lease)

        def text(field: str) -> str:
            value = spec.get(field)
            return value if isinstance(value, str) else ""

        def number(field: str) -> int:
            value = spec.get(field)
            return max(value, 0) if isinstance(value, int) else 0

        return cls(
            holder=text("holderIdentity"),
            duration_seconds=number("leaseDurationSeconds"),
            acquired=text("acquireTime"),
            renewed=text("renewTime"),
            transitions=number("leaseTransitions"),
        )

    def held_by(self, identity: str, duration_seconds: int, now: datetime) -> Self:
        """The record with which `identity` confirms that it leads, or takes over."""
        if identity == self.holder:
            return replace(self, duration_seconds=duration_seconds, renewed=micro_time(now))
        return replace(
            self,
            holder=identity,
            duration_seconds=duration_seconds,
            acquired=micro_time(now),
            renewed=micro_time(now),
            transitions=self.transitions + 1,
        )

    def released(self, now: datetime) -> Self:
        """The record with which the leader lets others take over at once."""
        return replace(self, holder="", duration_seconds=1, acquired=micro_time(now), renewed=micro_time(now))

    def written_into(self, lease: Mapping[str, Any]) -> Object:
        """A copy of the Lease with this record; all that others have put into it stays."""
        spec = {
            **_spec(lease),
            "holderIdentity": self.holder,
            "leaseDurationSeconds": self.duration_seconds,
            "acquireTime": self.acquired,
            "renewTime": self.renewed,
            "leaseTransitions": self.transitions,
        }
        return {**lease, "spec": spec}


def _spec(lease: Mapping[str, Any]) -> Mapping[str, Any]:
    spec = lease.get("spec")
    return spec if isinstance(spec, dict) else {}


def micro_time(moment: datetime) -> str:
    """RFC 3339 in UTC with microseconds, as metav1.MicroTime is written."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
