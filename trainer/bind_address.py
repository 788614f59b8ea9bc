"""Addresses to listen on, as they are written in configuration files."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[\w.-]*):([0-9]{1,5})", re.ASCII)


def _check(value: str) -> str:
    match = _ADDRESS.fullmatch(value)
    if match is None or int(match[2]) > 65535:
        raise ValueError("must be host:port")
    return value


BindAddress = Annotated[str, AfterValidator(_check)]
"""`host:port`; all addresses when the host is empty, and those of IPv6 in brackets."""


def host_and_port(address: str) -> tuple[str, int]:
    """The two parts of a `BindAddress`."""
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)
