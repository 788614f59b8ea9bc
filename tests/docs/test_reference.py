"""The reference: it is what the code says now."""

from __future__ import annotations

import pytest

from hack.reference.docstrings import members
from hack.reference.pages import PAGES
from tests.docs.markdown import DOCS
from trainer.api.event_reasons import EventReason
from trainer.api.trainjob_status import ConditionReason, ConditionType, State
from trainer.configuration.feature_gates import KNOWN_GATES

REFERENCE = DOCS / "reference"


@pytest.mark.parametrize("name", PAGES)
def test_page_is_current(name: str) -> None:
    """A page is what the generator makes of the code: `python -m hack.generate_reference` writes it anew."""
    assert (REFERENCE / name).read_text() == PAGES[name]()


def test_no_other_pages() -> None:
    """A page that nothing makes any more would go stale unseen."""
    assert {path.name for path in REFERENCE.iterdir()} == set(PAGES)


@pytest.mark.parametrize("enum", [State, ConditionType, ConditionReason, EventReason])
def test_every_word_is_explained(enum: type[State]) -> None:
    """A state, condition or reason that is added needs a docstring, which the pages show."""
    found = members(enum)
    assert [member.value for member in found] == [member.value for member in enum]
    assert [member.name for member in found if not member.docstring] == []


@pytest.mark.parametrize(
    "name",
    ["trainjob.md", "trainingruntime.md", "pytorchjob.md", "v1-fields.md", "configuration.md", "metrics.md", "cli.md"],
)
def test_every_row_says_something(name: str) -> None:
    """A field, an option or a metric is nothing to look up without a word about it."""
    rows = [line for line in (REFERENCE / name).read_text().splitlines() if line.startswith("| `")]
    assert len(rows) > 10
    mute = [row for row in rows if not row.split(" |")[-2].strip()]
    assert [row for row in mute if not row.startswith(("| `apiVersion`", "| `kind`"))] == []


def test_feature_gates_are_reported() -> None:
    """With stage and default."""
    page = (REFERENCE / "configuration.md").read_text()
    assert [gate.name for gate in KNOWN_GATES if f"| `{gate.name}` | {gate.stage} | " not in page] == []
