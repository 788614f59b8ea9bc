"""What a memory of bounded size keeps."""

from __future__ import annotations

import pytest

from trainer.kube.recent import Recent


@pytest.mark.parametrize(
    ("put", "kept"),
    [
        pytest.param("", "", id="nothing"),
        pytest.param("abc", "abc", id="as-many-as-allowed"),
        pytest.param("abcd", "bcd", id="the-oldest-goes"),
        pytest.param("abcad", "cad", id="put-again"),
    ],
)
def test_keeps_what_was_put_last(put: str, kept: str) -> None:
    """Reading does not make a value younger."""
    recent = Recent[str, int](3)
    for position, key in enumerate(put):
        recent.put(key, position)
        recent.get("a")
    assert len(recent) == len(kept)
    assert [key for key in "abcd" if key in recent] == sorted(kept)
    assert [recent.get(key) for key in kept] == [put.rindex(key) for key in kept]


def test_forgets_what_is_taken() -> None:
    """There is room for another one then."""
    recent = Recent[str, int](1)
    recent.put("a", 1)
    assert [recent.pop("a"), recent.pop("a"), recent.get("a")] == [1, None, None]
    assert len(recent) == 0
