"""Notes of a release: its section of the changelog."""

from __future__ import annotations

import re

NAME = "NOTES.md"
"""The file of a release that has them."""
_HEADING = re.compile(r"^## \[(?P<name>[^\]]+)\](?: - (?P<date>\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)
UNRELEASED = "Unreleased"


def notes(changelog: str, version: str) -> str:
    """Give what has changed in a version, in Markdown; before it has a section of its own, what is unreleased.

    Raises:
        ValueError: the changelog has neither, or the section of the version has no date.
    """
    found = {heading["name"]: heading for heading in _HEADING.finditer(changelog)}
    heading = found.get(version) or found.get(UNRELEASED)
    if heading is None:
        raise ValueError(f"CHANGELOG.md: there is no section ## [{version}], and no ## [{UNRELEASED}]")
    if heading["name"] == version and heading["date"] is None:
        raise ValueError(f"CHANGELOG.md: ## [{version}] has no date; write ## [{version}] - YYYY-MM-DD")
    following = _HEADING.search(changelog, heading.end())
    text = changelog[heading.end() : following.start() if following else None]
    return text.strip() + "\n"


def dated(changelog: str) -> tuple[str, ...]:
    """Give the versions that have a dated section, without which none is published."""
    return tuple(each["name"] for each in _HEADING.finditer(changelog) if each["date"])
