"""The extension points of the Pipeline Framework (KEP-2170).

A plugin is a class with a `name` and the methods, called hooks, of one or more extension points. It inherits from
nothing: the registry finds the hooks, and refuses methods that are nearly one. A whole plugin::

    class Greeting:
        name = "greeting"
        ml_policy_sources = frozenset()

        def __init__(self, context: PluginContext) -> None:
            self._text = context.settings(GreetingSettings).text

        def enforce_ml_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
            info.main_container.set_env([{"name": "GREETING", "value": self._text}])

An entry point of the same name in the `pyproject.toml` of its package registers it::

    [project.entry-points."trainer.plugins"]
    greeting = "acme_plugins.greeting:Greeting"

Rules for every hook:

* It is a plain function that runs on the event loop, for many TrainJobs, again and again. It must not block or send
  requests, and returns the same result for the same input; it reads the cluster through the `Reader` of its
  `PluginContext`, which answers from caches.
* Hooks of one phase run in any order and must not depend on each other. The phases have a fixed order: EnforceMLPolicy,
  `trainer.env` of the TrainJob, EnforcePodGroupPolicy, PodNetwork, ComponentBuilder.
* It changes the `RuntimeInfo` that it gets and nothing else: never the TrainJob, never the cluster.
* What the author of the TrainJob or of the runtime can fix is a `BuildError`, which names the field and the remedy.
  Anything else that it raises is a defect of the plugin: the TrainJob gets a condition with the plugin's name
  (`JobsBuildFailed` while it is built), the work queue retries, and other TrainJobs are not affected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from trainer.api.trainjob import TrainJob
from trainer.framework.plugin_api.component import Component
from trainer.framework.plugin_api.errors import AdmissionWarning
from trainer.framework.plugin_api.reports import Outcome, StatusReport
from trainer.framework.plugin_api.runtime_info import RuntimeInfo
from trainer.kube.cache.store import IndexFunction
from trainer.kube.controller.handlers import MapFunction
from trainer.kube.controller.predicates import Predicate
from trainer.kube.field_errors import FieldError
from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer.kube.selection import EVERYTHING, Selection


@dataclass(frozen=True, slots=True)
class DryRun:
    """An object that the API server is asked, by a dry run, whether it would create, since feature gates decide it.

    The manager asks when it starts and when the kind begins to be served; `Reader.refusal` is the answer. Nothing else
    must be wrong with the object: a PriorityClass that it names exists in every cluster.
    """

    object: Object
    """The object without name and namespace."""
    field: str = ""
    """Path of a field, such as `spec.resourceClaims`, that the API server drops in silence where its gate is off, which
    is a refusal, too. It names no items of lists. Defaults to none."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Objects that a plugin wants to be cached. The service account of the manager must be allowed to list them."""

    resource: Resource
    """Their kind."""
    selection: Selection = EVERYTHING
    """Which of them, by labels and fields. Defaults to all; the manager adds its namespace. Anybody may write large
    objects with these labels: for kinds with room for data, select `metadata_only` (see `Component.metadata_only`)."""
    triggers: bool = True
    """Whether a change reconciles a TrainJob; otherwise the object is only cached. Defaults to true, because most
    watched objects are those that were built."""
    train_jobs: MapFunction | None = None
    """Namespace and name of the TrainJobs to reconcile when an object changes. Defaults to the one that controls it;
    needed for children of children, such as pods."""
    predicate: Predicate | None = None
    """Which changes matter. Defaults to all; a TrainJob has thousands of pods, of which few changes say anything."""
    optional: bool = False
    """Whether the API server may lack the kind, whose CRD others install; it is watched once it is served. Until then
    `Reader.serves` is false and nothing of the kind can be built. Defaults to false: no kind, no manager."""
    delay: float = 0
    """Seconds for which further changes are awaited before a TrainJob is reconciled. Defaults to none; thousands of
    objects of one TrainJob often change at the same time."""
    indexes: Mapping[str, IndexFunction] = field(default_factory=dict)
    """By what `Reader.keys` finds the objects without reading all of them. Defaults to nothing. The names begin with
    that of the plugin, since two indexes of one name are refused."""
    dry_runs: Mapping[str, DryRun] = field(default_factory=dict)
    """What the API server may refuse, by names for `Reader.refusal`, which no other plugin has for this kind. Defaults
    to nothing."""


class Plugin(Protocol):
    """The name, which all plugins have."""

    @property
    def name(self) -> str:
        """Unique name, for messages and configuration; the same as that of the entry point.

        Lower-case letters, digits and `-`, at most 63, as for a DNS label.
        """


@runtime_checkable
class WatchExtension(Plugin, Protocol):
    """Startup: the resources to watch. Every kind that the plugin builds or reads must be among them."""

    def watches(self) -> Iterable[Watch]:
        """The resources; called once, when the manager starts.

        A change of a watched object reconciles the TrainJob that controls it. Several plugins may watch the same
        resource: it is cached once for each selection.
        """


@runtime_checkable
class CustomValidation(Plugin, Protocol):
    """PreExecution: finds what is wrong with a TrainJob, when it is admitted and again before it is built."""

    def validate(
        self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob
    ) -> Iterable[FieldError | AdmissionWarning]:
        """The wrong fields of `new`, and what its author should know although it is accepted.

        It is called for every TrainJob, whatever its runtime: check `info.ml_policy` first. Errors refuse the TrainJob;
        `AdmissionWarning`s reach its author through kubectl, and are dropped when it is built. Paths of errors start
        at the root of the object, such as `spec.trainer.numNodes`; those of errors of the runtime with `info.runtime`.

        Args:
            info: the runtime with the TrainJob's settings, before any plugin has changed it; read only.
            old: what `new` replaces; None when it is created, and when it is built.
            new: the TrainJob.
        """


@runtime_checkable
class EnforceMLPolicy(Plugin, Protocol):
    """Build: gives the training containers what their framework needs (`spec.mlPolicy` of the runtime)."""

    @property
    def ml_policy_sources(self) -> frozenset[str]:
        """The members of `spec.mlPolicy` that the plugin implements, such as `torch`.

        A runtime with a member that no plugin implements is refused, and only one plugin may implement a member. Empty
        for a plugin for runtimes without a member, or that adds something to those of another plugin.
        """

    def enforce_ml_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Change `info` if its policy is one of the plugin's: it is called for every runtime.

        `info.main_container` trains, `info.trainer` are its pods, and `info.trainer.count` is the number of nodes,
        which this hook may still change. Images, commands, resources and pod overrides of the TrainJob are in `info`
        already; its `trainer.env` follows and wins.
        """


@runtime_checkable
class EnforcePodGroupPolicy(Plugin, Protocol):
    """Build: adds pods to their gang (`spec.podGroupPolicy` of the runtime).

    The object that describes the gang comes from `ComponentBuilder`, usually of the same plugin.
    """

    @property
    def pod_group_policy_sources(self) -> frozenset[str]:
        """The members of `spec.podGroupPolicy` that the plugin implements, under the rules of `ml_policy_sources`."""

    def enforce_pod_group_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Change `info` if its policy is one of the plugin's: the pods of `info.gang` start together or not at all.

        Their labels and annotations are those of the pod set. The number of pods is final.
        """


@runtime_checkable
class PodNetwork(Plugin, Protocol):
    """Build: sets the DNS names of the pods."""

    def identify_pod_network(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Set `endpoints` of the pod sets, in the order of the pods' index; the number of pods is final."""


@runtime_checkable
class ComponentBuilder(Plugin, Protocol):
    """Build: turns the finished RuntimeInfo into objects."""

    def build(self, info: RuntimeInfo, train_job: TrainJob) -> Iterable[Component]:
        """The objects, in the TrainJob's namespace, without owner references; the same ones for the same input.

        Each has apiVersion, kind and a name, and no other plugin builds it.

        They are applied by server-side apply when they differ from what exists, as children of the TrainJob. Each kind
        must be among the plugin's `watches`. Copy what you take from `info` and do not change it, because other
        builders read it, too. `Component.revise` is for kinds with immutable fields.
        """


@runtime_checkable
class Suspension(Plugin, Protocol):
    """Build, when objects exist but their runtime is gone or no longer fits: `spec.suspend` still works."""

    def suspension(self, train_job: TrainJob) -> Iterable[Component]:
        """The objects that exist, to be suspended or resumed as `train_job.spec.suspend` says, not changed otherwise.

        Read them with the `Reader`, and leave out those that another object of the same name owns.
        """


@runtime_checkable
class TerminalCondition(Plugin, Protocol):
    """PostExecution: detects that the training has ended."""

    def terminal_condition(self, train_job: TrainJob) -> Outcome | None:
        """How it ended, with the reason and message of the child Jobs; None while it goes on.

        It is called until the TrainJob has ended. If several plugins see an end, a failure counts.
        """


@runtime_checkable
class TrainJobStatus(Plugin, Protocol):
    """PostExecution: reports how the child Jobs are doing: counts, pods in trouble, conditions of its own."""

    @property
    def condition_types(self) -> frozenset[str]:
        """The types of all conditions that the plugin may ever report, such as `acme.com/DataVerified`.

        No other plugin may have them, and those of the controller itself are refused when the plugin is registered.
        Other field managers must not write them. Empty for a plugin without conditions of its own.
        """

    def train_job_status(self, train_job: TrainJob) -> StatusReport:
        """What there is to report at this moment.

        It is called whenever anything watched changes, also of TrainJobs that are suspended or have ended: it must not
        read all pods of a large job each time, see `Watch.indexes`.
        """


EXTENSION_POINTS: tuple[type, ...] = (
    WatchExtension,
    CustomValidation,
    EnforceMLPolicy,
    EnforcePodGroupPolicy,
    PodNetwork,
    ComponentBuilder,
    Suspension,
    TerminalCondition,
    TrainJobStatus,
)
"""All extension points, in the order in which they are called for a TrainJob."""
