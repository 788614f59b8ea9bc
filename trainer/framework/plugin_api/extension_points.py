"""The extension points of the Pipeline Framework (KEP-2170): what a plugin can take part in.

A plugin is a class with a `name` and the methods, called hooks, of one or more extension points. It need not inherit
from anything: the registry finds out what it takes part in, and refuses what nearly is a hook. A whole plugin::

    class Greeting:
        name = "greeting"
        ml_policy_sources = frozenset()

        def __init__(self, context: PluginContext) -> None:
            self._text = context.settings(GreetingSettings).text

        def enforce_ml_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
            info.main_container.set_env([{"name": "GREETING", "value": self._text}])

It is announced by an entry point of its name in the `pyproject.toml` of its package::

    [project.entry-points."trainer.plugins"]
    greeting = "acme_plugins.greeting:Greeting"

What holds for every hook:

* It is a plain function that runs on the event loop, for many TrainJobs, again and again. It must not block, wait or
  send requests, and gives the same result for the same input; what it needs to know about the cluster it asks the
  `Reader` of its `PluginContext`, which answers from caches.
* Hooks of one phase run in any order and must not depend on each other. Phases have a fixed order: EnforceMLPolicy,
  `trainer.env` of the TrainJob, EnforcePodGroupPolicy, PodNetwork, ComponentBuilder.
* It changes the `RuntimeInfo` that it is given and nothing else: never the TrainJob, never the cluster.
* What the author of the TrainJob or of the runtime can mend is a `BuildError`, which names the field and the remedy.
  Whatever else it raises, and a result that is not what the hook promises, is a defect of the plugin: the TrainJob gets
  a condition with the plugin's name (`JobsBuildFailed` while it is built), the work queue retries, and no other
  TrainJob notices.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from trainer.kube.selection import EVERYTHING, Selection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from trainer.api.trainjob import TrainJob
    from trainer.api.trainjob_status import ConditionType, JobStatus, NodeScale
    from trainer.framework.plugin_api.component import Component
    from trainer.framework.plugin_api.failure import FailedContainer
    from trainer.framework.plugin_api.review import AdmissionWarning
    from trainer.framework.plugin_api.runtime_info import RuntimeInfo
    from trainer.kube.cache.store import IndexFunction
    from trainer.kube.controller.handlers import MapFunction
    from trainer.kube.controller.predicates import Predicate
    from trainer.kube.field_errors import FieldError
    from trainer.kube.resource import Resource


@dataclass(frozen=True, slots=True)
class Watch:
    """Objects that a plugin wants to be cached. The service account of the manager must be allowed to list them."""

    resource: Resource
    """Their kind."""
    selection: Selection = EVERYTHING
    """Which of them, by labels and fields. Defaults to all; the manager adds the only namespace that it looks after.
    Anybody may write large objects with these labels: where kinds have room for data, select `metadata_only` (see
    `Component.metadata_only`)."""
    triggers: bool = True
    """Whether a change makes a TrainJob be looked at; otherwise the object is cached for reading.
    Defaults to true, because most of what is watched is what was built."""
    train_jobs: MapFunction | None = None
    """Namespace and name of the TrainJobs to look at when an object changes. Defaults to that which controls it; needed
    for what a child of a child is, such as a pod."""
    predicate: Predicate | None = None
    """Which changes matter. Defaults to all; a TrainJob has thousands of pods, of which few changes say anything."""
    optional: bool = False
    """Whether the API server may do without the kind, whose CRD others install; it is watched from when it is served.
    Until then `Reader.serves` is false and nothing of the kind can be built. Defaults to false: no kind, no manager."""
    delay: float = 0
    """Seconds for which further changes are waited for before a TrainJob is looked at. Defaults to none; thousands of
    objects of one TrainJob often change within a moment."""
    indexes: Mapping[str, IndexFunction] = field(default_factory=dict)
    """By what `Reader.keys` finds the objects, so that not all of them have to be read. Defaults to nothing. The names
    begin with that of the plugin, for two of the same name are refused."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a TrainJob ended."""

    type: Literal[ConditionType.COMPLETE, ConditionType.FAILED]
    """Whether it ended well."""
    reason: str
    """One CamelCase word, that of the child Jobs."""
    message: str
    """What the child Jobs say about it."""
    culprit: FailedContainer | None = None
    """Whose fault it was; the message of the condition tells of it, with the end of its log. Defaults to nobody."""
    jobs: Selection | None = None
    """Labels of the child Jobs and their pods, which are looked through for a culprit if the caches show none: they may
    lag behind. Defaults to not looking."""


@dataclass(frozen=True, slots=True)
class Impediment:
    """Something that keeps pods from running, and is told to people once: in a condition and in an event."""

    type: Literal[ConditionType.PENDING, ConditionType.RESTARTING]
    """The condition that it makes true: Pending if a pod cannot start, Restarting if pods are made again."""
    reason: str
    """One CamelCase word, such as ImagePullBackOff. A new one is an event."""
    headline: str
    """What is the matter, on one line. It should seldom change: each change is written, and that of a restart is an
    event as well, so a number of pods is better rounded."""
    details: Callable[[], str]
    """More about it, such as an example; asked for only when the headline is new, and need not stay the same."""
    patience: float = 0
    """Seconds for which a reason to wait has to last before people hear of it. Defaults to a moment, as it takes the
    other pods to come into the same trouble."""


@dataclass(frozen=True, slots=True)
class StatusCondition:
    """A condition of a TrainJob as a plugin sees it; its times are the controller's business."""

    type: str
    """Aspect of the state, in CamelCase; one of the plugin's `condition_types`."""
    holds: bool | None
    """Whether it holds; None when that is not known."""
    reason: str
    """Why, as one CamelCase word. A condition with a new status or reason is an event."""
    message: str = ""
    """Why, for people. Defaults to nothing."""


class Plugin(Protocol):
    """What all plugins have."""

    @property
    def name(self) -> str:
        """Unique name, for messages and configuration; that of the entry point.

        Lower-case letters, digits and `-`, at most 63, as for a DNS label.
        """


@runtime_checkable
class WatchExtension(Plugin, Protocol):
    """Startup: names resources to watch. Every kind that the plugin builds or reads must be among them."""

    def watches(self) -> Iterable[Watch]:
        """The resources; asked once, when the manager starts.

        A change of a watched object makes the TrainJob that controls it be reconciled. Several plugins may watch the
        same resource: it is cached once for each selection.
        """


@runtime_checkable
class CustomValidation(Plugin, Protocol):
    """PreExecution: says what is wrong with a TrainJob, when it is admitted and again before it is built."""

    def validate(
        self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob
    ) -> Iterable[FieldError | AdmissionWarning]:
        """The wrong fields of `new`, and what its author should know although it is accepted.

        It is asked about every TrainJob, whatever its runtime: begin with a look at `info.ml_policy`. Errors refuse
        the TrainJob; `AdmissionWarning`s reach its author through kubectl, and are dropped when it is built. Make
        errors with `trainer.kube.field_errors`, at paths from the root of the object such as `spec.trainer.numNodes`;
        what is wrong with the runtime has a path that begins with `info.runtime`.

        Args:
            info: the runtime with the TrainJob's settings, before any plugin has changed it; to be read only.
            old: what `new` replaces; None when it is new, and when it is built.
            new: the TrainJob.
        """


@runtime_checkable
class EnforceMLPolicy(Plugin, Protocol):
    """Build: tells the training containers what their framework needs to know (`spec.mlPolicy` of the runtime)."""

    @property
    def ml_policy_sources(self) -> frozenset[str]:
        """The members of `spec.mlPolicy` that the plugin answers for, such as `torch`.

        A runtime whose member no plugin answers for is refused, and only one plugin may answer for a member. Empty for
        a plugin that serves runtimes without a member, or that adds something to those of another plugin.
        """

    def enforce_ml_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Change `info` if its policy is one of ours: it is called for every runtime.

        `info.main_container` trains, `info.trainer` are its pods, and `info.trainer.count` is the number of nodes,
        which this hook may still change. Images, commands, resources and pod overrides of the TrainJob are in `info`
        already; its `trainer.env` follows and wins.
        """


@runtime_checkable
class EnforcePodGroupPolicy(Plugin, Protocol):
    """Build: tells pods which gang they belong to (`spec.podGroupPolicy` of the runtime).

    The object that describes the gang is made by `ComponentBuilder`, usually of the same plugin.
    """

    @property
    def pod_group_policy_sources(self) -> frozenset[str]:
        """The members of `spec.podGroupPolicy` that the plugin answers for, under the rules of `ml_policy_sources`."""

    def enforce_pod_group_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Change `info` if its policy is one of ours: `info.gang` are the pods that start together or not at all.

        Their labels and annotations are those of the pod set. The number of pods is final by now.
        """


@runtime_checkable
class PodNetwork(Plugin, Protocol):
    """Build: knows the DNS names of the pods."""

    def identify_pod_network(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Set `endpoints` of the pod sets, in the order of the pods' index; their number of pods is final by now."""


@runtime_checkable
class ComponentBuilder(Plugin, Protocol):
    """Build: makes objects of the finished RuntimeInfo."""

    def build(self, info: RuntimeInfo, train_job: TrainJob) -> Iterable[Component]:
        """The objects, in the TrainJob's namespace, without owner references; the same ones for the same input.

        Each has apiVersion, kind and a name, and no other plugin builds it.

        They are applied by server-side apply when they differ from what is there, as children of the TrainJob. Each
        kind must be among the plugin's `watches`. Copy what you take from `info` and do not change it: other builders
        read it, too. Kinds with immutable fields say with `Component.revise` what may still change.
        """


@runtime_checkable
class Suspension(Plugin, Protocol):
    """Build, when objects exist but their runtime is gone or no longer fits: `spec.suspend` works all the same."""

    def suspension(self, train_job: TrainJob) -> Iterable[Component]:
        """The objects that exist, to be suspended or resumed as `train_job.spec.suspend` says, not changed otherwise.

        Read them with the `Reader`, and leave out those that another object of the same name owns.
        """


@runtime_checkable
class TerminalCondition(Plugin, Protocol):
    """PostExecution: sees that the training has ended."""

    def terminal_condition(self, train_job: TrainJob) -> Outcome | None:
        """How it ended, with the reason and message of the child Jobs; None while it goes on.

        Asked until the TrainJob has ended, and never again. If several plugins see an end, a failure counts.
        """


@runtime_checkable
class JobsStatus(Plugin, Protocol):
    """PostExecution: counts the child Jobs. At most one plugin does."""

    def jobs_status(self, train_job: TrainJob) -> list[JobStatus] | None:
        """The counts; None when there are no child Jobs to count."""


@runtime_checkable
class NodeScaling(Plugin, Protocol):
    """PostExecution: says how many nodes an elastic training has (`status.scale`). At most one plugin does."""

    def node_scale(self, train_job: TrainJob) -> NodeScale | None:
        """The number of nodes and its bounds; None for a training of a fixed size."""


@runtime_checkable
class Impediments(Plugin, Protocol):
    """PostExecution: sees what keeps the pods from running, for the states Pending and Restarting."""

    def impediments(self, train_job: TrainJob) -> Iterable[Impediment]:
        """What there is at this moment, the gravest first; a reason appears at most once.

        Asked while the TrainJob is neither suspended nor ended, whenever anything watched changes: it must not read
        all pods of a large job each time, see `Watch.indexes`.
        """


@runtime_checkable
class StatusConditions(Plugin, Protocol):
    """PostExecution: adds conditions of its own to the status (KEP-2170, "State Transition")."""

    @property
    def condition_types(self) -> frozenset[str]:
        """The types of all conditions that the plugin may ever report, such as `acme.com/DataVerified`.

        No other plugin may have them, and those of the controller itself are refused when the plugin is registered.
        Other field managers must not write them; what those write under other types stays theirs.
        """

    def status_conditions(self, train_job: TrainJob) -> Iterable[StatusCondition]:
        """The conditions as they are at this moment.

        One that is not reported stays as it was, which spares the plugin from remembering it; report `holds=False` for
        what has ceased to be. Once the TrainJob has ended its conditions are final, and the plugin is not asked.
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
    JobsStatus,
    NodeScaling,
    Impediments,
    StatusConditions,
)
"""All of them, in the order in which a TrainJob meets them."""
