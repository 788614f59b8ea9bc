"""Handing out addresses."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

from trainer_devcluster.kubelet.errors import PodNetworkError


class AddressPool:
    """Addresses of one network in turn, so that a released one is not taken again at once.

    The network, broadcast and first host address are left out.
    """

    def __init__(self, network: IPv4Network) -> None:
        self._first = int(network.network_address) + 2
        self._count = network.num_addresses - 3
        self._next = 0
        self._used: set[int] = set()

    def allocate(self) -> str:
        """The next free address.

        Raises:
            PodNetworkError: there is none.
        """
        for offset in range(self._count):
            number = (self._next + offset) % self._count
            if number not in self._used:
                self._used.add(number)
                self._next = (number + 1) % self._count
                return str(IPv4Address(self._first + number))
        raise PodNetworkError(f"all {self._count} pod addresses are in use: delete some pods")

    def release(self, address: str) -> None:
        """Make an address available again."""
        self._used.discard(int(IPv4Address(address)) - self._first)
