"""String formats."""

from __future__ import annotations

import pytest

from trainer_devcluster.apiserver.schema.formats import fits_format, matches_format


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date-time", "2026-01-01T00:00:00Z", "2026-01-01"),
        ("date-time", "2026-01-01T00:00:00.123456789+01:00", "2026-13-01T00:00:00Z"),
        ("date", "2026-02-28", "2026-02-30"),
        ("byte", "YWI=", "not base64!"),
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
