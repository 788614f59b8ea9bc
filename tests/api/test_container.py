"""What a schema of containers cannot express."""

from __future__ import annotations

import pytest

from trainer.api.container import check_container


@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        pytest.param({"command": ["a" * 131071]}, [], id="longest word"),
        pytest.param({"command": ["a", "a" * 131072]}, ["command[1]"], id="no room for the zero byte"),
        pytest.param({"args": ["\u00e9" * 65535]}, [], id="longest in two bytes each"),
        pytest.param({"args": ["\u00e9" * 65536]}, ["args[0]"], id="too many bytes"),
        pytest.param({"env": [{"name": "AB", "value": "a" * 131068}]}, [], id="longest value"),
        pytest.param({"env": [{"name": "AB", "value": "\u00e9" * 65535}]}, ["env[0].value"], id="value"),
        pytest.param({"env": [{"name": "AB", "value": 8}]}, [], id="number"),
    ],
)
def test_bytes(fields: dict[str, object], refused: list[str]) -> None:
    """Linux counts the bytes of words and variables."""
    found = list(check_container({"name": "a", **fields}, "c"))
    assert [error.field for error in found] == [f"c.{field}" for field in refused]
    assert all("may not be more than 1310" in error.message for error in found)
