"""What a dictionary of bounded size keeps."""

from __future__ import annotations

import pytest

from trainer.kube.bounded_dict import BoundedDict


@pytest.mark.parametrize(
    ("put", "kept"),
    [
        pytest.param("", "", id="nothing"),
        pytest.param("abc", "abc", id="as-many-as-allowed"),
        pytest.param("abcd", "bcd", id="the-oldest-goes"),
        pytest.param("abcad", "cad", id="set-again"),
    ],
)
def test_keeps_what_was_set_last(put: str, kept: str) -> None:
    """Reading does not make a value younger."""
    bounded = BoundedDict[str, int](3)
    for position, key in enumerate(put):
        bounded[key] = position
        bounded.get("a")
    assert dict(bounded) == {key: put.rindex(key) for key in kept}
