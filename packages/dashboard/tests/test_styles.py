"""The styles of the page."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "web/src"


def classes(sheet: str) -> set[str]:
    """The classes that a sheet styles wherever they are."""
    plain = re.sub(r"/\*.*?\*/|\([^()]*\)", "", sheet, flags=re.DOTALL)
    rules = re.findall(r"([^{};]+)\{", plain)
    selectors = (selector.strip() for rule in rules for selector in rule.split(","))
    return {each for each in selectors if re.fullmatch(r"\.[a-z][\w-]*", each)}


def test_rooms() -> None:
    """No room styles a class of another one: all of them are loaded together in the end."""
    owners: dict[str, list[str]] = defaultdict(list)
    for path in sorted(SOURCE.glob("*/*.css")):
        for name in classes(path.read_text()):
            owners[name].append(path.parent.name)
    assert owners
    assert {name: rooms for name, rooms in owners.items() if len(set(rooms)) > 1} == {}
