"""The phases of the Pipeline Framework (KEP-2170): Startup, PreExecution, Build and PostExecution."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import TypeAlias, TypeVar

from trainer.api.trainingruntime import Runtime
from trainer.api.trainjob import TrainJob
from trainer.api.trainjob_status import ConditionType, JobStatus, NodeScale, RestartCounts
from trainer.framework.building.extraction import apply_settings, extract, extract_runtime, subject_of
from trainer.framework.building.profile import V2ALPHA1_PROFILE, Profile
from trainer.framework.plugin_api.component import Component, is_unique_name
from trainer.framework.plugin_api.devices import RESOURCE_CLAIM_TEMPLATES, USUAL_DEVICES, DeviceTable
from trainer.framework.plugin_api.errors import CLUSTER_LACKS, AdmissionWarning, BuildDefectError, BuildError, Review
from trainer.framework.plugin_api.extension_points import (
    ComponentBuilder,
    CustomValidation,
    EnforceMLPolicy,
    EnforcePodGroupPolicy,
    Plugin,
    PodNetwork,
    Suspension,
    TerminalCondition,
    TrainJobStatus,
    Watch,
    WatchExtension,
)
from trainer.framework.plugin_api.reports import Outcome, PodProblem, StatusCondition, StatusReport
from trainer.framework.plugin_api.runtime_info import RuntimeInfo
from trainer.framework.plugin_calls import PluginCall, PluginSeries
from trainer.framework.runtimes.default_gang import NO_GANG, DefaultGang
from trainer.framework.startup.registry import Registry
from trainer.kube.errors import ConfigurationError
from trainer.kube.field_errors import FieldError, forbidden
from trainer.kube.metrics import Metrics
from trainer.kube.objects import ObjectKey
from trainer.kube.resource import Resource

Guard: TypeAlias = Callable[[PluginCall], AbstractContextManager[None]]
"""Handles what the call of a hook raises."""

_Change: TypeAlias = tuple[str, PluginCall, Callable[[RuntimeInfo, TrainJob], None]]
"""What changes a RuntimeInfo, after its origin and the context of its call."""

_P = TypeVar("_P", bound=Plugin)

_BUILD = PluginCall("the build failed, please report it")
"""Turns every error of a build into a BuildError, so that a defect is reported in its TrainJob alone."""


class Pipeline:
    """Runs the plugins of a registry, phase by phase; it does not talk to the cluster.

    The name of a plugin that raises is part of the BuildDefectError. With a `cluster_domain`, such as `cluster.local`,
    the DNS names of pods are fully qualified. `devices` says which resources are devices, the usual ones by default.
    `profile` is that of the API version which the cluster serves, v2alpha1 by default. `gang` is what those who find a
    runtime apply to it for a TrainJob that is not built yet, nothing by default.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        profile: Profile = V2ALPHA1_PROFILE,
        cluster_domain: str | None = None,
        devices: DeviceTable = USUAL_DEVICES,
        gang: DefaultGang = NO_GANG,
        metrics: Metrics | None = None,
    ) -> None:
        self.plugins = registry
        self.devices = devices
        self.gang = gang
        self.profile = profile
        self._cluster_domain = cluster_domain
        series = (metrics or Metrics()).series(PluginSeries)
        series.prepare(registry)

        def hooks(hook: str, plugins: Iterable[_P], *, is_timed: bool = True) -> list[tuple[_P, PluginCall]]:
            return [(plugin, series.call(plugin.name, hook, is_timed=is_timed)) for plugin in plugins]

        self._validations = hooks("validate", (each for each in registry if isinstance(each, CustomValidation)))
        ml_policies = hooks("enforce_ml_policy", (each for each in registry if isinstance(each, EnforceMLPolicy)))
        pod_group_policies = hooks(
            "enforce_pod_group_policy", (each for each in registry if isinstance(each, EnforcePodGroupPolicy))
        )
        pod_networks = hooks("identify_pod_network", (each for each in registry if isinstance(each, PodNetwork)))
        self._changes: list[_Change] = [
            *((f"plugin {each.name}", call, each.enforce_ml_policy) for each, call in ml_policies),
            ("TrainJob spec.trainer.env", _BUILD, profile.apply_env),
            *((f"plugin {each.name}", call, each.enforce_pod_group_policy) for each, call in pod_group_policies),
            *((f"plugin {each.name}", call, each.identify_pod_network) for each, call in pod_networks),
        ]
        self._builders = hooks("build", (each for each in registry if isinstance(each, ComponentBuilder)))
        self._suspensions = hooks(
            "suspension", (each for each in registry if isinstance(each, Suspension)), is_timed=False
        )
        self._terminal_conditions = hooks(
            "terminal_condition", (each for each in registry if isinstance(each, TerminalCondition)), is_timed=False
        )
        self._statuses = hooks(
            "train_job_status", (each for each in registry if isinstance(each, TrainJobStatus)), is_timed=False
        )
        self.condition_types = frozenset[str]().union(*(plugin.condition_types for plugin, _ in self._statuses))
        self._ml_policy_sources = frozenset[str]().union(*(each.ml_policy_sources for each, _ in ml_policies))
        self.pod_group_policy_sources = frozenset[str]().union(
            *(each.pod_group_policy_sources for each, _ in pod_group_policies)
        )

    def watches(self) -> list[Watch]:
        """Startup: all resources that plugins want to be cached, and what devices are counted by.

        Raises:
            ConfigurationError: a plugin raised, or two have an index or a dry run of the same name.
        """
        watches: list[Watch] = []
        if self.devices.reads_claims:
            watches.append(Watch(RESOURCE_CLAIM_TEMPLATES, triggers=False, optional=True))
        named: dict[tuple[str, Hashable], str] = {}
        for plugin in self.plugins:
            if not isinstance(plugin, WatchExtension):
                continue
            try:
                present = list(plugin.watches())
                names = list(_names(present))
            except Exception as error:
                problem = f"{type(error).__name__}: {error}".removesuffix(": ")
                raise ConfigurationError(f"plugin {plugin.name} failed in watches: {problem}") from error
            for what, place in names:
                other = named.setdefault((what, place), plugin.name)
                if other != plugin.name:
                    raise ConfigurationError(f"plugins {other} and {plugin.name} both have {what}; rename one of them")
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
            with _BUILD:
                info = self._extract(train_job, runtime)
                review = Review.of(self._findings(info, old, train_job))
                if not review.errors:
                    self._walk(info, train_job)
        except BuildError as error:
            return Review.of(_with_origin(error.errors, subject_of(runtime)))
        return review

    def trial(self, train_job: TrainJob, runtime: Runtime) -> Review:
        """PreExecution of a runtime: all that is wrong with this TrainJob on it, and not only what is found first.

        The build goes on after errors, since another TrainJob may avoid some of them. What a plugin raises when it
        meets what was refused already is no defect of the plugin.

        Args:
            train_job: one that sets as little as possible.
            runtime: what is admitted; read strictly, so that its pod templates have been checked.
        """
        origin = subject_of(runtime)
        try:
            with _BUILD:
                info = self._extract(train_job, runtime, is_checked=True)
                findings = list(self._findings(info, None, train_job))
        except BuildError as error:
            return Review.of(_with_origin(error.errors, origin))
        is_valid = not Review.of(findings).errors

        @contextmanager
        def collected(call: PluginCall) -> Iterator[None]:
            try:
                with call if is_valid else PluginCall(call.failure):
                    yield
            except BuildError as error:
                if is_valid or not isinstance(error, BuildDefectError):
                    findings.extend(_with_origin(error.errors, origin))

        self._walk(info, train_job, guard=collected)
        return Review.of(findings)

    def build(self, train_job: TrainJob, runtime: Runtime) -> list[Component]:
        """Build: the objects that the TrainJob becomes.

        Raises:
            BuildError: TrainJob and runtime do not fit together, or a plugin raised.
        """
        with _BUILD:
            info = self._extract(train_job, runtime)
            validated = self.profile.validates_builds
            findings = self._findings(info, None, train_job) if validated else self._unserved(info)
            errors = Review.of([*train_job.semantic_errors(), *findings]).errors
            if errors:
                raise BuildError(*errors)
            return self._walk(info, train_job)

    def steps(self, train_job: TrainJob, runtime: Runtime) -> Iterator[tuple[str, list[Component]]]:
        """Build a valid TrainJob step by step: the origin of each change, such as `plugin torch`, and what it leads to.

        Nothing is built where a builder needs a later change.
        """
        info = extract_runtime(train_job, runtime, profile=self.profile, is_checked=False, devices=self.devices)
        self._complete_names(info, train_job)

        def built() -> list[Component]:
            try:
                return self._built(deepcopy(info), train_job)  # a builder may change what it gets
            except BuildError:
                return []

        yield info.runtime, built()
        for field in apply_settings(info, train_job, self.profile):
            yield f"TrainJob {field}", built()
        for origin, call, change in self._changes:
            with call:
                change(info, train_job)
            yield origin, built()

    def _walk(self, info: RuntimeInfo, train_job: TrainJob, guard: Guard | None = None) -> list[Component]:
        """Let the plugins change `info` and build objects of it, in the order of the phases."""
        for _, call, change in self._changes:
            with guard(call) if guard else call:
                change(info, train_job)
        return self._built(info, train_job, guard)

    def suspension(self, train_job: TrainJob) -> list[Component]:
        """Build without a runtime: the objects that exist, to be suspended or resumed."""
        components: list[Component] = []
        for plugin, call in self._suspensions:
            with call:
                components += [replace(component, plugin=plugin.name) for component in plugin.suspension(train_job)]
        return components

    def outcome(self, train_job: TrainJob) -> tuple[Outcome | None, list[BuildError]]:
        """PostExecution: how the TrainJob ended, and the errors of plugins; a failure wins over a completion."""
        ended: Outcome | None = None
        errors: list[BuildError] = []
        for plugin, call in self._terminal_conditions:
            try:
                with call:
                    found = plugin.terminal_condition(train_job)
                    if found is not None and (found.type is ConditionType.FAILED or ended is None):
                        ended = found
            except BuildError as error:
                errors.append(error)
        return ended, errors

    def status(self, train_job: TrainJob, *, finds_problems: bool = True) -> tuple[StatusReport, list[BuildError]]:
        """PostExecution: what all plugins together report, with or without pod problems, and the errors of plugins."""
        jobs: Sequence[JobStatus] | None = None
        scale: NodeScale | None = None
        restarts: RestartCounts | None = None
        conditions: list[StatusCondition] = []
        problems: list[PodProblem] = []
        errors: list[BuildError] = []
        for plugin, call in self._statuses:
            try:
                with call:
                    report = plugin.train_job_status(train_job)
                    # One after the other: the last two may be generators, which raise after the counts are known.
                    if jobs is not None and report.jobs is not None:
                        raise ValueError("another plugin counts the child Jobs already; disable one of the two")
                    if scale is not None and report.scale is not None:
                        raise ValueError("another plugin counts the nodes already; disable one of the two")
                    jobs, scale = (jobs if report.jobs is None else report.jobs), report.scale or scale
                    restarts = report.restarts or restarts
                    conditions += list(_own_conditions(report, plugin))
                    problems += [*report.problems] if finds_problems else []
            except BuildError as error:
                errors.append(error)
        return StatusReport(jobs, scale, tuple(problems), tuple(conditions), restarts), errors

    def _extract(self, train_job: TrainJob, runtime: Runtime, *, is_checked: bool = False) -> RuntimeInfo:
        info = extract(train_job, runtime, profile=self.profile, is_checked=is_checked, devices=self.devices)
        self._complete_names(info, train_job)
        return info

    def _complete_names(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        if self._cluster_domain is not None:
            info.pod_domain = f".{train_job.metadata.namespace}.svc.{self._cluster_domain}"

    def _built(self, info: RuntimeInfo, train_job: TrainJob, guard: Guard | None = None) -> list[Component]:
        components: list[Component] = []
        builders: dict[tuple[Resource, ObjectKey], str] = {}
        for builder, call in self._builders:
            with guard(call) if guard else call:
                for component in builder.build(info, train_job):
                    _check_child(component, train_job, builders)
                    builders[component.resource, component.key] = builder.name
                    components.append(replace(component, plugin=builder.name))
        return components

    def _findings(
        self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob
    ) -> Iterator[FieldError | AdmissionWarning]:
        yield from _of_setting(self._unserved(info), info)
        for plugin, call in self._validations:
            try:
                with call:
                    found = [*plugin.validate(info, old, new)]
                    findings = _with_origin(found, info.runtime) if found else []
            except BuildDefectError:
                raise
            except BuildError as error:
                findings = _with_origin(error.errors, info.runtime)
            yield from _of_setting(findings, info)

    def _unserved(self, info: RuntimeInfo) -> Iterator[FieldError]:
        """Policies that no plugin serves, which must not be ignored: the training would run without them."""
        for policy, source, sources in (
            ("mlPolicy", info.ml_policy.source, self._ml_policy_sources),
            ("podGroupPolicy", info.pod_group_policy.source, self.pod_group_policy_sources),
        ):
            if source is not None and source not in sources:
                rule = "no plugin of this controller manager serves it; install one, or use another runtime"
                unserved = forbidden(f"{info.runtime} spec.{policy}.{source}", rule, code=CLUSTER_LACKS)
                yield replace(unserved, origin=info.runtime)


def _with_origin(findings: Iterable[FieldError | AdmissionWarning], origin: str) -> list[FieldError | AdmissionWarning]:
    """The findings, those of the runtime with their origin: plugins begin their paths with `RuntimeInfo.runtime`."""
    return [replace(each, origin=origin) if each.field.startswith(f"{origin} ") else each for each in findings]


def _names(watches: Iterable[Watch]) -> Iterator[tuple[str, Hashable]]:
    """What only one plugin may have: its name, and what it is unique in."""
    for each in watches:
        kind = each.resource.qualified_name
        yield from ((f"an index {name} of {kind}", (each.resource, each.selection)) for name in each.indexes)
        yield from ((f"a dry run {name} of {kind}", each.resource) for name in each.dry_runs)


def _of_setting(
    findings: Iterable[FieldError | AdmissionWarning], info: RuntimeInfo
) -> Iterable[FieldError | AdmissionWarning]:
    """The findings, those about a podGroupPolicy that the runtime does not have with the setting that it comes from."""
    if not info.has_default_gang:
        return findings
    path = f"{info.runtime} spec.podGroupPolicy"
    setting = "gangScheduling of the manager's configuration"
    return [replace(each, field=setting, origin="") if each.field.startswith(path) else each for each in findings]


def _own_conditions(report: StatusReport, plugin: TrainJobStatus) -> Iterator[StatusCondition]:
    for condition in report.conditions:
        if condition.type not in plugin.condition_types:
            raise ValueError(f"condition {condition.type} is not among its condition_types")
        yield condition


def _check_child(component: Component, train_job: TrainJob, others: Mapping[tuple[Resource, ObjectKey], str]) -> None:
    """Refuse an object that cannot be a child of the TrainJob, which has no name in a trial."""
    kind, name, namespace = component.resource.kind, component.key.name, train_job.metadata.namespace or ""
    if not name and train_job.metadata.name:
        raise ValueError(f"a {kind} has no metadata.name")
    if component.key.namespace != namespace:
        found = component.key.namespace or "none"
        raise ValueError(f"{kind} {name} must be in namespace {namespace}, not {found}")
    is_anybodys = component.generated is not None and not component.asks_owner
    if is_anybodys and name and not is_unique_name(name, train_job):
        # Nobody can say whose it is once it exists.
        raise ValueError(f"{kind} {name} is generated; its name must be one that unique_name gives")
    other = others.get((component.resource, component.key))
    if other is not None:
        raise ValueError(f"{kind} {component.key} is built by plugin {other} already")
