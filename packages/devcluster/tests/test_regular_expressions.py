"""Regular expressions in Go's syntax."""

from __future__ import annotations

import pytest

from trainer_devcluster.regular_expressions import is_found


@pytest.mark.parametrize("pattern", ["(a+)+Z", "((a*)*)*Z", "(a?){50}a{50}Z"])
def test_no_pattern_takes_long(pattern: str) -> None:
    """Backtracking would try more ways than a cluster has years."""
    assert not is_found(pattern, "a" * 60)
    assert is_found(pattern, "a" * 60 + "Z")
