"""Service addresses: cluster IPs are recorded, unique and never routed."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from trainer.kube.api_semantics import statuses
from trainer.kube.resource import SERVICES
from trainer_devcluster.apiserver.storage.storage import Partition

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer_devcluster.apiserver.storage.storage import Storage

NETWORK = ipaddress.IPv4Network("10.96.0.0/16")
_RESERVED = 10
"""Addresses at the start of the network that are kept for the cluster itself."""


class ServiceAddresses:
    """Finds addresses that no Service has and that no write under way is about to give to one."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._claimed: WeakValueDictionary[str, _Claim] = WeakValueDictionary()

    def claim(self) -> Callable[[], str]:
        """A function that returns a free address, which stays reserved for as long as somebody holds the function.

        Webhooks look at a Service between the choice of its address and its storing. The function raises ApiError:
        500, all addresses are taken.
        """
        claim = _Claim()
        return lambda: self._take(claim)

    def _take(self, claim: _Claim) -> str:
        services = self._storage.snapshot(Partition.of(SERVICES))
        taken = {(service.get("spec") or {}).get("clusterIP") for service in services} | set(self._claimed)
        for offset in range(_RESERVED, NETWORK.num_addresses - 1):
            address = str(NETWORK[offset])
            if address not in taken:
                self._claimed[address] = claim
                return address
        raise statuses.internal_error(f"failed to allocate an IP address: all of {NETWORK} are taken")


class _Claim:
    """One write that may need an address."""
