from __future__ import annotations

import re

import pytest

from trainer_devcluster.apiserver.kinds.jobs.indexes import count_indexes, first_in_both

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


@pytest.mark.parametrize(
    ("some", "others", "first"),
    [("0-2,7", "3,7-8", 7), ("0-2", "3-4", None), ("", "1", None), ("x,1", "1", 1)],
)
def test_common_indexes(some: str, others: str, first: int | None) -> None:
    """What is malformed is somebody else's complaint."""
    assert first_in_both(some, others, 10) == first
