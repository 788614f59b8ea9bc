"""By what trainings of several clusters in one database are told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.errors import ForbiddenError
from trainer.kube.objects import uid_of
from trainer.kube.resource import NAMESPACES

if TYPE_CHECKING:
    from trainer.kube.client import Client


async def cluster_of(client: Client, server: str) -> str:
    """The uid of the namespace kube-system, by which tools tell clusters apart; else the address of the API server.

    Raises:
        KubeError: the cluster does not answer.
    """
    try:
        return uid_of(await client.get(NAMESPACES, "kube-system"))
    except ForbiddenError:
        return server
