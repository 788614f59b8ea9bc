"""Notes of a release."""

from __future__ import annotations

import pytest

from hack.release.notes import dated, notes

CHANGELOG = """\
# Changelog

## [Unreleased]

- later

## [0.2.0] - 2026-11-30

### Added

- this

## [0.1.0]

- first
"""


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        pytest.param("0.2.0", "### Added\n\n- this\n", id="released"),
        pytest.param("0.3.0", "- later\n", id="not-released-yet"),
    ],
)
def test_notes(version: str, expected: str) -> None:
    """A version has its section, one that is to come what is unreleased."""
    assert notes(CHANGELOG, version) == expected


@pytest.mark.parametrize(
    ("changelog", "version", "error"),
    [
        pytest.param(CHANGELOG, "0.1.0", r"\[0\.1\.0\] has no date", id="no-date"),
        pytest.param("# Changelog\n", "0.1.0", r"no section ## \[0\.1\.0\]", id="no-section"),
    ],
)
def test_no_notes(changelog: str, version: str, error: str) -> None:
    """The error says what is missing."""
    with pytest.raises(ValueError, match=error):
        notes(changelog, version)


def test_date() -> None:
    """Only a section with a date is that of a release."""
    assert dated(CHANGELOG) == ("0.2.0",)
