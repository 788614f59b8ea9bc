"""Columns in cells of a terminal."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from trainer.cli.columns import columns, elided, fitted, total


def test_columns() -> None:
    """Texts stand below each other, also behind wide characters."""
    assert list(columns([("a", "b", "c"), ("損失", "", "d"), ("", "", "")])) == ["a     b  c", "損失     d", ""]


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        pytest.param("train-x7k2p", 11, "train-x7k2p", id="fits"),
        pytest.param("a-long-name-x7k2p", 12, "a-long…x7k2p", id="both ends"),
        pytest.param("損失損失損失", 7, "損失…失", id="wide"),
        pytest.param("損失損失損失", 8, "損失…失", id="half of a wide one"),
        pytest.param("abcdef", 1, "…", id="hardly any room"),
    ],
)
def test_elided(text: str, width: int, shown: str) -> None:
    """A text that is cut keeps its beginning and its end."""
    assert elided(text, width) == shown
    assert elided(text, width, ascii_only=True) == shown.replace("…", "~")
    assert cell_len(shown) <= width


WIDTHS = {"NAME": 40, "STATE": 8, "STEP": 10, "AGE": 4}


@pytest.mark.parametrize(
    ("room", "kept"),
    [
        pytest.param(None, WIDTHS, id="no limit"),
        pytest.param(68, WIDTHS, id="just fits"),
        pytest.param(60, WIDTHS | {"NAME": 32}, id="cut"),
        pytest.param(47, {"NAME": 31, "STATE": 8, "AGE": 4}, id="one goes, and the name has its room"),
        pytest.param(32, {"NAME": 22, "STATE": 8}, id="two go"),
        pytest.param(25, {"NAME": 15, "STATE": 8}, id="shorter than the shortest"),
        pytest.param(5, {"NAME": 9, "STATE": 8}, id="no room"),
    ],
)
def test_fitted(room: int | None, kept: dict[str, int]) -> None:
    """Long texts are cut, then columns go, and then texts are cut again."""
    found = fitted(WIDTHS, room, {"NAME": 20}, ("STEP", "AGE"))

    assert found == kept
    assert room is None or total(found) <= max(room, 19)
