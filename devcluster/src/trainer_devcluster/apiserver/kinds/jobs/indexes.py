"""Lists of completion indexes such as `0,2-5`, in the policies and the status of Indexed Jobs."""

from __future__ import annotations


def count_indexes(text: str, completions: int) -> int:
    """How many indexes a list has; "" has none.

    Raises:
        ValueError: it is malformed, unordered or has an index that the Job does not; the message says what Kubernetes
            says.
    """
    total, previous = 0, -1
    for fragment in text.split(",") if text else ():
        first, last = _interval(fragment, completions)
        if first <= previous:
            raise ValueError(f"non-increasing order, previous: {previous}, current: {first}")
        total += last - first + 1
        previous = last
    return total


def _interval(fragment: str, completions: int) -> tuple[int, int]:
    if fragment.count("-") > 1:
        rule = "an index interval can have at most two parts separated by '-'"
        raise ValueError(f'the fragment "{fragment}" violates the requirement that {rule}')
    limits = [_index(limit, completions) for limit in fragment.split("-")]
    if len(limits) == 2 and limits[0] >= limits[1]:
        raise ValueError(f"non-increasing order, previous: {limits[0]}, current: {limits[1]}")
    return limits[0], limits[-1]


def _index(text: str, completions: int) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f'cannot convert string to integer for index: "{text}"')
    if int(text) >= completions:
        raise ValueError(f'too large index: "{text}"')
    return int(text)
