"""Warnings: each once, and not without end."""

from __future__ import annotations

import json

import pytest

from packages.devcluster.tests.apiserver.http_client import Api
from packages.devcluster.tests.apiserver.serving.test_listening import exchange
from trainer_devcluster.apiserver.wire.headers import (
    CUT_CHARACTERS,
    MAX_CHARACTERS,
    Warnings,
)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        pytest.param(["x" * MAX_CHARACTERS], ["x" * MAX_CHARACTERS], id="as long as allowed"),
        pytest.param(
            [f"{number:0300}" for number in range(100)],
            [f"{number:0300}"[:CUT_CHARACTERS] for number in range(MAX_CHARACTERS // CUT_CHARACTERS)],
            id="too many",
        ),
    ],
)
def test_texts(texts: list[str], expected: list[str]) -> None:
    """An answer has at most 4096 characters of warnings; when there are more, each is cut."""
    warnings = Warnings()
    for text in texts:
        warnings.add(text)
    assert warnings.texts == expected


MAPS = "/api/v1/namespaces/default/configmaps"
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = b'{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}'
TOKEN = b"Authorization: Bearer TOKEN"


@pytest.mark.parametrize(
    ("path", "headers", "body", "code", "shown"),
    [
        pytest.param(f"GET {MAPS}", [b"Impersonate-User: b\xff"], b"", 403, 'users \\"b\ufffd\\" is', id="nobody"),
        pytest.param(
            f"POST {REVIEWS}",
            [TOKEN, b"Impersonate-User: b", b"Impersonate-Group: g\xff", b"Impersonate-Extra-x: e\xff"],
            REVIEW,
            201,
            '"groups":["g\ufffd","system:authenticated"],"extra":{"x":["e\ufffd"]}',
            id="group and extra",
        ),
        pytest.param(
            f"POST {REVIEWS}",
            [TOKEN, b"Impersonate-User: b", b"Impersonate-Uid: u\xff"],
            REVIEW,
            201,
            '"uid":"u\ufffd"',
            id="uid",
        ),
    ],
)
async def test_answers(api: Api, path: str, headers: list[bytes], body: bytes, code: int, shown: str) -> None:
    """What is no UTF-8 is shown as U+FFFD."""
    fixed = [b"Host: a", b"Connection: close", b"Content-Type: application/json", b"Content-Length: %d" % len(body)]
    head = b"\r\n".join([f"{path} HTTP/1.1".encode(), *fixed, *headers])
    start, _, content = (await exchange(api, head + b"\r\n\r\n" + body)).partition(b"\r\n\r\n")
    assert start.startswith(f"HTTP/1.1 {code} ".encode()), content
    assert shown in content.decode()
    json.loads(content)
