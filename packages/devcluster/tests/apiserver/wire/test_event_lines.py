"""Lines of watch events that watchers share."""

from __future__ import annotations

import gc

from trainer_devcluster.apiserver.wire.event_lines import EventLines, MediaTypes


def test_a_line_is_made_once() -> None:
    """Watchers of one media type get the same bytes; another event, or another type of it, is another line."""
    lines, made = EventLines(), []

    def make() -> bytes:
        made.append(1)
        return b"%d" % len(made)

    assert [
        lines.line(kind, version, make) for kind, version in (("ADDED", "1"), ("ADDED", "1"), ("DELETED", "1"))
    ] == [
        b"1",
        b"1",
        b"2",
    ]


def test_old_lines_give_way() -> None:
    """The memory is bounded; what was dropped is made again."""
    lines, made = EventLines(kept_bytes=20), []

    def line(version: int) -> bytes:
        def make() -> bytes:
            made.append(version)
            return b"x" * 8

        return lines.line("ADDED", str(version), make)

    for version in (1, 2, 3, 3, 1):
        line(version)
    assert made == [1, 2, 3, 1]
    assert lines.line("ADDED", "big", lambda: b"x" * 1000) == b"x" * 1000


def test_media_types_end_with_their_last_watcher() -> None:
    """Watchers of one media type share, others do not, and nothing is kept for nobody."""
    media_types = MediaTypes()
    first = media_types.lines(("pods", "table"))
    assert media_types.lines(("pods", "table")) is first
    assert media_types.lines(("pods", "json")) is not first
    first.line("ADDED", "1", lambda: b"old")
    del first
    gc.collect()
    assert media_types.lines(("pods", "table")).line("ADDED", "1", lambda: b"new") == b"new"
