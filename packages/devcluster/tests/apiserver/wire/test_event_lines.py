"""Lines of watch events that watchers share."""

from __future__ import annotations

import pytest

from trainer_devcluster.apiserver.wire import event_lines


def test_old_lines_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory is bounded; what was dropped is made again."""
    monkeypatch.setattr(event_lines, "KEPT_BYTES", 20)
    lines, made = event_lines.EventLines(), []

    def line(version: int) -> bytes:
        def make() -> bytes:
            made.append(version)
            return b"x" * 8

        return lines.line("ADDED", str(version), make)

    for version in (1, 2, 3, 3, 1):
        line(version)
    assert made == [1, 2, 3, 1]
    assert lines.line("ADDED", "big", lambda: b"x" * 1000) == b"x" * 1000
