"""Service addresses: cluster IPs are recorded, unique and never routed."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from trainer.kube.api_semantics import statuses
from trainer.kube.resource import SERVICES
from trainer_devcluster.apiserver.storage.storage import Partition

if TYPE_CHECKING:
    from trainer_devcluster.apiserver.storage.storage import Storage

NETWORK = ipaddress.IPv4Network("10.96.0.0/16")
_RESERVED = 10
"""Addresses at the start of the network that are kept for the cluster itself."""
_COUNT = NETWORK.num_addresses - 1 - _RESERVED


class ServiceAddresses:
    """Finds addresses that no Service has.

    Each search begins after the last address that was found: a Service may have to pass webhooks before it is stored.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._next = 0

    def find(self) -> str:
        """A free address.

        Raises:
            ApiError: 500, all are taken.
        """
        services = self._storage.snapshot(Partition.of(SERVICES))
        taken = {(service.get("spec") or {}).get("clusterIP") for service in services}
        for _ in range(_COUNT):
            address = str(NETWORK[_RESERVED + self._next])
            self._next = (self._next + 1) % _COUNT
            if address not in taken:
                return address
        raise statuses.internal_error(f"failed to allocate an IP address: all of {NETWORK} are taken")
