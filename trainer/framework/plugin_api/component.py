"""Components: the objects that a TrainJob becomes, and how each may still change once it exists."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

from trainer.api.trainjob import TrainJob
from trainer.framework.plugin_api.plugin_context import Reader
from trainer.kube.objects import Object, ObjectKey, key_of
from trainer.kube.resource import Resource
from trainer.workloads import JOBSETS

ADOPTED = "trainer.kubeflow.org/adopted"
"""Annotation of an object that another manager has made: it may differ from ours although nothing new is asked for."""

_DIGITS = 10


@dataclass(frozen=True, slots=True)
class Revision:
    """The object to apply in place of an existing one."""

    object: Object
    refused: tuple[str, ...] = ()
    """Paths of fields that differ from what the TrainJob asks for, but can no longer change."""
    fallback: Revision | None = None
    """What to apply instead where the API server rejects `object`, because not every cluster allows as much. Defaults
    to nothing: it is an error."""
    starts_pods: bool = False
    """Whether it starts pods, so that the objects which they need must exist. Defaults to false."""
    is_resumed: bool = False
    """Whether pods run although the TrainJob is suspended, since somebody else has resumed the object. Defaults to
    false."""
    replacement: Replacement | None = None
    """Counts instead of all else if the TrainJob asks for another `Component.fixed` than the object was created with.
    Defaults to none."""
    remedy: str = ""
    """With a fallback: why the cluster may reject `object`, and what its administrator can do. Defaults to nothing."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """That an object which cannot change as the TrainJob asks is deleted, and created again."""

    awaits: str = ""
    """What must have happened before, as in `pod a has ended`. Defaults to nothing: it is deleted at once. The plugin
    watches what ends it."""
    meanwhile: Revision | None = None
    """What is applied until then. Defaults to nothing."""
    consequence: str = ""
    """What people should know of it, as in `a runs again`. Defaults to nothing."""


@dataclass(frozen=True, slots=True)
class Loss:
    """How to detect that a generated object, which is never read, is gone."""

    seen: Callable[[], str]
    """Returns the evidence that pods miss the object: empty if there is none, and another text when there is more. It
    is called whenever the TrainJob is built, and must be cheap."""
    may_replace: Callable[[], bool]
    """Whether no pod still uses the lost object, so that all agree on a new one. It is called when `seen` is new."""


@dataclass(frozen=True, slots=True)
class Component:
    """One object to create; the deployer adds the owner reference."""

    resource: Resource
    object: Object
    revise: Callable[[Object], Revision | None] | None = None
    """For kinds with immutable fields: given the object that exists, what to apply to it, or None to leave it alone.
    Without this function the object is applied as it is."""
    fixed: Object | None = None
    """The part of `object` for which `Revision.replacement` counts; what others have changed of it is no reason.
    Defaults to none: the object is never replaced."""
    generated: Callable[[], Object] | None = None
    """For what must differ each time, such as keys: the rest of the object, members like `data` by name. It is called
    whenever pods are about to be created, and the object is created if it does not exist; it is never read or changed,
    nor need its kind be watched, and the manager needs only the right to create it. The name is one of `unique_name`:
    an object that exists is one of an earlier attempt."""
    asks_owner: bool = False
    """For what is generated under another name than one of `unique_name`: whose an object is that exists is asked for,
    for which the manager needs the right to get its kind. Defaults to false."""
    loss: Loss | None = None
    """For what is generated: how to detect that it is gone while pods need it. Defaults to no detection before pods are
    created again."""
    runs_pods: bool = False
    """Whether it starts pods: it is applied after everything that they may need. Defaults to false."""
    awaits: str = ""
    """For what pods must not start without: what ends its deletion, as in `a has taken its finalizer off`. While it is
    deleted to be created again, what runs pods is neither created nor resumed, and the condition Created says so.
    Defaults to nothing: pods may start meanwhile."""
    delete_when_finished: bool = False
    """Whether it is deleted when the TrainJob has finished. Defaults to false: it goes with the TrainJob."""
    metadata_only: bool = False
    """Whether the watch of its kind caches metadata alone, so that strangers cannot fill the memory with large objects.
    The object is then applied when its metadata or what the TrainJob asks for has changed; what others do to the rest
    of it is not seen and stays. Defaults to false."""
    plugin: str = ""
    """Name of the plugin that builds it, for later error messages; set by the pipeline."""
    runtime_digest: str = ""
    """Digest of the runtime that a component with pods was built on; the controller sets it. Defaults to none."""
    key: ObjectKey = field(init=False)
    """Namespace and name of the object."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", key_of(self.object))
        resource, obj = self.resource, self.object
        found = (obj.get("apiVersion", resource.api_version), obj.get("kind", resource.kind))
        if found != (resource.api_version, resource.kind):
            raise ValueError(f"{self.key.name} must have apiVersion {resource.api_version} and kind {resource.kind}")


def unique_name(train_job: TrainJob, suffix: str) -> str:
    """`<name of the TrainJob>-<suffix>-<hash of its uid>`: a name that no other object of the namespace has.

    Another TrainJob of the same name, before or after it, has another uid. A TrainJob that is not created yet has none;
    zeros stand for the hash then.
    """
    return f"{train_job.metadata.name}-{suffix}{_mark(train_job)}"


def is_unique_name(name: str, train_job: TrainJob) -> bool:
    """Whether `unique_name` has given this name to an object of the TrainJob."""
    return name.startswith(f"{train_job.metadata.name}-") and name.endswith(_mark(train_job))


def _mark(train_job: TrainJob) -> str:
    uid = train_job.metadata.uid
    return f"-{hashlib.sha256(uid.encode()).hexdigest()[:_DIGITS] if uid else '0' * _DIGITS}"


def runs_pods(reader: Reader, train_job: ObjectKey) -> bool:
    """Whether the JobSet of a TrainJob, which has its name, exists and is not suspended."""
    jobset = reader.get(JOBSETS, train_job)
    return jobset is not None and not jobset["spec"].get("suspend")


def revise_while_suspended(reader: Reader, train_job: TrainJob, desired: Object) -> Callable[[Object], Revision | None]:
    """`Component.revise` for what pods depend on: it follows the TrainJob until they run, and is then left alone.

    They do not run while the JobSet does not exist or is suspended. The plugin must watch JobSets.
    """
    key = ObjectKey(train_job.metadata.namespace or "", train_job.metadata.name)

    def revise(_existing: Object) -> Revision | None:
        is_suspended = train_job.spec.suspend or not runs_pods(reader, key)
        return Revision(desired) if is_suspended else None

    return revise
