"""How a failed exchange with the API server becomes a typed error that says what to do."""

from __future__ import annotations

import errno
import re
import socket
import ssl
from collections.abc import Mapping
from typing import Any

import aiohttp
import msgspec

from trainer.kube.errors import ApiError, TransportError, UntrustedServerError, error_from_status
from trainer.kube.json_text import decode_json

_status = msgspec.json.Decoder(dict[str, Any])

_LONGEST = 200
"""Characters of aiohttp's text in an error; it may quote thousands of a log that is cut at a wrong place."""


class BrokenConnectionError(aiohttp.ClientError):
    """The server closed a connection on which a request was under way.

    A class that aiohttp does not know: it would repeat the request itself (GET, PUT and DELETE alike), uncounted.
    """


def is_broken_connection(error: BaseException | None) -> bool:
    """Whether the server went away, as opposed to not being there, not being trusted, or being slow."""
    return isinstance(
        error, BrokenConnectionError | aiohttp.ClientPayloadError | ConnectionResetError | BrokenPipeError
    )


def transport_error(error: Exception, request: str) -> TransportError:
    """What kept the request (method and URL) from getting an answer, in one line with the remedy."""
    match error:
        case aiohttp.ClientProxyConnectionError(os_error=cause):
            return TransportError(
                f"{request}: the proxy at {error.host}:{error.port} does not answer ({_text(cause)}): "
                "correct proxy-url in the kubeconfig, or $HTTPS_PROXY and $NO_PROXY"
            )
        case aiohttp.ClientHttpProxyError():
            return TransportError(
                f"{request}: the proxy refused to connect (HTTP status {error.status} {error.message}): "
                "check its rules, or name the server in $NO_PROXY"
            )
        case aiohttp.ClientConnectorCertificateError(certificate_error=cause):
            return UntrustedServerError(f"{request}: {_untrusted(cause)}")
        case aiohttp.ClientConnectorError(os_error=cause):
            return _not_connected(error.host, error.port, cause, request)
        case aiohttp.ConnectionTimeoutError():
            return TransportError(f"{request}: timed out while connecting: check the server's URL and the firewall")
        case TimeoutError():
            return TransportError(f"{request}: timed out: the server sent nothing for too long")
        case BrokenConnectionError() if "ALERT_CERTIFICATE_REQUIRED" in str(error):
            return UntrustedServerError(
                f"{request}: the server wants a client certificate: set client-certificate and client-key of the user"
            )
        case aiohttp.ClientError() | OSError() if is_broken_connection(error):
            hint = "; if it speaks TLS, its URL must begin with https://" if " http://" in request else ""
            return TransportError(f"{request}: the server closed the connection ({_text(error)}){hint}")
        case _:
            return TransportError(f"{request}: {_text(error)}")


def answer_error(code: int, headers: Mapping[str, str], body: bytes, request: str) -> ApiError:
    """The typed error for an answer that is not 2xx; one without a Status comes from something before the server."""
    try:
        status = decode_json(_status, body)
    except msgspec.DecodeError:
        status = {"message": " ".join(body.decode(errors="replace").split())[:1000]}
    if 300 <= code < 400:
        status = {"message": f"{request}: HTTP status {code}, go to {headers.get('Location')}: {_OTHER}"}
    retry_after = headers.get("Retry-After", "")
    if _SECONDS.fullmatch(retry_after):
        details = status.setdefault("details", {})
        if isinstance(details, dict):
            details.setdefault("retryAfterSeconds", int(retry_after))
    return error_from_status(code, status)


_SECONDS = re.compile(r"[0-9]{1,9}")
_OTHER = "this is not a Kubernetes API server; correct the server's URL"


def _untrusted(error: Exception) -> str:
    problem = error.verify_message if isinstance(error, ssl.SSLCertVerificationError) else _text(error)
    if "ostname mismatch" in problem or "IP address mismatch" in problem:
        remedy = "correct the server's URL, or name what the certificate says in tls-server-name"
    elif "expired" in problem or "not yet valid" in problem:
        remedy = "renew it on the server, and compare the clocks of both machines"
    else:
        remedy = "correct certificate-authority: it must be the CA of this cluster"
    return f"the server's certificate is not trusted ({problem.rstrip('.')}): {remedy}"


def _no_tls(error: OSError) -> str:
    reason = getattr(error, "reason", None) or _text(error)
    if reason in {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL", "HTTP_REQUEST"}:
        return f"the server does not speak TLS ({reason}): use http:// in its URL, or correct the port"
    return f"TLS failed ({reason}): check the server's URL and its certificate"


def _not_connected(host: str, port: int | None, cause: OSError, request: str) -> TransportError:
    match cause:
        case ssl.SSLCertVerificationError():
            return UntrustedServerError(f"{request}: {_untrusted(cause)}")
        case ssl.SSLError():
            return UntrustedServerError(f"{request}: {_no_tls(cause)}")
        case socket.gaierror():
            problem = f"the host name {host} is unknown ({_text(cause)})"
            remedy = "correct the server's URL, or check the name server"
        case OSError(errno=errno.ECONNREFUSED):
            problem = f"nothing listens at {host}:{port} (connection refused)"
            remedy = "check that the cluster runs, and correct the server's URL"
        case _:
            problem = f"cannot connect to {host}:{port} ({_text(cause)})"
            remedy = "check the network and the server's URL"
    return TransportError(f"{request}: {problem}: {remedy}")


def _text(error: BaseException) -> str:
    """Without the address that aiohttp's own texts repeat, nor all that they quote of an answer."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
