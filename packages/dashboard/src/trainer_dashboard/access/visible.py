"""What a user may list of a kind: in all namespaces, else in those whose TrainJobs they see."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

import anyio

from trainer.kube.client import Client
from trainer.kube.errors import ForbiddenError, causes_of
from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer.kube.selection import Selection

LISTED: Final = 200
"""Most namespaces that one answer reads."""
_AT_ONCE: Final = 8
_NAMED: Final = 5
"""Namespaces that a sentence names."""


@dataclass(frozen=True, slots=True)
class NamespaceScope:
    """The namespaces that a page shows to a user."""

    namespace: str
    """The only one; "" for all that the user may see."""
    namespaces: Callable[[], Awaitable[list[str]]]
    """Finds those whose TrainJobs the user may list."""


@dataclass(slots=True)
class Visible:
    """The objects of a kind that a user may list."""

    objects: list[Object] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Why the list is incomplete."""
    notes: list[str] = field(default_factory=list)
    """Which namespaces are left out."""


async def visible(client: Client, resource: Resource, scope: NamespaceScope) -> Visible:
    """The objects of a namespaced kind, with the rights of the user alone.

    Raises:
        NotFoundError: the kind is not served.
        KubeError: the API server does not answer.
    """
    try:
        return Visible((await client.list(resource, Selection(scope.namespace or None))).items)
    except ForbiddenError as error:
        forbidden = error
    names = [] if scope.namespace else await scope.namespaces()
    if not names:
        return Visible(problems=[f"{resource.plural} cannot be listed: {forbidden}"])
    found = await _each(client, resource, names[:LISTED])
    found.notes.append(
        f"{resource.plural} are shown of the namespaces whose TrainJobs you see: you may not list them in all"
    )
    if names[LISTED:]:
        found.problems.append(f"{resource.plural} are shown of the first {LISTED} of {len(names)} namespaces")
    return found


async def _each(client: Client, resource: Resource, names: Iterable[str]) -> Visible:
    objects: dict[str, list[Object]] = {}
    refusals: dict[str, ForbiddenError] = {}
    turns = anyio.CapacityLimiter(_AT_ONCE)

    async def read(name: str) -> None:
        async with turns:
            try:
                objects[name] = (await client.list(resource, Selection(name))).items
            except ForbiddenError as error:
                refusals[name] = error

    try:
        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(read, name)
    except ExceptionGroup as group:
        raise causes_of(group)[0] from None
    found = Visible([obj for name in sorted(objects) for obj in objects[name]])
    if refusals:
        first = refusals[min(refusals)]
        found.problems.append(f"{resource.plural} cannot be listed in {_named(sorted(refusals))}: {first}")
    return found


def _named(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
