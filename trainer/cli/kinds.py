"""Kinds beside TrainJobs, as commands show, check and change them; distributions beside this one bring them.

A command line names an object as kubectl does: `NAME` of a TrainJob, `KIND NAME...`, or `KIND/NAME`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Final, Protocol

from anyio.to_thread import run_sync

from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.cli.console import GetFormat
from trainer.cli.current_cluster import ConnectedCluster
from trainer.cli.errors import BadInputError, CommandError
from trainer.distributions import check_entry_point
from trainer.explain import Explanation
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.errors import Review
from trainer.framework.runtimes.runtimes import RuntimeSource
from trainer.kube.errors import KubeError
from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer.v1alpha1.discovery import Version

_GROUP: Final = "trainer.kinds"
"""The entry point group; its values are called without arguments and return a `Kind`."""
OF_EXTRAS: Final[Mapping[str, str]] = dict.fromkeys(
    ("sweep", "sweeps", "optimizationjob", "optimizationjobs", "optjob"), "sweeps"
)
"""What the kinds of our other distributions are called, each with the extra that brings it; a test compares them."""
_OF_TRAIN_JOBS: Final = frozenset({"trainjob", "trainjobs", "tj"})
_KINDS_OF_EXTRAS: Final = {OPTIMIZATION_JOBS.kind: "sweeps"}


@dataclass(frozen=True, slots=True)
class Asked:
    """What `trainer get KIND` is asked for."""

    name: str | None = None
    """Default: all of them."""
    namespace: str | None = None
    """Default: all of them."""
    form: GetFormat = GetFormat.TABLE
    is_watch: bool = False
    """Whether changes are shown until it is interrupted; with a name until that object has ended."""
    target: str = ""
    """The options that lead to the cluster, for commands that are suggested."""


class Kind(Protocol):
    """A kind of our API group whose objects have TrainJobs made, in the version of TrainJobs that a cluster serves."""

    @property
    def resource(self) -> Resource:
        """In v2alpha1."""

    @property
    def words(self) -> Sequence[str]:
        """What it is called on a command line, the usual word first."""

    def definitions(self, version: Version) -> list[Object]:
        """Its CustomResourceDefinitions, for a cluster that serves a version."""

    async def review(self, obj: Object, pipeline: Pipeline, runtimes: RuntimeSource, version: Version) -> Review:
        """The admission review of the creation of an object, and of the TrainJobs that it will have made."""

    def train_job(self, obj: Object, number: int) -> Object:
        """The TrainJob of this number, from 1, that its controller makes first of all of an object without errors.

        Raises:
            BadInputError: there is none of this number.
            CommandError: it cannot be made here; says why and what to do.
        """

    async def show(self, cluster: ConnectedCluster, asked: Asked) -> int:
        """Print one object in detail, or all as a table; returns the exit code of `trainer get`.

        Raises:
            GoneError: there is none of the name.
        """

    async def explanation(self, cluster: ConnectedCluster, name: str, namespace: str) -> Explanation:
        """Why an object does not get on.

        Raises:
            GoneError: there is none of the name.
        """

    async def delete(self, cluster: ConnectedCluster, name: str, namespace: str) -> str:
        """Delete an object with its TrainJobs; returns what was done, as one line.

        Raises:
            GoneError: there is none of the name.
        """

    async def set_suspend(self, cluster: ConnectedCluster, name: str, namespace: str, *, suspend: bool) -> str:
        """Suspend or resume an object with its TrainJobs; returns what was done, as one line.

        Raises:
            GoneError: there is none of the name.
            CommandError: it has ended.
        """


@dataclass(frozen=True, slots=True)
class Named:
    """An object that a command line names."""

    name: str
    kind: Kind | None = None
    """None: a TrainJob."""


def installed_kinds() -> list[Kind]:
    """The kinds that distributions beside this one bring.

    Raises:
        CommandError: one of them cannot be loaded.
    """
    return [_loaded(point) for point in entry_points(group=_GROUP)]


def _loaded(point: EntryPoint) -> Kind:
    try:
        check_entry_point(point)
        make: Callable[[], Kind] = point.load()
        return make()
    except Exception as error:
        distribution = point.dist.name if point.dist is not None else point.value
        raise CommandError(f"the kinds of {distribution} cannot be loaded: {error}") from error


def kind_called(word: str) -> Kind | None:
    """The kind that a word stands for; None where it stands for none, or for TrainJobs.

    Raises:
        CommandError: it is one of ours that is not installed.
    """
    for kind in installed_kinds():
        if word.lower() in kind.words:
            return kind
    if word.lower() in OF_EXTRAS:
        raise not_installed(OF_EXTRAS[word.lower()])
    return None


def further_types() -> dict[tuple[str, str], Resource]:
    """The resources of the installed kinds, by apiVersion and kind."""
    return {type_: kind.resource for kind in installed_kinds() for type_ in _types(kind)}


def further_definitions(version: Version) -> list[Object]:
    """The CustomResourceDefinitions of the installed kinds."""
    return [definition for kind in installed_kinds() for definition in kind.definitions(version)]


def extra_of(subject: str) -> str | None:
    """The extra that is missing for an object such as `OptimizationJob digits`, whose kind is unknown here."""
    return _KINDS_OF_EXTRAS.get(subject.partition(" ")[0])


def not_installed(extra: str) -> CommandError:
    """The error for what an extra brings."""
    return CommandError(f"{extra} are not installed: pip install 'trainer-operator[{extra}]'")


def named(words: Sequence[str]) -> list[Named]:
    """The objects that a command line names, each once; a kind without a name gives none.

    Raises:
        BadInputError: a word with a slash names no known kind.
        CommandError: a kind of ours is not installed.
    """
    first = words[0] if words else ""
    is_alone = len(words) == 1
    if first.lower() in _OF_TRAIN_JOBS and not is_alone:
        return list(dict.fromkeys(Named(name) for name in words[1:]))
    if not is_alone or (first in OF_EXTRAS and has_kinds()):
        kind = kind_called(first) if first and "/" not in first else None
        if kind is not None:
            return [Named(name, kind) for name in dict.fromkeys(words[1:])]
    return list(dict.fromkeys(_each_named(words)))


def _each_named(words: Sequence[str]) -> Iterator[Named]:
    known: dict[str, Kind | None] = dict.fromkeys(_OF_TRAIN_JOBS)
    for word in words:
        prefix, slash, name = word.partition("/")
        if not slash:
            yield Named(word)
            continue
        if prefix.lower() not in known:
            known[prefix.lower()] = kind_called(prefix)
            if known[prefix.lower()] is None:
                raise BadInputError(f"{word}: there is no kind {prefix}: write NAME of a TrainJob, or trainjob/NAME")
        if not name:
            raise BadInputError(f"{word}: the name is missing: write {prefix}/NAME")
        yield Named(name, known[prefix.lower()])


def has_kinds() -> bool:
    """Whether any is installed; loads none."""
    return bool(entry_points(group=_GROUP))


async def kind_with(cluster: ConnectedCluster, name: str, namespace: str) -> Kind | None:
    """The first installed kind that has an object of this name; None where none has, or it may not be read."""
    for kind in await run_sync(installed_kinds):
        try:
            await cluster.client.get(cluster.served.resource(kind.resource), name, namespace)
        except KubeError:
            continue
        return kind
    return None


def _types(kind: Kind) -> list[tuple[str, str]]:
    group = kind.resource.group
    return [(f"{group}/{version}", kind.resource.kind) for version in ("v1alpha1", "v2alpha1")]
