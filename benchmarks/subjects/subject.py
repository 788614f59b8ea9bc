"""What is measured: one library, put to the same work as the others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeAlias

from benchmarks.arrivals import Arrivals
from benchmarks.measurement import Feature

ReadAnnotations: TypeAlias = "Callable[[], Mapping[str, str]]"
"""Looks up the object that a reconcile is about, as the library's users do, and returns its annotations."""

Reconcile: TypeAlias = Callable[[ReadAnnotations], Awaitable[None]]
"""The user's code in trials of throughput and latency."""


class Loading(StrEnum):
    """How the objects that exist already are fetched."""

    PAGES = "pages"
    WHOLE = "whole"
    STREAM = "stream"


class Keeping(StrEnum):
    """What the user's code keeps of what it is given."""

    OBJECTS = "objects"
    """The latest state of each object, in the form for which the library is used."""
    EVENTS = "events"
    """Each event, with everything that the library attaches to it."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What a subject shall watch."""

    server: str
    """Base URL of the stand-in."""
    resource: str
    """Plural name."""
    loading: Loading = Loading.PAGES
    """Ignored by a subject that lacks the feature."""
    keeping: Keeping = Keeping.OBJECTS


class Subject(Protocol):
    """One library; the modules of this package import it only once it runs."""

    @property
    def name(self) -> str:
        """How tables call it."""

    @property
    def distribution(self) -> str:
        """What pip calls it."""

    @property
    def lacks(self) -> Mapping[Feature, str]:
        """What it cannot be asked for, and why."""

    @property
    def serves_objects_apart(self) -> bool:
        """Whether reconciles run at once as many objects as there are, whatever the number of workers."""

    def caching(self, workload: Workload, arrivals: Arrivals) -> AbstractAsyncContextManager[None]:
        """Keep what the resource holds and tell of each object that the user's code is shown."""

    def reconciling(
        self, workload: Workload, reconcile: Reconcile, workers: int
    ) -> AbstractAsyncContextManager[Callable[[str, str], None]]:
        """Call `reconcile` for each change; yields what enqueues a namespace and name, if there is a work queue."""
