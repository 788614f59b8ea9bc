"""Service addresses: cluster IPs are recorded, unique and never routed."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from trainer.devcluster.apiserver import status
from trainer.devcluster.apiserver.storage import Partition
from trainer.kube.resource import SERVICES

if TYPE_CHECKING:
    from trainer.devcluster.apiserver.storage import Storage

NETWORK = ipaddress.IPv4Network("10.96.0.0/16")
_RESERVED = 10
"""Addresses at the start of the network that are kept for the cluster itself."""


def free_service_ip(storage: Storage) -> str:
    """The lowest address that no Service has.

    Raises:
        StatusError: 500, all are taken.
    """
    taken = {(service.get("spec") or {}).get("clusterIP") for service in storage.snapshot(Partition.of(SERVICES))}
    for offset in range(_RESERVED, NETWORK.num_addresses - 1):
        address = str(NETWORK[offset])
        if address not in taken:
            return address
    raise status.internal_error(f"failed to allocate an IP address: all of {NETWORK} are taken")
