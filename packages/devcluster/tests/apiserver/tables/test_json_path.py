"""JSONPath of printer columns."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer_devcluster.apiserver.tables.json_path import JSONPath, JSONPathError

OBJECT = {
    "metadata": {"labels": {"a.b/c": "x"}, "name": "n"},
    "status": {
        "conditions": [{"type": "Created", "status": "True", "n": 1}, {"type": "Complete", "status": "False", "n": 2}]
    },
    "list": [1, 2, 3],
    "ready": True,
}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda children: st.lists(children) | st.dictionaries(st.sampled_from(["a", "b", "type"]), children),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        pytest.param(".metadata.name", ["n"], id="fields"),
        pytest.param(r".metadata.labels.a\.b/c", ["x"], id="escaped dot"),
        pytest.param(".metadata.labels['a.b/c']", ["x"], id="quoted field"),
        pytest.param(r".metadata.labels['a\.b/c']", ["x"], id="quoted field with an escaped dot"),
        pytest.param(".metadata['missing','name', 'labels']", ["n", {"a.b/c": "x"}], id="union"),
        pytest.param(".metadata['labels','status']['a.b/c']", ["x"], id="field of a union"),
        pytest.param(".status.conditions[-1:].type", ["Complete"], id="last item"),
        pytest.param(".status.conditions[0].type", ["Created"], id="index"),
        pytest.param(".list[-1]", [3], id="negative index"),
        pytest.param(".list[0:2]", [1, 2], id="slice"),
        pytest.param(".list[*]", [1, 2, 3], id="every item"),
        pytest.param(".status.conditions[*].n", [1, 2], id="field of every item"),
        pytest.param('.status.conditions[?(@.type=="Complete")].status', ["False"], id="equal"),
        pytest.param('.status.conditions[?(@.type != "Complete")].n', [1], id="not equal"),
        pytest.param(".ready", [True], id="boolean"),
        pytest.param(".status.missing.more", [], id="missing field"),
        pytest.param(".list[7]", [], id="index out of range"),
        pytest.param(".metadata[0]", [], id="index into an object"),
        pytest.param(".list.name", [], id="field of a list"),
    ],
)
def test_find(path: str, found: list[Any]) -> None:
    """Paths find what kubectl finds; what is missing is no error."""
    assert JSONPath.parse(path).find(OBJECT) == found


@pytest.mark.parametrize(
    "path",
    [
        ".a[",
        ".a[x]",
        ".a[]",
        ".a[?(nonsense)]",
        ".a b",
        ".",
        ".a..",
        "..a",
        "a",
        "{.a}",
        ".a[0:1:2]",
        ".a[0,1]",
        ".a['x]",
        ".a.*",
    ],
)
def test_malformed_paths(path: str) -> None:
    """A path that cannot be parsed is refused with its text in the message."""
    with pytest.raises(JSONPathError) as caught:
        JSONPath.parse(path)
    assert repr(path) in str(caught.value)


@given(
    json_values,
    st.sampled_from([".a.b", ".a[*].b", '.a[?(@.type=="x")]', ".a[-1:]", ".a[1]", ".a[:]"]),
)
def test_find_never_raises(value: Any, path: str) -> None:
    """A parsed path works on any JSON value."""
    assert isinstance(JSONPath.parse(path).find(value), list)


@given(st.text(alphabet=".[]*?@$'\"()=ab01-:, \\{}", max_size=12))
def test_parse_raises_only_its_own_error(text: str) -> None:
    """Whatever the text, it is a path or a JSONPathError."""
    with contextlib.suppress(JSONPathError):
        JSONPath.parse(text).find({"a": [{"b": 1}]})
