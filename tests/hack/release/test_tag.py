"""Tags that a release may have."""

from __future__ import annotations

import re
from contextlib import nullcontext
from pathlib import Path

import pytest

from hack.release.tag import check

DATED = "## [1.2.3] - 2026-11-30\n"


@pytest.mark.parametrize(
    ("tag", "changelog", "error"),
    [
        pytest.param("v1.2.3", DATED, "", id="fits"),
        pytest.param("1.2.3", DATED, "the tag would be v1.2.3", id="no-tag"),
        pytest.param("v1.2.4", DATED, "the version of the tree is 1.2.3", id="another-version"),
        pytest.param("v1.2.3", "## [Unreleased]\n", "write ## [1.2.3] - YYYY-MM-DD", id="not-in-the-changelog"),
    ],
)
def test_tag(tag: str, changelog: str, error: str, tmp_path: Path) -> None:
    """It is the version of the tree, which has a dated section of the changelog."""
    (tmp_path / "trainer").mkdir()
    (tmp_path / "trainer" / "__init__.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text(changelog)
    with pytest.raises(ValueError, match=re.escape(error)) if error else nullcontext():
        check(tag, tmp_path)
