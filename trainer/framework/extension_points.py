"""The extension points of the Pipeline Framework (KEP-2170): what a plugin can take part in.

A plugin is a class with a `name` and the methods of one or more extension points; it need not inherit from anything.
Plugins of one phase run in any order and must not depend on each other. They change `RuntimeInfo` only: never the
TrainJob, never the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from trainer.kube.selection import EVERYTHING, Selection

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainer.api.trainjob import TrainJob
    from trainer.api.trainjob_status import ConditionType, JobStatus
    from trainer.framework.component import Component
    from trainer.framework.review import AdmissionWarning
    from trainer.framework.runtime_info import RuntimeInfo
    from trainer.kube.field_errors import FieldError
    from trainer.kube.resource import Resource


@dataclass(frozen=True, slots=True)
class Watch:
    """Objects that a plugin wants to be cached."""

    resource: Resource
    selection: Selection = EVERYTHING
    triggers: bool = True
    """Whether a change makes the TrainJob that controls the object be looked at; otherwise it is cached for reading."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a TrainJob ended."""

    type: Literal[ConditionType.COMPLETE, ConditionType.FAILED]
    reason: str
    message: str


class Plugin(Protocol):
    """What all plugins have."""

    @property
    def name(self) -> str:
        """Unique name, for messages and configuration."""


@runtime_checkable
class WatchExtension(Plugin, Protocol):
    """Startup: names resources to watch. Every kind that the plugin builds or reads must be among them."""

    def watches(self) -> Iterable[Watch]:
        """The resources."""


@runtime_checkable
class CustomValidation(Plugin, Protocol):
    """PreExecution: says what is wrong with a TrainJob, when it is admitted and again before it is built."""

    def validate(
        self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob
    ) -> Iterable[FieldError | AdmissionWarning]:
        """The wrong fields of `new`, and what its author should know although it is accepted.

        Args:
            info: the runtime with the TrainJob's settings, before any plugin has changed it.
            old: what `new` replaces; None when it is new, and when it is built.
            new: the TrainJob.
        """


@runtime_checkable
class EnforceMLPolicy(Plugin, Protocol):
    """Build: tells the training containers what their framework needs to know (`spec.mlPolicy` of the runtime)."""

    @property
    def ml_policy_sources(self) -> frozenset[str]:
        """The members of `spec.mlPolicy` that the plugin serves, such as `torch`; empty for runtimes without one."""

    def enforce_ml_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Change `info` if its policy is one of ours."""


@runtime_checkable
class EnforcePodGroupPolicy(Plugin, Protocol):
    """Build: tells pods which gang they belong to (`spec.podGroupPolicy` of the runtime)."""

    @property
    def pod_group_policy_sources(self) -> frozenset[str]:
        """The members of `spec.podGroupPolicy` that the plugin serves."""

    def enforce_pod_group_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Change `info` if its policy is one of ours."""


@runtime_checkable
class PodNetwork(Plugin, Protocol):
    """Build: knows the DNS names of the pods."""

    def identify_pod_network(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Set `endpoints` of the pod sets; their number of pods is final by now."""


@runtime_checkable
class ComponentBuilder(Plugin, Protocol):
    """Build: makes objects of the finished RuntimeInfo."""

    def build(self, info: RuntimeInfo, train_job: TrainJob) -> Iterable[Component]:
        """The objects; the same ones for the same input."""


@runtime_checkable
class Suspension(Plugin, Protocol):
    """Build, when objects exist but their runtime is gone or no longer fits: `spec.suspend` works all the same."""

    def suspension(self, train_job: TrainJob) -> Iterable[Component]:
        """The objects that exist, to be suspended or resumed and not changed otherwise."""


@runtime_checkable
class TerminalCondition(Plugin, Protocol):
    """PostExecution: sees that the training has ended."""

    def terminal_condition(self, train_job: TrainJob) -> Outcome | None:
        """How it ended, with the reason and message of the child Jobs; None while it goes on."""


@runtime_checkable
class JobsStatus(Plugin, Protocol):
    """PostExecution: counts the child Jobs. At most one plugin does."""

    def jobs_status(self, train_job: TrainJob) -> list[JobStatus] | None:
        """The counts; None when there are no child Jobs to count."""
