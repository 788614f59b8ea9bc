"""One reason for which pods of a JobSet do not run, and how it is put to the author of the TrainJob."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from trainer.api.trainjob_status import ConditionType
from trainer.framework import PodProblem
from trainer.kube.objects import name_of
from trainer.plugins.jobset.missing_objects import fields_naming, missing_object
from trainer.plugins.jobset.requested import fields_asking, replicated_job_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet
    from typing import Any

    from trainer.api.trainjob import TrainJob
    from trainer.kube.objects import Object, ObjectKey
    from trainer.plugins.jobset.missing_objects import Named

_FIELDS_LIMIT = 3
"""How many of the fields that ask for something are shown."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A reason, with an example of what it keeps from running."""

    reason: str
    """One CamelCase word."""
    headline: str
    """How many pods, or what else, is concerned."""
    example: str
    """The object that is the example, such as `pod demo-node-0-0-abcde`."""
    message: str
    """What a component of the cluster says about it."""
    replicated_job: str = ""
    """Name of the replicated Job of the example. Defaults to unknown."""
    missing: Named | None = None
    """The object that is missing. Defaults to what the message says."""
    debounce: float = 0
    """Seconds for which this is no news. Defaults to none."""

    def problem(self, train_job: TrainJob, jobset: Object) -> PodProblem:
        """As people get to see it."""
        details = partial(self._details, train_job, jobset)
        return PodProblem(ConditionType.PENDING, self.reason, self.headline, details, self.debounce)

    def _details(self, train_job: TrainJob, jobset: Object) -> str:
        """The fields that ask for what is not there, and what is said about the example."""
        place = ", ".join(self._fields(train_job, jobset)[:_FIELDS_LIMIT])
        return ": ".join(part for part in (place, self.example, self.message) if part)

    def _fields(self, train_job: TrainJob, jobset: Object) -> list[str]:
        spec = train_job.spec.to_object()
        template = f"{train_job.spec.runtime_ref.kind}/{train_job.spec.runtime_ref.name} spec.template."
        missing = self.missing or missing_object(self.message)
        if missing is not None:
            own = fields_naming(missing, spec)
            return own or [f"{template}{field}" for field in fields_naming(missing, jobset.get("spec") or {})]
        for name, pods in pod_specs(jobset):
            if name == self.replicated_job:
                runtime = f"{template}spec.replicatedJobs[{name}].template.spec.template.spec"
                return fields_asking(self.message, name, pods, spec, runtime)
        return []


def cannot_start(
    reason: str, pods: AbstractSet[ObjectKey], example: Object, message: str, *, missing: Named | None = None,
    debounce: float = 0,
) -> Waiting:  # fmt: skip
    """Pods that exist and do not start, of which one is the example; see `Waiting`."""
    shown = f"{'' if len(pods) == 1 else 'for example '}pod {name_of(example)}"
    job = replicated_job_of(example)
    return Waiting(reason, f"{about(len(pods))} cannot start", shown, message, job, missing, debounce)


def pod_specs(jobset: Mapping[str, Any]) -> Iterator[tuple[str, Object]]:
    """The name of each replicated Job with the spec of its pods."""
    for job in (jobset.get("spec") or {}).get("replicatedJobs") or []:
        template = ((job.get("template") or {}).get("spec") or {}).get("template") or {}
        yield job.get("name") or "", template.get("spec") or {}


def about(count: int, thing: str = "pod") -> str:
    """A number that seldom changes: the highest power of two that there are at least."""
    return f"1 {thing}" if count == 1 else f"at least {1 << (count.bit_length() - 1)} {thing}s"
