"""JSONPath of printer columns."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer_devcluster.apiserver.tables.json_path import JSONPath

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
        pytest.param(".metadata['missing','name', 'labels']", ["n", {"a.b/c": "x"}], id="union"),
        pytest.param('.status.conditions[?(@.type != "Complete")].n', [1], id="not equal"),
    ],
)
def test_find(path: str, found: list[Any]) -> None:
    """Paths find what kubectl finds; what is missing is no error."""
    assert JSONPath.parse(path).find(OBJECT) == found


@given(
    json_values,
    st.sampled_from([".a.b", ".a[*].b", '.a[?(@.type=="x")]', ".a[-1:]", ".a[1]", ".a[:]"]),
)
def test_find_never_raises(value: Any, path: str) -> None:
    """A parsed path works on any JSON value."""
    assert isinstance(JSONPath.parse(path).find(value), list)
