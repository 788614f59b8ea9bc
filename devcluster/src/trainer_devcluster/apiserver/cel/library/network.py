"""IP addresses and networks."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

from trainer_devcluster.apiserver.cel.errors import EvaluationError

if TYPE_CHECKING:
    from trainer_devcluster.apiserver.cel.signatures import Function

_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_Interface: TypeAlias = ipaddress.IPv4Interface | ipaddress.IPv6Interface
_PREFIX_LENGTH: Final = re.compile(r"0|[1-9]\d{0,2}", re.ASCII)
_BROADCAST: Final = ipaddress.IPv4Address("255.255.255.255")


@dataclass(frozen=True, slots=True)
class Ip:
    """An address."""

    CEL_TYPE: ClassVar[str] = "net.IP"
    address: _Address

    @classmethod
    def parse(cls, text: str) -> Ip:
        """Read an address.

        Raises:
            EvaluationError: it is none, has a zone, or is IPv4 dressed up as IPv6.
        """
        problem = f'IP Address "{text}" parse error during conversion from string: '
        try:
            address = ipaddress.ip_address(text)
        except ValueError as error:
            raise EvaluationError(f'{problem}ParseAddr("{text}"): unable to parse IP') from error
        if isinstance(address, ipaddress.IPv6Address) and address.scope_id:
            raise EvaluationError(f"{problem}IP address with zone value is not allowed")
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            raise EvaluationError(f"{problem}IPv4-mapped IPv6 address is not allowed")
        return cls(address)

    def __str__(self) -> str:
        return str(self.address)

    @property
    def family(self) -> int:
        """4 or 6."""
        return self.address.version

    @property
    def is_global_unicast(self) -> bool:
        """Whether it is none of the special ones; private addresses count."""
        address = self.address
        special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
        return not special and address != _BROADCAST

    @property
    def is_link_local_multicast(self) -> bool:
        """Whether it is in 224.0.0.0/24 or ff02::/16."""
        network = "224.0.0.0/24" if self.family == 4 else "ff02::/16"
        return self.address in ipaddress.ip_network(network)


@dataclass(frozen=True, slots=True)
class Cidr:
    """An address with the length of its network's prefix."""

    CEL_TYPE: ClassVar[str] = "net.CIDR"
    interface: _Interface

    @classmethod
    def parse(cls, text: str) -> Cidr:
        """Read a network.

        Raises:
            EvaluationError: it is none.
        """
        address, slash, length = text.partition("/")
        try:
            well_formed = slash and "%" not in address and _PREFIX_LENGTH.fullmatch(length)
            interface = ipaddress.ip_interface(text if well_formed else "")
        except ValueError as error:
            problem = f'network address parse error during conversion from string: netip.ParsePrefix("{text}")'
            raise EvaluationError(problem) from error
        return cls(interface)

    def __str__(self) -> str:
        return self.interface.with_prefixlen

    def holds(self, address: _Address) -> bool:
        """Whether an address is in the network."""
        return address.version == self.interface.version and address in self.interface.network

    def covers(self, other: Cidr) -> bool:
        """Whether another network is a part of this one."""
        length = self.interface.network.prefixlen
        return self.holds(other.interface.ip) and length <= other.interface.network.prefixlen


def _is_ip(text: str) -> bool:
    try:
        Ip.parse(text)
    except EvaluationError:
        return False
    return True


def _is_cidr(text: str) -> bool:
    try:
        Cidr.parse(text)
    except EvaluationError:
        return False
    return True


SIGNATURES: Final[list[tuple[str, Function]]] = [
    ("ip(string) -> net.IP", Ip.parse),
    ("isIP(string) -> bool", _is_ip),
    ("::ip.isCanonical(string) -> bool", lambda text: str(Ip.parse(text)) == text),
    ("net.IP.family() -> int", lambda ip: ip.family),
    ("net.IP.isUnspecified() -> bool", lambda ip: ip.address.is_unspecified),
    ("net.IP.isLoopback() -> bool", lambda ip: ip.address.is_loopback),
    ("net.IP.isLinkLocalMulticast() -> bool", lambda ip: ip.is_link_local_multicast),
    ("net.IP.isLinkLocalUnicast() -> bool", lambda ip: ip.address.is_link_local),
    ("net.IP.isGlobalUnicast() -> bool", lambda ip: ip.is_global_unicast),
    ("cidr(string) -> net.CIDR", Cidr.parse),
    ("isCIDR(string) -> bool", _is_cidr),
    ("net.CIDR.containsIP(net.IP) -> bool", lambda cidr, ip: cidr.holds(ip.address)),
    ("net.CIDR.containsIP(string) -> bool", lambda cidr, text: cidr.holds(Ip.parse(text).address)),
    ("net.CIDR.containsCIDR(net.CIDR) -> bool", lambda cidr, other: cidr.covers(other)),
    ("net.CIDR.containsCIDR(string) -> bool", lambda cidr, text: cidr.covers(Cidr.parse(text))),
    ("net.CIDR.ip() -> net.IP", lambda cidr: Ip(cidr.interface.ip)),
    ("net.CIDR.masked() -> net.CIDR", lambda cidr: Cidr(ipaddress.ip_interface(cidr.interface.network))),
    ("net.CIDR.prefixLength() -> int", lambda cidr: cidr.interface.network.prefixlen),
]
