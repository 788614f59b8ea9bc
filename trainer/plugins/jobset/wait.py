"""One reason for which pods of a JobSet do not run, and its message for the author of the TrainJob."""

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
"""Most fields that a message names."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A reason, with an example of the pods that it affects."""

    reason: str
    """One CamelCase word."""
    headline: str
    """Number of pods or other objects with this reason."""
    example: str
    """The object that is the example, such as `pod demo-node-0-0-abcde`."""
    message: str
    """The message of the component that reports it."""
    replicated_job: str = ""
    """Name of the replicated Job of the example. Defaults to unknown."""
    missing: Named | None = None
    """The missing object. Defaults to the one in the message."""
    debounce: float = 0
    """Seconds before it is reported. Defaults to none."""

    def problem(self, train_job: TrainJob, jobset: Object) -> PodProblem:
        """The text of the condition and event."""
        details = partial(self._details, train_job, jobset)
        return PodProblem(ConditionType.PENDING, self.reason, self.headline, details, self.debounce)

    def _details(self, train_job: TrainJob, jobset: Object) -> str:
        """The fields that request what is missing, and the message about the example."""
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
    """The count rounded down to a power of two, so that the message seldom changes."""
    return f"1 {thing}" if count == 1 else f"at least {1 << (count.bit_length() - 1)} {thing}s"
