"""Authenticators of the dashboard: who may ask, and under which name.

Any page that the user visits may send requests to loopback, under a name of its own whose address it has changed to
ours (DNS rebinding), and any account of the machine may connect. So requests must be for our address, and those about
the cluster must carry the token, which only the user has seen. Browsers add no token by themselves, so that there is
nothing to forge. `trainer_dashboard.access.cluster_authenticator` has that of a dashboard for many users.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from http import HTTPStatus
from typing import Literal, Protocol, TypeAlias

from aiohttp import web

from trainer.kube.access import bearer_token
from trainer.kube.client import Client
from trainer_dashboard.access.viewer import Owner, Viewer
from trainer_dashboard.serving.answers import data, refusal, unauthorized

_BYTES = 32
_HOSTS = ("127.0.0.1", "localhost")

Login: TypeAlias = Literal["address", "token", "proxy"]
"""How users log in: by the address that they open, by a token that the page asks for, or at a proxy before the page."""


class Authenticator(Protocol):
    """Decides who may ask."""

    @property
    def login(self) -> Login:
        """How users log in."""

    def refusal_of_host(self, request: web.BaseRequest, port: int) -> web.Response | None:
        """Why the address that the request is for is not ours; None if it is."""

    def exchange_code(self, request: web.BaseRequest) -> web.Response:
        """Answer a page that asks for a token."""

    async def viewer(self, request: web.BaseRequest) -> Viewer | web.Response:
        """Who asks, or why they get no answer."""


class LoopbackAuthenticator:
    """Refuses requests that are not from the user's page.

    The token is for the address that the terminal shows. The code is for the browser, which may write its address into
    files: the first page that sends it gets the token, and nobody after that.

    Args:
        client: of the user.
        on_exchange: called once, when a page has got the token for the code; must not block. Default: nothing is.
    """

    login: Login = "address"

    def __init__(self, client: Client, *, on_exchange: Callable[[], None] | None = None) -> None:
        self.token = secrets.token_urlsafe(_BYTES)
        """What requests about the cluster carry; valid as long as this process."""
        self.code = secrets.token_urlsafe(_BYTES)
        """What can be exchanged for the token, once."""
        self._is_exchanged = False
        self._on_exchange = on_exchange
        self._owner = Owner(client)

    def refusal_of_host(self, request: web.BaseRequest, port: int) -> web.Response | None:
        """See `Authenticator`."""
        if request.headers.getall("Host", []) in [[f"{host}:{port}"] for host in _HOSTS]:
            return None
        where = f"open http://{_HOSTS[0]}:{port} instead"
        return refusal(HTTPStatus.MISDIRECTED_REQUEST, f"the dashboard does not answer under this name; {where}")

    async def viewer(self, request: web.BaseRequest) -> Viewer | web.Response:
        """See `Authenticator`."""
        if _equals(bearer_token(request.headers.get("Authorization", "")), self.token):
            return self._owner
        text = "this address is not valid any more; open the one that `trainer dashboard` has printed"
        return unauthorized(text, self.login)

    def exchange_code(self, request: web.BaseRequest) -> web.Response:
        """Give the token for the code."""
        is_right = _equals(bearer_token(request.headers.get("Authorization", "")), self.code)
        if not is_right or self._is_exchanged:
            text = "the browser was opened with an address that works once; open the one that `trainer dashboard` has"
            return unauthorized(f"{text} printed", self.login)
        self._is_exchanged = True
        if self._on_exchange is not None:
            self._on_exchange()
        return data({"token": self.token})


def _equals(given: str | None, expected: str) -> bool:
    return given is not None and hmac.compare_digest(given.encode(), expected.encode())
