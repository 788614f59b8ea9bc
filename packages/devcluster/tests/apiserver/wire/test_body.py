"""Request bodies."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.kube.errors import ApiError
from trainer_devcluster.apiserver.wire.body import decode_json, decode_object, decode_yaml


@pytest.mark.parametrize(
    ("content", "content_type", "expected"),
    [
        pytest.param(b'{"kind": "Pod"}', "application/json; charset=utf-8", {"kind": "Pod"}, id="json with parameters"),
        pytest.param(
            b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x05\x0a\x03\x0a\x01a",
            "application/vnd.kubernetes.protobuf",
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
            id="protobuf",
        ),
    ],
)
def test_formats(content: bytes, content_type: str, expected: dict[str, Any]) -> None:
    """Objects come as JSON, YAML or protobuf."""
    assert decode_object(content, content_type) == (expected, [])


@pytest.mark.parametrize(
    ("content", "content_type", "code"),
    [
        pytest.param(b'{"a": NaN}', "application/json", 400, id="not a JSON number"),
        pytest.param(b'{"a": 1e400}', "application/json", 400, id="larger than any number"),
        pytest.param(b'{"a\\uDFFF": 1}', "application/json", 400, id="half a character in a name"),
        pytest.param(b"a: .inf", "application/yaml", 400, id="infinite in yaml"),
    ],
)
def test_refused(content: bytes, content_type: str, code: int) -> None:
    """What cannot be read is the client's fault."""
    with pytest.raises(ApiError) as caught:
        decode_object(content, content_type)
    assert caught.value.code == code


def test_duplicates_are_found_with_their_paths() -> None:
    """A member that occurs twice in one JSON object is reported; the last one counts."""
    body = decode_json(b'{"a": 1, "a": 2, "spec": {"parts": [{"x": 1, "y": 1, "x": 2, "x": 3}]}}')
    assert body.value == {"a": 2, "spec": {"parts": [{"x": 3, "y": 1}]}}
    assert body.duplicates == ["a", "spec.parts[0].x"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(b"2: a\ntrue: b", {"2": "a", "true": "b"}, id="keys become text"),
        pytest.param(b"{a: [1, yes, ~]}", {"a": [1, True, None]}, id="almost json"),
    ],
)
def test_yaml_becomes_json(content: bytes, expected: dict[str, Any]) -> None:
    """YAML values are those of JSON."""
    assert decode_yaml(content) == expected


def test_yaml_that_explodes_is_refused() -> None:
    """A small document whose aliases expand without bounds is not followed."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(ApiError, match="more than 250000 nodes"):
        decode_yaml("\n".join(lines).encode())
