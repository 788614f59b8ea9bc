"""Viewers: who looks at the page, what they may see of what the server has, and the client that acts for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

import anyio

from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.client import Client
from trainer.kube.errors import causes_of
from trainer.kube.objects import ObjectKey
from trainer.kube.resource import Resource
from trainer_dashboard.access.actions import may

_AT_ONCE: Final = 10
"""Questions of one viewer that are sent side by side."""


class Viewer(Protocol):
    """Whoever has sent a request."""

    @property
    def name(self) -> str:
        """What the page calls them; empty where nobody else could look at it."""

    @property
    def client(self) -> Client:
        """Sends requests with their rights; its users see TrainJobs converted to v2alpha1."""

    async def may(self, verb: str, resource: Resource, key: ObjectKey, *, subresource: str = "") -> bool:
        """Whether they may see what the server has read of this; an empty name stands for any, as does a namespace.

        Raises:
            KubeError: the API server does not say.
        """

    async def is_signed_in(self) -> bool:
        """Whether streams may go on: nothing has ended what they have signed in with.

        Raises:
            KubeError: the API server does not say.
        """


class Owner:
    """Whoever has started the dashboard: all that the server has was read with their own rights."""

    name = ""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def may(self, verb: str, resource: Resource, key: ObjectKey, *, subresource: str = "") -> bool:  # noqa: ARG002
        """See `Viewer`; the API server has said it already."""
        return True

    async def is_signed_in(self) -> bool:
        """See `Viewer`."""
        return True


class _Asker(Owner):
    """The owner before what others have read: the API server says anew what they may see of it."""

    async def may(self, verb: str, resource: Resource, key: ObjectKey, *, subresource: str = "") -> bool:
        """See `Viewer`."""
        return await may(self.client, verb, resource, key, subresource=subresource)


def before_records(viewer: Viewer) -> Viewer:
    """A viewer of what somebody else's rights may have recorded, such as the history."""
    return _Asker(viewer.client) if isinstance(viewer, Owner) else viewer


class ListableNamespaces:
    """The namespaces whose objects of a kind a viewer may list, TrainJobs by default."""

    def __init__(self, viewer: Viewer, resource: Resource = TRAIN_JOBS) -> None:
        self._viewer = viewer
        self._resource = resource
        self._has_all = False
        self._allowed: dict[str, bool] = {}

    def has(self, namespace: str) -> bool:
        """Whether a namespace that was asked about is one of them."""
        return self._has_all or self._allowed.get(namespace, False)

    async def ask(self, namespaces: Iterable[str]) -> None:
        """Ask about those that were not asked about yet.

        Raises:
            KubeError: the API server does not say.
        """
        turns = anyio.CapacityLimiter(_AT_ONCE)

        async def ask(namespace: str) -> None:
            async with turns:
                is_allowed = await may_list(self._viewer, namespace, self._resource)
            # `renew` may have had a newer answer meanwhile.
            self._allowed.setdefault(namespace, is_allowed)

        if self._has_all:
            return
        try:
            async with anyio.create_task_group() as tasks:
                for namespace in set(namespaces) - self._allowed.keys():
                    tasks.start_soon(ask, namespace)
        except ExceptionGroup as group:  # of questions that were sent side by side
            raise causes_of(group)[0] from None

    async def renew(self, namespaces: Iterable[str]) -> set[str]:
        """Ask about all of them anew; returns those whose answer is another one than before.

        Raises:
            KubeError: the API server does not say.
        """
        present, asked = ListableNamespaces(self._viewer, self._resource), set(namespaces)
        present._has_all = await may_list(self._viewer, "", self._resource)
        await present.ask(asked)
        changed = {namespace for namespace in asked if present.has(namespace) != self.has(namespace)}
        self._has_all = present._has_all
        # Others may have been asked about meanwhile.
        self._allowed |= present._allowed
        return changed


async def may_list(viewer: Viewer, namespace: str, resource: Resource = TRAIN_JOBS) -> bool:
    """Whether they may list what there is of a kind in a namespace; with an empty one, all of it. Default: TrainJobs.

    Raises:
        KubeError: the API server does not say.
    """
    return await viewer.may("list", resource, ObjectKey(namespace, ""))
