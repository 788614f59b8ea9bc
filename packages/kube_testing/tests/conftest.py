"""Fixtures of all tests of the test aids, and watches that they look at."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from tests.kube.conftest import Background, background, clock
from trainer.kube.client import Client, WatchEvent, WatchOptions
from trainer.kube.errors import KubeError
from trainer.kube.objects import name_of
from trainer.kube.resource import PODS, Resource
from trainer.kube.selection import EVERYTHING, Selection

__all__ = ["background", "clock", "follow"]


class Followed:
    """What one watch has sent so far, and how it ended."""

    def __init__(self) -> None:
        self.events: list[WatchEvent] = []
        self.has_ended = False
        self.error: KubeError | None = None

    @property
    def seen(self) -> list[str]:
        """Type and object of each event."""
        return [f"{event.type} {name_of(event.object)}".strip() for event in self.events]

    async def run(self, client: Client, resource: Resource, selection: Selection, options: WatchOptions) -> None:
        """Watch to the end."""
        try:
            async with client.watch(resource, selection, options) as events:
                async for event in events:
                    self.events.append(event)
        except KubeError as error:
            self.error = error
        self.has_ended = True


Follow: TypeAlias = Callable[..., Followed]


@pytest.fixture
def follow(background: Background) -> Follow:
    """Starts a watch in the background."""

    def start(
        client: Client,
        resource: Resource = PODS,
        selection: Selection = EVERYTHING,
        options: WatchOptions | None = None,
    ) -> Followed:
        followed = Followed()
        background(followed.run(client, resource, selection, options or WatchOptions("1")))
        return followed

    return start
