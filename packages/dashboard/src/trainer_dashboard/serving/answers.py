"""Answers of the dashboard: JSON, errors, and the headers that every one of them has."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import msgspec
from aiohttp import web

from trainer.kube.errors import ApiError, KubeError
from trainer.kube.serving.http_protocol import SERVER

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)

HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "Server": SERVER,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""On all answers: nothing is loaded from elsewhere, inline, into a frame or onto a disk, and names are only texts."""


def data(content: object, status: int = HTTPStatus.OK) -> web.Response:
    """An answer in JSON."""
    return web.Response(
        body=msgspec.json.encode(content), content_type="application/json", status=status, headers=HEADERS
    )


def refusal(status: int, message: str, **headers: str) -> web.Response:
    """Why a request is not answered, in words for the page."""
    response = data({"error": message}, status)
    response.headers.update(headers)
    return response


def unauthorized(message: str, login: str) -> web.Response:
    """Why nobody is logged in, and how they can: see `trainer_dashboard.access.authenticator.Login`."""
    response = data({"error": message, "login": login}, HTTPStatus.UNAUTHORIZED)
    response.headers["WWW-Authenticate"] = "Bearer"
    return response


def failure(error: KubeError) -> web.Response:
    """What the API server has refused, with its status; 502 where it has not answered."""
    return refusal(error.code if isinstance(error, ApiError) else HTTPStatus.BAD_GATEWAY, str(error))
