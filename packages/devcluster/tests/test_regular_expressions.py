"""Regular expressions in Go's syntax."""

from __future__ import annotations

import pytest

from trainer_devcluster.regular_expressions import check_pattern, is_found


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        pytest.param("^[a-z]+$", "abc", True, id="match"),
        pytest.param("^[a-z]+$", "abc\n", False, id="dollar is the end of the text"),
        pytest.param(r"^a\z", "a\n", False, id="end of text"),
        pytest.param("b", "abc", True, id="not anchored"),
        pytest.param("^[[:alpha:]_]+$", "aB_", True, id="posix class"),
        pytest.param(r"^\d$", "٣", False, id="digits are ASCII"),
        pytest.param("(?i)ABC", "abc", True, id="flags"),
        pytest.param(r"^\p{Greek}$", "λ", True, id="unicode class"),
        pytest.param("(", "(", False, id="malformed"),
    ],
)
def test_patterns_work_as_in_go(pattern: str, text: str, found: bool) -> None:
    """A malformed pattern occurs nowhere."""
    assert is_found(pattern, text) is found


@pytest.mark.parametrize("pattern", ["(", "[a", "a**", "(?=a)", "a{2000}"])
def test_patterns_that_cannot_be_compiled(pattern: str) -> None:
    """The error says what is wrong."""
    with pytest.raises(ValueError, match="must be a valid regular expression, but isn't: "):
        check_pattern(pattern)


@pytest.mark.parametrize("pattern", ["(a+)+Z", "((a*)*)*Z", "(a?){50}a{50}Z"])
def test_no_pattern_takes_long(pattern: str) -> None:
    """Backtracking would try more ways than a cluster has years."""
    assert not is_found(pattern, "a" * 60)
    assert is_found(pattern, "a" * 60 + "Z")
