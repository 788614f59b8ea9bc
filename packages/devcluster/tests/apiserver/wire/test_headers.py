"""Warnings: each once, and not without end."""

from __future__ import annotations

import json

import pytest

from packages.devcluster.tests.apiserver.http_client import Api
from packages.devcluster.tests.apiserver.serving.test_listening import exchange
from trainer.kube.errors import ApiError
from trainer_devcluster.apiserver.wire.headers import (
    CUT_CHARACTERS,
    MAX_CHARACTERS,
    AnswerFormat,
    Shape,
    Warnings,
    answer_format,
    header_text,
    wants_aggregated_discovery,
)

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        pytest.param("", AnswerFormat(), id="no header"),
        pytest.param("application/vnd.kubernetes.protobuf,application/json", AnswerFormat(), id="protobuf or json"),
        pytest.param(f"{TABLE},application/json", AnswerFormat(Shape.TABLE), id="table"),
        pytest.param(
            "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            AnswerFormat(Shape.METADATA),
            id="metadata",
        ),
        pytest.param("application/json;as=Chart;v=v1;g=meta.k8s.io,application/json", AnswerFormat(), id="fallback"),
    ],
)
def test_answer_format(accept: str, expected: AnswerFormat) -> None:
    """The most wanted alternative that can be written wins."""
    assert answer_format(accept) == expected


@pytest.mark.parametrize(
    "accept",
    [
        pytest.param("application/vnd.kubernetes.protobuf", id="protobuf alone"),
        pytest.param("text/html", id="html"),
        pytest.param("application/json;as=Table;v=v9;g=meta.k8s.io", id="unknown table version alone"),
    ],
)
def test_nothing_acceptable(accept: str) -> None:
    """Without an alternative that can be written the answer is 406."""
    with pytest.raises(ApiError) as caught:
        answer_format(accept)
    assert caught.value.code == 406


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        pytest.param(
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json", True, id="kubectl"
        ),
        pytest.param(
            "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json",
            False,
            id="old version",
        ),
        pytest.param("", False, id="no header"),
    ],
)
def test_aggregated_discovery(accept: str, expected: bool) -> None:
    """The aggregated document is sent to those who ask for its present version."""
    assert wants_aggregated_discovery(accept) is expected


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        pytest.param([], [], id="none"),
        pytest.param(["b", "a", "b", ""], ["b", "a"], id="each once, in order"),
        pytest.param(["x" * MAX_CHARACTERS], ["x" * MAX_CHARACTERS], id="as long as allowed"),
        pytest.param(["x" * MAX_CHARACTERS, "short"], ["x" * CUT_CHARACTERS, "short"], id="cut"),
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
MAP = b'{"metadata": {"name": "m"}, "data": {"a": "b"}}'
TOKEN = b"Authorization: Bearer TOKEN"


def test_text() -> None:
    """What is UTF-8 stays as it is."""
    assert header_text("bär/1 \udcff\udce4") == "bär/1 \ufffd\ufffd"


@pytest.mark.parametrize(
    ("path", "headers", "body", "code", "shown"),
    [
        pytest.param(f"GET {MAPS}", [b"Impersonate-User: b\xff"], b"", 403, 'users \\"b\ufffd\\" is', id="nobody"),
        pytest.param(f"GET {MAPS}", [TOKEN, b"Impersonate-User: b\xff"], b"", 403, 'User \\"b\ufffd\\"', id="user"),
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
        pytest.param(f"POST {MAPS}", [TOKEN, b"User-Agent: u\xff/1"], MAP, 201, '"manager":"u\ufffd"', id="user agent"),
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


async def test_host(api: Api) -> None:
    """A document that names the server as the client does is shown all the same."""
    lines = [b"GET /api HTTP/1.1", b"Host: a\xff", b"Connection: close", TOKEN]
    answer = await exchange(api, b"\r\n".join(lines) + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert "a\ufffd" in answer.decode()
