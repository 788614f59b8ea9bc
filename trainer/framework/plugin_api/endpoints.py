"""DNS names of the pods of a JobSet, made when somebody reads them: a training may have 100,000 nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload


@dataclass(frozen=True, slots=True)
class Endpoints(Sequence[str]):
    """The names of the pods of one replicated Job, in the order of Jobs and then of pods."""

    prefix: str
    """What all names begin with: `<JobSet>-<replicated Job>`."""
    domain: str
    """Subdomain of the pods, perhaps with the domain of namespace and cluster."""
    replicas: int
    """Jobs of the replicated Job."""
    pods: int
    """Pods of each Job."""

    def __len__(self) -> int:
        return self.replicas * self.pods

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...

    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return tuple(self[position] for position in range(*index.indices(len(self))))
        position = range(len(self))[index]
        return self.of(position // self.pods, position % self.pods)

    def of(self, replica: int, pod: int) -> str:
        """The name of one pod, whether or not there are so many."""
        return f"{self.prefix}-{replica}-{pod}.{self.domain}"
