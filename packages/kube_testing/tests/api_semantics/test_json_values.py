"""Order of merged lists."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer_kube_testing.api_semantics.json_values import merge_order


@pytest.mark.parametrize(
    ("live", "wanted", "merged"),
    [
        pytest.param("abc", "ca", "bca", id="wanted order wins"),
        pytest.param("ab", "xa", "xab", id="new item before a shared one"),
    ],
)
def test_merge_order(live: str, wanted: str, merged: str) -> None:
    """Wanted keys come in the wanted order, others stay where they were."""
    assert "".join(merge_order(live, wanted)) == merged


@given(st.lists(st.integers(0, 8), unique=True), st.lists(st.integers(0, 8), unique=True))
def test_merge_order_loses_and_doubles_nothing(live: list[int], wanted: list[int]) -> None:
    """Every key is there once, and both the wanted and the remaining live keys keep their order."""
    merged = merge_order(live, wanted)
    assert sorted(merged) == sorted({*live, *wanted})
    assert [key for key in merged if key in wanted] == wanted
    assert [key for key in merged if key not in wanted] == [key for key in live if key not in wanted]
