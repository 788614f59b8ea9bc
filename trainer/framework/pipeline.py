"""The phases of the Pipeline Framework (KEP-2170): Startup, PreExecution, Build and PostExecution."""

from __future__ import annotations

from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from trainer.api.trainjob_status import ConditionType
from trainer.framework.building.extraction import extract, subject_of
from trainer.framework.building.trainer_step import apply_trainer_env
from trainer.framework.plugin_api.component import Component, is_unique_name
from trainer.framework.plugin_api.errors import CLUSTER_LACKS, AdmissionWarning, BuildError, PluginError, Review
from trainer.framework.plugin_api.extension_points import (
    ComponentBuilder,
    CustomValidation,
    EnforceMLPolicy,
    EnforcePodGroupPolicy,
    Outcome,
    PodNetwork,
    PodProblem,
    StatusCondition,
    StatusReport,
    Suspension,
    TerminalCondition,
    TrainJobStatus,
    Watch,
    WatchExtension,
)
from trainer.framework.plugin_calls import PluginCall, PluginSeries, build_contained, results
from trainer.kube.errors import ConfigurationError
from trainer.kube.field_errors import FieldError, forbidden
from trainer.kube.metrics import Metrics
from trainer.kube.objects import key_of, name_of, namespace_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from trainer.api.trainingruntime import Runtime
    from trainer.api.trainjob import TrainJob
    from trainer.framework.building.extraction import Step
    from trainer.framework.plugin_api.extension_points import Plugin
    from trainer.framework.plugin_api.runtime_info import RuntimeInfo
    from trainer.framework.startup.registry import Registry
    from trainer.kube.objects import ObjectKey
    from trainer.kube.resource import Resource

    Observe: TypeAlias = Callable[[str, Callable[[], list[Component]]], None]
    """Told after each step of the build where its changes come from, such as `plugin torch`, with a function that
    builds what would be built at that moment."""

    Guard: TypeAlias = Callable[[str, str], AbstractContextManager[None]]
    """Gets a plugin and a hook, and handles what the plugin raises there."""

    _P = TypeVar("_P", bound=Plugin)

_T = TypeVar("_T")


def _ignore(_origin: str, _info: RuntimeInfo) -> None:
    """The step of a build that is not observed."""


class Pipeline:
    """Runs the plugins of a registry, phase by phase; it does not talk to the cluster.

    A plugin that raises is named in a PluginError.
    """

    def __init__(
        self, registry: Registry, *, cluster_domain: str | None = None, metrics: Metrics | None = None
    ) -> None:
        self.plugins = registry
        self._cluster_domain = cluster_domain
        self._series = series = (metrics or Metrics()).series(PluginSeries)
        series.prepare(registry)
        self._watch_extensions = [plugin for plugin in registry if isinstance(plugin, WatchExtension)]
        self._validations = [plugin for plugin in registry if isinstance(plugin, CustomValidation)]
        self._ml_policies = [plugin for plugin in registry if isinstance(plugin, EnforceMLPolicy)]
        self._pod_group_policies = [plugin for plugin in registry if isinstance(plugin, EnforcePodGroupPolicy)]
        self._pod_networks = [plugin for plugin in registry if isinstance(plugin, PodNetwork)]
        self._builders = [plugin for plugin in registry if isinstance(plugin, ComponentBuilder)]
        self._suspensions = [plugin for plugin in registry if isinstance(plugin, Suspension)]
        self._terminal_conditions = [plugin for plugin in registry if isinstance(plugin, TerminalCondition)]
        self._statuses = [plugin for plugin in registry if isinstance(plugin, TrainJobStatus)]

    def watches(self) -> list[Watch]:
        """Startup: all resources that plugins want to be cached.

        Raises:
            ConfigurationError: a plugin raised, or two have an index of the same name.
        """
        watches: list[Watch] = []
        indexed: dict[Hashable, str] = {}
        for plugin in self._watch_extensions:
            try:
                present = results(plugin.watches(), Watch)
            except Exception as error:
                problem = f"{type(error).__name__}: {error}".removesuffix(": ")
                raise ConfigurationError(f"plugin {plugin.name} failed in watches: {problem}") from error
            for watch in present:
                for name in watch.indexes:
                    other = indexed.setdefault((watch.resource, watch.selection, name), plugin.name)
                    if other != plugin.name:
                        index = f"index {name} of {watch.resource.qualified_name}"
                        raise ConfigurationError(
                            f"plugins {other} and {plugin.name} both have an {index}; rename one of them"
                        )
            watches += present
        return watches

    def review(self, train_job: TrainJob, runtime: Runtime, old: TrainJob | None = None) -> Review:
        """PreExecution: what is wrong with the TrainJob on its runtime, found by validation and by a trial build.

        Args:
            train_job: what is admitted; read strictly, so that its `semantic_errors` are known.
            runtime: what it builds on.
            old: what it replaces, if anything.
        """
        try:
            with build_contained():
                info = self._extract(train_job, runtime)
                review = _review(self._findings(info, old, train_job), runtime)
                if not review.errors:
                    self._enforce(info, train_job, self._series.timed)
                    self._built(info, train_job, self._series.timed)
        except BuildError as error:
            return _review(error.errors, runtime)
        return review

    def trial(self, train_job: TrainJob, runtime: Runtime) -> Review:
        """PreExecution of a runtime: all that is wrong with this TrainJob on it, and not only what is found first.

        The build goes on after errors, since another TrainJob may avoid some of them. What a plugin raises when it
        meets what was refused already is no defect of the plugin.

        Args:
            train_job: one that sets as little as possible.
            runtime: what is admitted; read strictly, so that its pod templates have been checked.
        """
        try:
            with build_contained():
                info = self._extract(train_job, runtime, is_checked=True)
                findings = list(self._findings(info, None, train_job))
        except BuildError as error:
            return _review(error.errors, runtime)
        is_valid = not Review.of(findings).errors

        @contextmanager
        def collected(plugin: str, hook: str) -> Iterator[None]:
            try:
                with self._series.timed(plugin, hook) if is_valid else PluginCall(plugin, hook):
                    yield
            except BuildError as error:
                findings.extend(error.errors if is_valid or not isinstance(error, PluginError) else ())

        self._enforce(info, train_job, collected)
        self._built(info, train_job, collected)
        return _review(findings, runtime)

    @build_contained()
    def build(self, train_job: TrainJob, runtime: Runtime, *, observe: Observe | None = None) -> list[Component]:
        """Build: the objects that the TrainJob becomes.

        Raises:
            BuildError: TrainJob and runtime do not fit together, or a plugin raised.
        """

        def step(origin: str, info: RuntimeInfo) -> None:
            if observe is not None:
                # A builder may change what it gets.
                observe(origin, lambda: self._built(deepcopy(info), train_job, self._series.timed))

        info = self._extract(train_job, runtime, step)
        errors = Review.of([*train_job.semantic_errors(), *self._findings(info, None, train_job)]).errors
        if errors:
            raise BuildError(*errors)
        self._enforce(info, train_job, self._series.timed, step)
        return self._built(info, train_job, self._series.timed)

    def _enforce(self, info: RuntimeInfo, train_job: TrainJob, guard: Guard, step: Step = _ignore) -> None:
        """What plugins and the environment of the TrainJob change, in the order of the phases."""
        for ml_policy in self._ml_policies:
            with guard(ml_policy.name, "enforce_ml_policy"):
                ml_policy.enforce_ml_policy(info, train_job)
            step(f"plugin {ml_policy.name}", info)
        apply_trainer_env(info, train_job)
        step("TrainJob spec.trainer.env", info)
        for pod_group_policy in self._pod_group_policies:
            with guard(pod_group_policy.name, "enforce_pod_group_policy"):
                pod_group_policy.enforce_pod_group_policy(info, train_job)
            step(f"plugin {pod_group_policy.name}", info)
        for pod_network in self._pod_networks:
            with guard(pod_network.name, "identify_pod_network"):
                pod_network.identify_pod_network(info, train_job)
            step(f"plugin {pod_network.name}", info)

    def suspension(self, train_job: TrainJob) -> list[Component]:
        """Build without a runtime: the objects that exist, to be suspended or resumed."""
        components: list[Component] = []
        for plugin in self._suspensions:
            with self._series.counted(plugin.name, "suspension"):
                components += [replace(component, plugin=plugin.name) for component in plugin.suspension(train_job)]
        return components

    def outcome(self, train_job: TrainJob) -> tuple[Outcome | None, list[BuildError]]:
        """PostExecution: how the TrainJob ended, and the errors of plugins; a failure wins over a completion."""

        def ended(plugin: TerminalCondition) -> Outcome | None:
            found = plugin.terminal_condition(train_job)
            return None if found is None else results([found], Outcome)[0]

        answers, errors = self._ask(self._terminal_conditions, "terminal_condition", ended)
        ends = [outcome for outcome in answers if outcome is not None]
        return min(ends, key=lambda outcome: outcome.type is not ConditionType.FAILED, default=None), errors

    @property
    def condition_types(self) -> frozenset[str]:
        """Types of the conditions that plugins may report."""
        return frozenset().union(*(plugin.condition_types for plugin in self._statuses))

    def status(self, train_job: TrainJob) -> tuple[StatusReport, list[BuildError]]:
        """PostExecution: what all plugins together report, and the errors of plugins."""
        merged = StatusReport()

        def merge(plugin: TrainJobStatus) -> None:
            # Step by step: problems and conditions may be generators, which raise after the counts are known.
            nonlocal merged
            [report] = results([plugin.train_job_status(train_job)], StatusReport)
            merged = _with_counts(merged, report)
            conditions = _own_conditions(report, plugin)
            merged = replace(merged, conditions=(*merged.conditions, *conditions))
            problems = [self._contained(each, plugin) for each in results(report.problems, PodProblem)]
            merged = replace(merged, problems=(*merged.problems, *problems))

        _, errors = self._ask(self._statuses, "train_job_status", merge)
        return merged, errors

    def _contained(self, problem: PodProblem, plugin: Plugin) -> PodProblem:
        """The problem with details that do not raise: they are called while the status is written."""

        def details() -> str:
            try:
                with self._series.counted(plugin.name, "train_job_status"):
                    return results([problem.details()], str)[0]
            except BuildError as error:
                return str(error)

        return replace(problem, details=details)

    def _extract(
        self, train_job: TrainJob, runtime: Runtime, step: Step | None = None, *, is_checked: bool = False
    ) -> RuntimeInfo:
        info = extract(train_job, runtime, step, is_checked=is_checked)
        if self._cluster_domain is not None:
            info.pod_domain = f".{train_job.metadata.namespace}.svc.{self._cluster_domain}"
        return info

    def _built(self, info: RuntimeInfo, train_job: TrainJob, guard: Guard) -> list[Component]:
        components: list[Component] = []
        for builder in self._builders:
            with guard(builder.name, "build"):
                built = results(builder.build(info, train_job), Component)
                others = {(each.resource, key_of(each.object)): each.plugin for each in components}
                for component in built:
                    _check_child(component, train_job, others)
                    others[component.resource, key_of(component.object)] = builder.name
                components += [replace(component, plugin=builder.name) for component in built]
        return components

    def _findings(
        self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob
    ) -> Iterator[FieldError | AdmissionWarning]:
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
            try:
                with self._series.timed(plugin.name, "validate"):
                    findings = results(plugin.validate(info, old, new), (FieldError, AdmissionWarning))
            except PluginError:
                raise
            except BuildError as error:
                yield from error.errors
            else:
                yield from findings

    def _ask(self, plugins: Iterable[_P], hook: str, question: Callable[[_P], _T]) -> tuple[list[_T], list[BuildError]]:
        """What plugins answer, and the errors of those that raise, which affect no other."""
        answers: list[_T] = []
        errors: list[BuildError] = []
        for plugin in plugins:
            try:
                with self._series.counted(plugin.name, hook):
                    answers.append(question(plugin))
            except BuildError as error:
                errors.append(error)
        return answers, errors


def _review(findings: Iterable[FieldError | AdmissionWarning], runtime: Runtime) -> Review:
    """The findings, those of the runtime with their origin: plugins begin their paths with `RuntimeInfo.runtime`."""
    origin = subject_of(runtime)
    return Review.of(replace(each, origin=origin) if each.field.startswith(f"{origin} ") else each for each in findings)


def _with_counts(known: StatusReport, report: StatusReport) -> StatusReport:
    """What is known, with the counts of one more report."""
    if known.jobs is not None and report.jobs is not None:
        raise ValueError("another plugin counts the child Jobs already; disable one of the two")
    if known.scale is not None and report.scale is not None:
        raise ValueError("another plugin counts the nodes already; disable one of the two")
    jobs = known.jobs if report.jobs is None else report.jobs
    return replace(known, jobs=jobs, scale=known.scale if report.scale is None else report.scale)


def _own_conditions(report: StatusReport, plugin: TrainJobStatus) -> list[StatusCondition]:
    conditions: list[StatusCondition] = results(report.conditions, StatusCondition)
    for condition in conditions:
        if condition.type not in plugin.condition_types:
            raise ValueError(f"condition {condition.type} is not among its condition_types")
    return conditions


def _check_child(component: Component, train_job: TrainJob, others: Mapping[tuple[Resource, ObjectKey], str]) -> None:
    """Refuse what cannot be a child of the TrainJob, which has no name in a trial."""
    kind, name = component.resource.kind, name_of(component.object)
    namespace = train_job.metadata.namespace or ""
    if not name and train_job.metadata.name:
        raise ValueError(f"a {kind} has no metadata.name")
    if namespace_of(component.object) != namespace:
        found = namespace_of(component.object) or "none"
        raise ValueError(f"{kind} {name} must be in namespace {namespace}, not {found}")
    if component.generated is not None and name and not is_unique_name(name, train_job):
        # Nobody can say whose it is once it exists.
        raise ValueError(f"{kind} {name} is generated; its name must be one that unique_name gives")
    other = others.get((component.resource, key_of(component.object)))
    if other is not None:
        raise ValueError(f"{kind} {key_of(component.object)} is built by plugin {other} already")


def _unserved(path: str, source: str | None, served: Iterable[frozenset[str]]) -> Iterator[FieldError]:
    """A policy that no plugin serves must not be ignored: the training would run without it."""
    if source is not None and source not in frozenset().union(*served):
        rule = "no plugin of this controller manager serves it; install one, or use another runtime"
        yield forbidden(f"{path}.{source}", rule, code=CLUSTER_LACKS)
