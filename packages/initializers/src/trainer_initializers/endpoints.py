"""Which server stands in for that of the provider: ENDPOINT, ENDPOINT_URL, or a variable of the provider."""

from __future__ import annotations

from urllib.parse import urlsplit

from trainer_initializers.errors import TransferError, without_secrets
from trainer_initializers.options import TransferOptions

NAMES = ("ENDPOINT", "ENDPOINT_URL")
"""Of the released initializers, and of KEP-2170."""
_SCHEMES = ("https", "http")


def endpoint_of(options: TransferOptions, *others: str) -> str | None:
    """The URL of the server, https where no scheme is given; None where no variable names one.

    The other variables count where neither of the two is set.

    Raises:
        TransferError: it is no URL of a server, or two variables name two of them.
    """
    found = {name: url for name in NAMES if (url := _endpoint(options, name))}
    if len(set(found.values())) > 1:
        raise TransferError("ENDPOINT and ENDPOINT_URL name two servers: give one of them")
    return next(iter(found.values()), None) or next((url for name in others if (url := _endpoint(options, name))), None)


def _endpoint(options: TransferOptions, name: str) -> str | None:
    text = (options.variable(name) or "").strip()
    if not text:
        return None
    url = text if "://" in text else f"https://{text}"
    if not all("!" <= character <= "~" for character in url):
        raise _no_server(options, name, "has spaces or characters that no URL has")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _no_server(options, name, str(error)) from None
    if parts.scheme not in _SCHEMES:
        raise _no_server(options, name, f"has the scheme {parts.scheme}")
    if not parts.hostname or parts.query or parts.fragment or "\\" in url or port == 0:
        raise _no_server(options, name, "names no host" if not parts.hostname else "is more than a server")
    if "@" in parts.netloc:
        raise _no_server(options, name, "has a user, and credentials come by secretRef")
    return parts.geturl().rstrip("/")


def _no_server(options: TransferOptions, name: str, fault: str) -> TransferError:
    shown = without_secrets(options.variable(name) or "", options.environ)
    return TransferError(f"{name}={shown!r} {fault}: write it as s3.example.com or https://s3.example.com:9000")
