"""How often a JobSet has started all Jobs again, by cause: its failure policy counts failures, and disruptions not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from trainer.kube.objects import mapping_at, objects_in

_UNCOUNTED = "RestartJobSetAndIgnoreMaxRestarts"


@dataclass(frozen=True, slots=True)
class Restarts:
    """The restarts of a training."""

    disruptions: int
    """Those that the failure policy does not count: with our runtimes the disruptions."""
    failures: int
    limit: int
    """How many failures are allowed (`maxRestarts`)."""

    @classmethod
    def of_jobset(cls, jobset: Mapping[str, Any]) -> Self:
        """Read them of a JobSet; one of an old JobSet, which says less, is a failure."""
        policy = mapping_at(jobset, "spec", "failurePolicy")
        limit, total = _number(policy.get("maxRestarts")), restart_attempt(jobset)
        counted = _number(mapping_at(jobset, "status").get("restartsCountTowardsMax"))
        if not counted and all(rule.get("action") != _UNCOUNTED for rule in objects_in(policy.get("rules"))):
            counted = total
        return cls(total - counted, counted, limit)

    @classmethod
    def of_status(cls, restarts: Mapping[str, Any]) -> Self:
        """Read `status.restarts` of a TrainJob, which somebody else may have written."""
        names = ("disruptions", "failures", "maxRestarts")
        return cls(*(_number(restarts.get(name)) for name in names))

    def __bool__(self) -> bool:
        return self.disruptions > 0 or self.failures > 0

    def __str__(self) -> str:
        """Such as `2 disruptions, 1 failure of 3`, where 3 are allowed; empty without any."""
        counted = _count(self.failures, "failure") if self.failures or self.limit else ""
        counted += f" of {self.limit}" if self.limit else ""
        parts = (_count(self.disruptions, "disruption") if self.disruptions else "", counted)
        return ", ".join(part for part in parts if part) if self else ""


def restart_attempt(jobset: Mapping[str, Any]) -> int:
    """How often a JobSet has started all Jobs again, for any cause: the number of the attempt that its pods are of."""
    return _number(mapping_at(jobset, "status").get("restarts"))


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number < 2 else 's'}"


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
