"""Warnings that reach the client."""

from __future__ import annotations

import pytest

from trainer.kube.webhook.warning_texts import MAX_BYTES, MAX_TOTAL_BYTES, shortened


@pytest.mark.parametrize(
    ("warnings", "texts"),
    [
        pytest.param([], [], id="none"),
        pytest.param(["spec.a is deprecated"], ["spec.a is deprecated"], id="short"),
        pytest.param(["a", "b", "a"], ["a", "b"], id="each-once"),
        pytest.param(["two\nlines\tand\x00more"], ["two lines and more"], id="control-characters"),
        pytest.param(["", " \n "], [], id="empty"),
        pytest.param(["w\ud800"], ["w?"], id="lone-surrogate"),
        pytest.param(["ü" * 1000], ["ü" * 1000], id="long-but-alone"),
    ],
)
def test_texts_become_headers(warnings: list[str], texts: list[str]) -> None:
    """What would be lost as an HTTP header is put on one line; a long text stays whole while there is room."""
    assert shortened(warnings) == texts


def test_long_texts_are_cut_when_they_are_too_many() -> None:
    """Each is cut between characters, and says so, when all together have more than 4096 bytes."""
    texts = shortened([f"{number}{'ü' * 1000}" for number in range(5)])
    assert [text[0] for text in texts] == list("01234")
    assert all(text.endswith("ü...") and len(text.encode()) <= MAX_BYTES for text in texts)


def test_what_is_left_out_is_counted() -> None:
    """The last line tells how many there were no room for."""
    warnings = [f"{number:03} {'x' * 300}" for number in range(100)]
    *texts, last = shortened(warnings)
    assert last == f"warnings not shown: {100 - len(texts)}"
    assert MAX_TOTAL_BYTES - MAX_BYTES < sum(len(text.encode()) for text in [*texts, last]) <= MAX_TOTAL_BYTES
