"""What commands that take a while show."""

from __future__ import annotations

import io
import sys

import pytest
from rich.console import Console

from trainer.cli.console import note
from trainer.cli.local.steps import Steps
from trainer_kube_testing.clock import ManualClock


async def test_terminal() -> None:
    """A step is shown when it begins, and its line then says how long it took; one that fails leaves nothing."""
    shown, clock = io.StringIO(), ManualClock()
    steps = Steps(Console(file=shown, force_terminal=True, force_interactive=True), clock)

    with steps.step("start the cluster"):
        assert shown.getvalue() == "start the cluster ..."
        await clock.advance(2.25)
    with pytest.raises(ValueError, match="no"), steps.step("start the manager"):
        raise ValueError("no")

    assert [line.rpartition("\x1b[2K")[2].split() for line in shown.getvalue().split("\n")] == [
        ["start", "the", "cluster", "2.2", "s"],
        [],
    ]


def test_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said during a step has a line of its own, before that of the step."""
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)

    with Steps(Console(file=shown, force_terminal=True, force_interactive=True), ManualClock()).step("wait"):
        note("look")

    lines = [line.rpartition("\x1b[2K")[2].split() for line in shown.getvalue().split("\n")]
    assert lines == [["note:", "look"], ["wait", "0.0", "s"], []]


def test_pipe() -> None:
    """Programs that read the output see no steps."""
    shown = io.StringIO()

    with Steps(Console(file=shown)).step("start the cluster"):
        pass

    assert shown.getvalue() == ""
