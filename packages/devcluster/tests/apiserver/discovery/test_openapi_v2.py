"""The OpenAPI v2 document: JSON and protobuf."""

from __future__ import annotations

import pytest

from trainer_devcluster.apiserver.discovery.openapi import V2_DOCUMENT, V2_PROTOBUF, wants_v2_protobuf


def test_protobuf() -> None:
    """The message is gnostic's Document: version, info, paths, definitions; lengths fit."""
    title, version = V2_DOCUMENT["info"]["title"].encode(), V2_DOCUMENT["info"]["version"].encode()
    info = b"\x0a" + bytes([len(title)]) + title + b"\x12" + bytes([len(version)]) + version
    assert b"\x0a\x032.0\x12" + bytes([len(info)]) + info + b"\x42\x00\x4a\x00" == V2_PROTOBUF


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", True),
        ("application/com.github.proto-openapi.spec.v2.v1.0+protobuf", True),
        ("application/json", False),
        ("*/*", False),
    ],
)
def test_negotiation(accept: str, expected: bool) -> None:
    """Go clients ask for protobuf, all others get JSON."""
    assert wants_v2_protobuf(accept) is expected
