"""Bearer tokens: which requests are let in, and the answers to the others (RFC 6750)."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

import structlog

from trainer.kube.errors import KubeError

if TYPE_CHECKING:
    from trainer.kube.access.authentication import Authenticator
    from trainer.kube.access.authorization import Authorizer

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why somebody is not let in."""

    status: HTTPStatus
    text: str
    challenge: str = ""
    """For the header WWW-Authenticate. Default: none."""


_NO_TOKEN = Refusal(HTTPStatus.UNAUTHORIZED, "send a bearer token in the header Authorization", "Bearer")
_WRONG_TOKEN = Refusal(
    HTTPStatus.UNAUTHORIZED, "the API server does not know this token", 'Bearer error="invalid_token"'
)
_NO_ANSWER = Refusal(
    HTTPStatus.SERVICE_UNAVAILABLE, "the API server does not say who may; the log of this process says why"
)


class BearerGate:
    """Lets in whom the API server knows and allows; nobody while it does not answer.

    Args:
        authenticator: says who it is.
        authorizer: says whether they may.
    """

    def __init__(self, authenticator: Authenticator, authorizer: Authorizer) -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer

    async def refusal(self, authorization: str, method: str, path: str) -> Refusal | None:
        """Why a request is not let in; None if it is.

        Args:
            authorization: the header; a token anywhere else, such as in the query, is none.
            method: of the request.
            path: decoded, without the query.
        """
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return _NO_TOKEN
        if not (token.isascii() and token.isprintable()):
            return _WRONG_TOKEN  # what is no token at all (RFC 6750, section 2.1) may not even fit into a question
        try:
            user = await self._authenticator.authenticate(token)
            if user is None:
                return _WRONG_TOKEN
            verb = method.lower()
            if await self._authorizer.is_allowed(user, verb, path):
                return None
        except KubeError as error:
            log.warning("could not tell who may ask", error=str(error))
            return _NO_ANSWER
        text = f"{user.name} may not {verb} this path: it needs a ClusterRole with it in nonResourceURLs"
        return Refusal(HTTPStatus.FORBIDDEN, text)
