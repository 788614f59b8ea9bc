"""Addresses to listen on, as they are written in configuration files."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator, Field

_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[\w.-]*):([0-9]{1,5})", re.ASCII)
NOWHERE: Final = "0"
"""For no server at all."""


def _check(value: str) -> str:
    match = _ADDRESS.fullmatch(value)
    if value != NOWHERE and (match is None or int(match[2]) > 65535):
        raise ValueError('must be host:port, or "0" for no server')
    return value


BindAddress = Annotated[str, AfterValidator(_check)]
"""`host:port`; all addresses when the host is empty, those of IPv6 in brackets, and no server at all for `"0"`."""

Port = Annotated[int, Field(ge=1, le=65535)]
"""A port to listen on."""


def host_and_port(address: str) -> tuple[str, int] | None:
    """The two parts of a `BindAddress`; None when there is to be no server."""
    if address == NOWHERE:
        return None
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)
