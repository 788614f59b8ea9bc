"""The phases of the Pipeline Framework (KEP-2170): Startup, PreExecution, Build and PostExecution."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from trainer.api.trainjob_status import ConditionType
from trainer.framework.errors import BuildError, PluginError
from trainer.framework.extension_points import (
    ComponentBuilder,
    CustomValidation,
    EnforceMLPolicy,
    EnforcePodGroupPolicy,
    Impediments,
    JobsStatus,
    PodNetwork,
    StatusConditions,
    Suspension,
    TerminalCondition,
    WatchExtension,
)
from trainer.framework.extraction import extract
from trainer.framework.review import Review
from trainer.framework.trainer_step import apply_trainer_env
from trainer.kube.errors import ConfigurationError
from trainer.kube.field_errors import FieldError, forbidden

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from trainer.api.trainingruntime import Runtime
    from trainer.api.trainjob import TrainJob
    from trainer.api.trainjob_status import JobStatus
    from trainer.framework.component import Component
    from trainer.framework.extension_points import Impediment, Outcome, Plugin, StatusCondition, Watch
    from trainer.framework.registry import Registry
    from trainer.framework.review import AdmissionWarning
    from trainer.framework.runtime_info import RuntimeInfo

    Observe: TypeAlias = Callable[[str, Callable[[], list[Component]]], None]
    """Told after each step of the build where its changes come from, such as `plugin torch`, with a function that
    builds what would be built at that moment."""


_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]{0,1022}[A-Za-z0-9_])?")
"""As the Kubernetes API conventions have it."""


class Pipeline:
    """Runs the plugins of a registry, phase by phase; it does not talk to the cluster.

    A plugin that raises is named in a PluginError.
    """

    def __init__(self, registry: Registry) -> None:
        self.plugins = registry
        self._watch_extensions = [plugin for plugin in registry if isinstance(plugin, WatchExtension)]
        self._validations = [plugin for plugin in registry if isinstance(plugin, CustomValidation)]
        self._ml_policies = [plugin for plugin in registry if isinstance(plugin, EnforceMLPolicy)]
        self._pod_group_policies = [plugin for plugin in registry if isinstance(plugin, EnforcePodGroupPolicy)]
        self._pod_networks = [plugin for plugin in registry if isinstance(plugin, PodNetwork)]
        self._builders = [plugin for plugin in registry if isinstance(plugin, ComponentBuilder)]
        self._suspensions = [plugin for plugin in registry if isinstance(plugin, Suspension)]
        self._terminal_conditions = [plugin for plugin in registry if isinstance(plugin, TerminalCondition)]
        self._jobs_status = next((plugin for plugin in registry if isinstance(plugin, JobsStatus)), None)
        self._impediments = [plugin for plugin in registry if isinstance(plugin, Impediments)]
        self._status_conditions = [plugin for plugin in registry if isinstance(plugin, StatusConditions)]

    def watches(self) -> list[Watch]:
        """Startup: all resources that plugins want to be cached.

        Raises:
            ConfigurationError: a plugin raised.
        """
        watches: list[Watch] = []
        for plugin in self._watch_extensions:
            try:
                watches += plugin.watches()
            except Exception as error:
                problem = f"{type(error).__name__}: {error}".removesuffix(": ")
                raise ConfigurationError(f"plugin {plugin.name} failed in watches: {problem}") from error
        return watches

    def review(self, train_job: TrainJob, runtime: Runtime, old: TrainJob | None = None) -> Review:
        """PreExecution: what is wrong with the TrainJob, found by validation and by building it on trial.

        Args:
            train_job: what is admitted.
            runtime: what it builds on.
            old: what it replaces, if anything.
        """
        try:
            review = Review.of(self._findings(extract(train_job, runtime), old, train_job))
            if not review.errors:
                self.build(train_job, runtime)
        except BuildError as error:
            return Review.of(error.errors)
        return review

    def build(self, train_job: TrainJob, runtime: Runtime, *, observe: Observe | None = None) -> list[Component]:
        """Build: the objects that the TrainJob becomes.

        Args:
            train_job: what the data scientist wants.
            runtime: the blueprint.
            observe: see there; default: nobody watches.

        Raises:
            BuildError: TrainJob and runtime do not fit together, or a plugin raised.
        """

        def step(origin: str, info: RuntimeInfo) -> None:
            if observe is not None:
                observe(origin, lambda: self._built(info, train_job))

        info = extract(train_job, runtime, step)
        errors = Review.of(self._findings(info, None, train_job)).errors
        if errors:
            raise BuildError(*errors)
        for ml_policy in self._ml_policies:
            with _contained(ml_policy, "enforce_ml_policy"):
                ml_policy.enforce_ml_policy(info, train_job)
            step(f"plugin {ml_policy.name}", info)
        apply_trainer_env(info, train_job)
        step("TrainJob spec.trainer.env", info)
        for pod_group_policy in self._pod_group_policies:
            with _contained(pod_group_policy, "enforce_pod_group_policy"):
                pod_group_policy.enforce_pod_group_policy(info, train_job)
            step(f"plugin {pod_group_policy.name}", info)
        for pod_network in self._pod_networks:
            with _contained(pod_network, "identify_pod_network"):
                pod_network.identify_pod_network(info, train_job)
            step(f"plugin {pod_network.name}", info)
        return self._built(info, train_job)

    def suspension(self, train_job: TrainJob) -> list[Component]:
        """Build without a runtime: the objects that exist, to be suspended or resumed.

        Raises:
            PluginError: a plugin raised.
        """
        components: list[Component] = []
        for plugin in self._suspensions:
            with _contained(plugin, "suspension"):
                components += plugin.suspension(train_job)
        return components

    def outcome(self, train_job: TrainJob) -> Outcome | None:
        """PostExecution: how the TrainJob ended; a failure seen by any plugin outweighs a completion.

        Raises:
            PluginError: a plugin raised.
        """
        ended: list[Outcome] = []
        for plugin in self._terminal_conditions:
            with _contained(plugin, "terminal_condition"):
                outcome = plugin.terminal_condition(train_job)
            if outcome is not None:
                ended.append(outcome)
        return min(ended, key=lambda outcome: outcome.type is not ConditionType.FAILED, default=None)

    def jobs_status(self, train_job: TrainJob) -> list[JobStatus] | None:
        """PostExecution: how the child Jobs are doing; None when there are none to count.

        Raises:
            PluginError: the plugin raised.
        """
        if self._jobs_status is None:
            return None
        with _contained(self._jobs_status, "jobs_status"):
            return self._jobs_status.jobs_status(train_job)

    def impediments(self, train_job: TrainJob) -> list[Impediment]:
        """PostExecution: what keeps the pods from running.

        Raises:
            PluginError: a plugin raised.
        """
        present: list[Impediment] = []
        for plugin in self._impediments:
            with _contained(plugin, "impediments"):
                present += plugin.impediments(train_job)
        return present

    @property
    def condition_types(self) -> frozenset[str]:
        """Types of the conditions that plugins may report."""
        return frozenset().union(*(plugin.condition_types for plugin in self._status_conditions))

    def status_conditions(self, train_job: TrainJob) -> tuple[list[StatusCondition], list[BuildError]]:
        """PostExecution: what plugins report, and those that raised: they are in the way of no other."""
        reported: list[StatusCondition] = []
        errors: list[BuildError] = []
        for plugin in self._status_conditions:
            try:
                with _contained(plugin, "status_conditions"):
                    reported += _checked(plugin, plugin.status_conditions(train_job))
            except BuildError as error:
                errors.append(error)
        return reported, errors

    def _built(self, info: RuntimeInfo, train_job: TrainJob) -> list[Component]:
        components: list[Component] = []
        for builder in self._builders:
            with _contained(builder, "build"):
                components += builder.build(info, train_job)
        return components

    def _findings(
        self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob
    ) -> Iterator[FieldError | AdmissionWarning]:
        yield from new.semantic_errors()
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
            with _contained(plugin, "validate"):
                findings = list(plugin.validate(info, old, new))
            yield from findings


@contextmanager
def _contained(plugin: Plugin, hook: str) -> Iterator[None]:
    """Name the plugin in whatever it raises; what it says about the TrainJob itself passes."""
    try:
        yield
    except BuildError:
        raise
    except Exception as error:
        raise PluginError(plugin.name, hook, error) from error


def _checked(plugin: StatusConditions, conditions: Iterable[StatusCondition]) -> list[StatusCondition]:
    """What the API server would refuse together with the rest of the status."""
    checked = list(conditions)
    for condition in checked:
        if condition.type not in plugin.condition_types:
            raise ValueError(f"condition {condition.type} is not among its condition_types")
        if not _REASON.fullmatch(condition.reason):
            raise ValueError(f"condition {condition.type} has reason {condition.reason!r}, which is no CamelCase word")
    return checked


def _unserved(path: str, source: str | None, served: Iterable[frozenset[str]]) -> Iterator[FieldError]:
    """A policy that no plugin serves must not be ignored: the training would run without it."""
    if source is not None and source not in frozenset().union(*served):
        yield forbidden(f"{path}.{source}", "no plugin of this controller manager serves it; use another runtime")
