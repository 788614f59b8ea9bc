"""What is said about malformed JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer_devcluster.apiserver.wire.json_syntax import MAX_DEPTH, JsonSyntaxError, check

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "unexpected end of JSON input", id="empty"),
        pytest.param(b"\x81", r"invalid character '\x81' looking for beginning of value", id="no text"),
        pytest.param(b"{not", "invalid character 'n' looking for beginning of object key string", id="bare key"),
        pytest.param(b'{"a" 1}', "invalid character '1' after object key", id="no colon"),
        pytest.param(b'{"a":1 "b"}', "invalid character '\"' after object key:value pair", id="no comma"),
        pytest.param(b"[1 2]", "invalid character '2' after array element", id="no comma in a list"),
        pytest.param(b"[1,]", "invalid character ']' looking for beginning of value", id="trailing comma"),
        pytest.param(b"{} x", "invalid character 'x' after top-level value", id="rest"),
        pytest.param(b'"a\n"', r"invalid character '\n' in string literal", id="line end in a text"),
        pytest.param(rb'"\q"', "invalid character 'q' in string escape code", id="escape"),
        pytest.param(rb'"\u12g4"', r"invalid character 'g' in \u hexadecimal character escape", id="hexadecimal"),
        pytest.param(b"tru3", "invalid character '3' in literal true (expecting 'e')", id="literal"),
        pytest.param(b"-x", "invalid character 'x' in numeric literal", id="minus"),
        pytest.param(b"1.x", "invalid character 'x' after decimal point in numeric literal", id="point"),
        pytest.param(b"1e'", r"invalid character '\'' in exponent of numeric literal", id="exponent"),
        pytest.param(b"[" * (MAX_DEPTH + 1), "exceeded max depth", id="depth"),
    ],
)
def test_malformed(content: bytes, message: str) -> None:
    """The message is that of Go, which clients of Kubernetes know."""
    with pytest.raises(JsonSyntaxError) as caught:
        check(content)
    assert str(caught.value) == message


@given(values)
def test_well_formed(value: object) -> None:
    """Everything that a JSON writer writes is accepted, and nothing that is cut off, but for numbers."""
    content = json.dumps(value, indent=1).encode()
    check(content)
    if isinstance(value, str | list | dict):
        with pytest.raises(JsonSyntaxError):
            check(content[:-1])


@given(st.binary(max_size=40))
def test_agrees_with_another_reader(content: bytes) -> None:
    """Bytes that are accepted can be read, unless they are no text at all."""
    try:
        check(content)
    except JsonSyntaxError:
        return
    json.loads(content.decode("utf-8", "replace"))
