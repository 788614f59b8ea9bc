"""What waits to be recorded, as namespaces take turns with it."""

from __future__ import annotations

from typing import NamedTuple


class WaitingTraining(NamedTuple):
    """A TrainJob that has changed, or whose pods have."""

    namespace: str
    uid: str


class WaitingEvent(NamedTuple):
    """An event about a TrainJob."""

    namespace: str
    uid: str
    """Of the TrainJob."""
    event: str


class WaitingLog(NamedTuple):
    """The log of a container that has ended."""

    namespace: str
    uid: str
    """Of the TrainJob."""
    node: str
    container: str


class WaitingSweep(NamedTuple):
    """An OptimizationJob that has changed."""

    namespace: str
    uid: str


def namespace_of(waiting: WaitingTraining | WaitingEvent | WaitingLog | WaitingSweep) -> str:
    """The namespace whose turn it takes."""
    return waiting.namespace
