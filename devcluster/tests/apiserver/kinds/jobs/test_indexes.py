from __future__ import annotations

import re

import pytest

from trainer_devcluster.apiserver.kinds.jobs.indexes import count_indexes

RULE = "an index interval can have at most two parts separated by '-'"


@pytest.mark.parametrize(("text", "count"), [("", 0), ("0", 1), ("0,2-4", 4), ("0-9", 10)])
def test_indexes_are_counted(text: str, count: int) -> None:
    """Ranges have both of their ends."""
    assert count_indexes(text, 10) == count


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x", 'cannot convert string to integer for index: "x"'),
        ("1-x", 'cannot convert string to integer for index: "x"'),
        ("10", 'too large index: "10"'),
        ("2,1", "non-increasing order, previous: 2, current: 1"),
        ("2-2", "non-increasing order, previous: 2, current: 2"),
        ("1-2-3", f'the fragment "1-2-3" violates the requirement that {RULE}'),
    ],
)  # fmt: skip
def test_malformed_lists(text: str, complaint: str) -> None:
    """In the words of Kubernetes."""
    with pytest.raises(ValueError, match=re.escape(complaint)) as caught:
        count_indexes(text, 10)
    assert str(caught.value) == complaint
