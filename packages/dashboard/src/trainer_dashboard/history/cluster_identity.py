"""The identity of a cluster, by which a database that several recorders share keeps their trainings apart."""

from __future__ import annotations

from trainer.kube.client import Client
from trainer.kube.errors import ForbiddenError
from trainer.kube.logger import get_logger
from trainer.kube.objects import uid_of
from trainer.kube.resource import NAMESPACES

log = get_logger(__name__)


async def cluster_of(client: Client, server: str) -> str:
    """The uid of the namespace kube-system, by which tools tell clusters apart; else the address of the API server.

    Raises:
        KubeError: the cluster does not answer.
    """
    try:
        return uid_of(await client.get(NAMESPACES, "kube-system"))
    except ForbiddenError as error:
        text = "the address of the API server stands for the cluster, which others may know by the uid of kube-system"
        log.warning(text, server=server, error=str(error))
        return server
