"""Trust: TLS settings for calls to webhooks, made from the `caBundle` of each."""

from __future__ import annotations

import base64
import binascii
import ssl
from typing import Final

import anyio

_KEPT: Final = 64


class TrustError(Exception):
    """A `caBundle` that holds no certificates."""


class TrustStore:
    """Keeps one set of TLS settings per bundle, so that connections are used again."""

    def __init__(self) -> None:
        self._contexts: dict[str, ssl.SSLContext] = {}

    async def context(self, ca_bundle: str) -> ssl.SSLContext:
        """Settings that trust the certificates of a bundle and no other; "" trusts the machine's authorities.

        Raises:
            TrustError: the bundle cannot be read.
        """
        context = self._contexts.get(ca_bundle)
        if context is None:
            context = await anyio.to_thread.run_sync(_load, ca_bundle)
            if len(self._contexts) >= _KEPT:
                self._contexts.clear()
            self._contexts[ca_bundle] = context
        return context


def _load(ca_bundle: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not ca_bundle:
        context.load_default_certs()
        return context
    try:
        context.load_verify_locations(cadata=base64.b64decode(ca_bundle, validate=True).decode("ascii"))
    except (binascii.Error, UnicodeDecodeError, ssl.SSLError, ValueError) as error:
        raise TrustError("unable to load root certificates: unable to parse bytes as PEM block") from error
    # Every certificate of the bundle is trusted as it is, also one that is no authority.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context
