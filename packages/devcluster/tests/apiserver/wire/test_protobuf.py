"""Protobuf request bodies; the table holds what kubectl 1.37 sends."""

from __future__ import annotations

import base64
import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer_devcluster.apiserver.wire.protobuf import MAGIC, ProtobufError, decode

RBAC = "rbac.authorization.k8s.io"


def varint(number: int) -> bytes:
    encoded = bytearray()
    number %= 1 << 64
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    return bytes([*encoded, number])


def field(number: int, value: int | str | bytes) -> bytes:
    """One field: a number as a varint, the rest with its length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


def body(api_version: str, kind: str, *fields: bytes) -> bytes:
    return MAGIC + field(1, field(1, api_version) + field(2, kind)) + field(2, b"".join(fields))


@pytest.mark.parametrize(
    ("encoded", "expected"),
    [
        pytest.param(
            "azhzAAoMCgJ2MRIGU2VjcmV0Eh0KEQoBcxIAGgAiACoAMgA4AEIAEgYKAWESATEaABoAIgA=",
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "MQ=="}},
            id="create secret",
        ),
        pytest.param(
            "azhzAAoNCgJ2MRIHU2VydmljZRJpCh8KA3N2YxIAGgAiACoAMgA4AEIAWgoKA2FwcBIDc3ZjEkIKGwoHODAtODA4MBIDVENQGFAiBwgAEJA/"
            "GgAoABIKCgNhcHASA3N2YxoAIglDbHVzdGVySVA6AEIAUgBaAGAAaAAaAgoAGgAiAA==",
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "svc", "labels": {"app": "svc"}},
                "spec": {
                    "ports": [{"name": "80-8080", "protocol": "TCP", "port": 80, "targetPort": 8080}],
                    "selector": {"app": "svc"},
                    "type": "ClusterIP",
                },
            },
            id="create service",
        ),
    ],
)
def test_bodies_of_kubectl(encoded: str, expected: dict[str, Any]) -> None:
    """Decoded bodies are the objects that kubectl 1.27 would have sent as JSON."""
    assert decode(base64.b64decode(encoded)) == expected


def test_special_types() -> None:
    """Times, quantities, embedded JSON, inlined structures and negative numbers have their JSON forms."""
    metadata = b"".join(
        [
            field(1, "e"),
            field(8, field(1, 1_767_225_600)),
            field(11, field(1, "k") + field(2, "v")),
            field(17, field(1, "m") + field(7, field(1, json.dumps({"f:data": {}})))),
        ]
    )
    event = body("v1", "Event", field(1, metadata), field(8, -3), field(10, field(1, 1_767_225_600) + field(2, 5000)))
    assert decode(event) == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": "e",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"k": "v"},
            "managedFields": [{"manager": "m", "fieldsV1": {"f:data": {}}}],
        },
        "count": -3,
        "eventTime": "2026-01-01T00:00:00.000005Z",
    }


def test_pods_with_volumes_and_pointers() -> None:
    """A volume source belongs to its volume, and pointers keep their zero values."""
    volume = field(1, "v") + field(2, field(2, b""))
    container = field(1, "c") + field(8, field(2, field(1, "cpu") + field(2, field(1, "500m"))))
    pod = body("v1", "Pod", field(2, field(1, volume) + field(2, container) + field(4, 0) + field(8, "n")))
    assert decode(pod)["spec"] == {
        "volumes": [{"name": "v", "emptyDir": {}}],
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}],
        "terminationGracePeriodSeconds": 0,
        "serviceAccountName": "n",
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(body("apps/v1beta1", "Deployment"), "send JSON instead", id="unknown kind"),
        pytest.param(body("v1", "ConfigMap", field(1, field(1, b"\xff"))), "not valid UTF-8", id="no text"),
    ],
)
def test_bodies_that_cannot_be_read(content: bytes, message: str) -> None:
    """The error says what the client should do or fix."""
    with pytest.raises(ProtobufError, match=message):
        decode(content)


@given(st.sampled_from(["Pod", "Service", "Event", "Secret"]), st.binary(max_size=60))
def test_any_bytes_give_an_object_or_an_error(kind: str, content: bytes) -> None:
    """Malformed bodies never break the server."""
    with contextlib.suppress(ProtobufError):
        assert isinstance(decode(body("v1", kind, content)), dict)
