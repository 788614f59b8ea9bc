"""The phases of the Pipeline Framework (KEP-2170): Startup, PreExecution, Build and PostExecution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.api.trainjob_status import ConditionType
from trainer.framework.errors import BuildError
from trainer.framework.extension_points import (
    ComponentBuilder,
    CustomValidation,
    EnforceMLPolicy,
    EnforcePodGroupPolicy,
    JobsStatus,
    PodNetwork,
    Suspension,
    TerminalCondition,
    WatchExtension,
)
from trainer.framework.extraction import extract
from trainer.kube.field_errors import FieldError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trainer.api.trainingruntime import Runtime
    from trainer.api.trainjob import TrainJob
    from trainer.api.trainjob_status import JobStatus
    from trainer.framework.component import Component
    from trainer.framework.extension_points import Outcome, Watch
    from trainer.framework.registry import Registry
    from trainer.framework.runtime_info import RuntimeInfo


class Pipeline:
    """Runs the plugins of a registry, phase by phase; it does not talk to the cluster."""

    def __init__(self, registry: Registry) -> None:
        self._watch_extensions = [plugin for plugin in registry if isinstance(plugin, WatchExtension)]
        self._validations = [plugin for plugin in registry if isinstance(plugin, CustomValidation)]
        self._ml_policies = [plugin for plugin in registry if isinstance(plugin, EnforceMLPolicy)]
        self._pod_group_policies = [plugin for plugin in registry if isinstance(plugin, EnforcePodGroupPolicy)]
        self._pod_networks = [plugin for plugin in registry if isinstance(plugin, PodNetwork)]
        self._builders = [plugin for plugin in registry if isinstance(plugin, ComponentBuilder)]
        self._suspensions = [plugin for plugin in registry if isinstance(plugin, Suspension)]
        self._terminal_conditions = [plugin for plugin in registry if isinstance(plugin, TerminalCondition)]
        counters = [plugin for plugin in registry if isinstance(plugin, JobsStatus)]
        if len(counters) > 1:
            raise ValueError(f"only one plugin may count child Jobs, not {', '.join(p.name for p in counters)}")
        self._jobs_status = counters[0] if counters else None

    def watches(self) -> list[Watch]:
        """Startup: all resources that plugins want to be cached."""
        return [watch for plugin in self._watch_extensions for watch in plugin.watches()]

    def validate(self, train_job: TrainJob, runtime: Runtime, old: TrainJob | None = None) -> list[FieldError]:
        """PreExecution: what is wrong with the TrainJob; empty when nothing is."""
        try:
            return sorted(self._violations(extract(train_job, runtime), old, train_job))
        except BuildError as error:
            return list(error.errors)

    def build(self, train_job: TrainJob, runtime: Runtime) -> list[Component]:
        """Build: the objects that the TrainJob becomes.

        Raises:
            BuildError: TrainJob and runtime do not fit together.
        """
        info = extract(train_job, runtime)
        violations = sorted(self._violations(info, None, train_job))
        if violations:
            raise BuildError(*violations)
        for ml_policy in self._ml_policies:
            ml_policy.enforce_ml_policy(info, train_job)
        for pod_group_policy in self._pod_group_policies:
            pod_group_policy.enforce_pod_group_policy(info, train_job)
        for pod_network in self._pod_networks:
            pod_network.identify_pod_network(info, train_job)
        return [component for builder in self._builders for component in builder.build(info, train_job)]

    def suspension(self, train_job: TrainJob) -> list[Component]:
        """Build without a runtime: the objects that exist, to be suspended or resumed."""
        return [component for plugin in self._suspensions for component in plugin.suspension(train_job)]

    def outcome(self, train_job: TrainJob) -> Outcome | None:
        """PostExecution: how the TrainJob ended; a failure seen by any plugin outweighs a completion."""
        outcomes = [plugin.terminal_condition(train_job) for plugin in self._terminal_conditions]
        ended = [outcome for outcome in outcomes if outcome is not None]
        return min(ended, key=lambda outcome: outcome.type is not ConditionType.FAILED, default=None)

    def jobs_status(self, train_job: TrainJob) -> list[JobStatus] | None:
        """PostExecution: how the child Jobs are doing; None when there are none to count."""
        return self._jobs_status.jobs_status(train_job) if self._jobs_status else None

    def _violations(self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob) -> Iterator[FieldError]:
        yield from _unserved(
            f"{info.runtime} spec.mlPolicy",
            info.ml_policy.source,
            (plugin.ml_policy_sources for plugin in self._ml_policies),
        )
        yield from _unserved(
            f"{info.runtime} spec.podGroupPolicy",
            info.pod_group_policy.source,
            (plugin.pod_group_policy_sources for plugin in self._pod_group_policies),
        )
        for plugin in self._validations:
            yield from plugin.validate(info, old, new)


def _unserved(path: str, source: str | None, served: Iterable[frozenset[str]]) -> Iterator[FieldError]:
    """A policy that no plugin serves must not be ignored: the training would run without it."""
    if source is not None and source not in frozenset().union(*served):
        yield FieldError(f"{path}.{source}", "no plugin of this controller manager serves it; use another runtime")
