"""String formats and Go regular expressions."""

from __future__ import annotations

import pytest

from trainer_devcluster.apiserver.schema.formats import compile_pattern, fits_format, matches_format


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date-time", "2026-01-01T00:00:00Z", "2026-01-01"),
        ("date-time", "2026-01-01T00:00:00.123456789+01:00", "2026-13-01T00:00:00Z"),
        ("date", "2026-02-28", "2026-02-30"),
        ("duration", "1h30m", "1 hour"),
        ("byte", "YWI=", "not base64!"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123"),
        ("ipv4", "10.0.0.1", "10.0.0.256"),
        ("ipv6", "::1", "10.0.0.1"),
        ("cidr", "10.0.0.0/8", "10.0.0.0"),
        ("mac", "00:11:22:33:44:55", "00:11"),
        ("email", "a@b", "a b"),
        ("uri", "https://x", "not a uri"),
        ("hostname", "a.b-c", "-a"),
    ],
)
def test_known_formats(name: str, good: str, bad: str) -> None:
    """Formats that the server knows are checked."""
    assert matches_format(good, name)
    assert not matches_format(bad, name)


def test_unknown_formats_accept_everything() -> None:
    """A format that the server does not know is only a comment."""
    assert matches_format("anything", "my-format")
    assert fits_format(2**40, "my-format")


@pytest.mark.parametrize(
    ("value", "name", "fits"), [(2**31 - 1, "int32", True), (2**31, "int32", False), (-(2**63), "int64", True)]
)
def test_integer_formats_bound_numbers(value: int, name: str, fits: bool) -> None:
    """int32 and int64 are ranges."""
    assert fits_format(value, name) is fits


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        pytest.param("^[a-z]+$", "abc", True, id="match"),
        pytest.param("^[a-z]+$", "abc\n", False, id="dollar is the end of the text"),
        pytest.param(r"^a\z", "a\n", False, id="end of text"),
        pytest.param("b", "abc", True, id="not anchored"),
        pytest.param("^[[:alpha:]_]+$", "aB_", True, id="posix class"),
        pytest.param("^[]a]+$", "]a", True, id="bracket first in a class"),
        pytest.param(r"^[\]$]+$", "]$", True, id="escaped bracket and dollar in a class"),
        pytest.param(r"^\d$", "٣", False, id="digits are ASCII"),
        pytest.param("(?i)ABC", "abc", True, id="flags"),
    ],
)
def test_patterns_work_as_in_go(pattern: str, text: str, found: bool) -> None:
    """Where Python and RE2 differ, RE2 counts."""
    assert bool(compile_pattern(pattern).search(text)) is found


@pytest.mark.parametrize("pattern", ["(", "[a", r"\p{Greek}", "a**"])
def test_patterns_that_cannot_be_compiled(pattern: str) -> None:
    """A bad pattern is refused when the definition is made, not when a value is checked."""
    with pytest.raises(ValueError, match="must be a valid regular expression"):
        compile_pattern(pattern)
