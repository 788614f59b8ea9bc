"""The gate of the dashboard: who may ask, and under which name.

Any page that the user visits may send requests to loopback, under a name of its own whose address it has changed to
ours (DNS rebinding), and any account of the machine may connect. So requests must be for our address, and those about
the cluster must carry the token, which only the user has seen. Browsers add no token by themselves, so that there is
nothing to forge.
"""

from __future__ import annotations

import hmac
import secrets
from http import HTTPStatus
from typing import TYPE_CHECKING

from trainer.dashboard.answers import data, refusal
from trainer.kube.access import bearer_token

if TYPE_CHECKING:
    from aiohttp import web

_BYTES = 32
_HOSTS = ("127.0.0.1", "localhost")


class Gate:
    """Refuses requests that are not from the user's page.

    The token is for the address that the terminal shows. The code is for the command line of the browser, which all
    accounts of a machine can read: the first page that sends it gets the token, and nobody after that.
    """

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(_BYTES)
        """What requests about the cluster carry; valid as long as this process."""
        self.code = secrets.token_urlsafe(_BYTES)
        """What can be exchanged for the token, once."""
        self._is_exchanged = False

    def refusal_of_host(self, request: web.BaseRequest, port: int) -> web.Response | None:
        """Why the address that the request is for is not ours; None if it is."""
        if request.headers.getall("Host", []) in [[f"{host}:{port}"] for host in _HOSTS]:
            return None
        where = f"open http://{_HOSTS[0]}:{port} instead"
        return refusal(HTTPStatus.MISDIRECTED_REQUEST, f"the dashboard does not answer under this name; {where}")

    def refusal_of_token(self, request: web.BaseRequest) -> web.Response | None:
        """Why the request is not let in; None if it is."""
        if _equals(bearer_token(request.headers.get("Authorization", "")), self.token):
            return None
        return refusal(
            HTTPStatus.UNAUTHORIZED,
            "this address is not valid any more; open the one that `trainer dashboard` has printed",
            **{"WWW-Authenticate": "Bearer"},
        )

    def exchange(self, request: web.BaseRequest) -> web.Response:
        """Give the token for the code."""
        is_right = _equals(bearer_token(request.headers.get("Authorization", "")), self.code)
        if not is_right or self._is_exchanged:
            return refusal(
                HTTPStatus.UNAUTHORIZED,
                "the browser was opened with an address that works once; open the one that `trainer dashboard` has"
                " printed",
            )
        self._is_exchanged = True
        return data({"token": self.token})


def _equals(given: str | None, expected: str) -> bool:
    return given is not None and hmac.compare_digest(given.encode(), expected.encode())
