"""SECURITY.md: what it promises is proved."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text()
PROOFS = re.findall(r"`((?:tests|e2e)/[\w/]+\.py)(?:::(\w+))?`", PAGE)


@pytest.mark.parametrize(
    ("file", "test"), [pytest.param(*proof, id="::".join(filter(None, proof))) for proof in PROOFS]
)
def test_proofs(file: str, test: str) -> None:
    """Each test that the page names exists."""
    source = (ROOT / file).read_text()
    assert not test or re.search(rf"^(async )?def {test}\(", source, re.MULTILINE)


def test_every_boundary_has_a_proof() -> None:
    """No line of the table claims what nobody has tried."""
    table = PAGE.partition("## What is defended")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 10
    assert [row for row in rows if not re.search(r"`(tests|e2e)/", row.split(" | ")[-1])] == []
