"""Lines of logs as people read them."""

from __future__ import annotations

import pytest

from trainer.progress.lines.log_lines import LogLine, log_lines

T = b"2026-01-01T00:00:00.5Z "
STAMP = "2026-01-01T00:00:00.5Z"
RED = "\x1b[31mred\x1b[0m"
V2 = b"[trainer.kubeflow.org/v2alpha1/trainjob/trainerStatus]"


@pytest.mark.parametrize(
    ("block", "lines"),
    [
        pytest.param(T + b"one\n" + T + b"two\n", ["one", "two"], id="lines"),
        pytest.param(T + V2 + b" {}\n" + T + b"x\n", ["x"], id="message"),
        pytest.param(T + b" 10 %\r 20 %" + V2 + b" {}\n" + T + b"\r 30 %\n", [" 30 %"], id="behind a progress bar"),
        pytest.param(T + b"\x1b]0;title\x07\x1b[31mred\n" + T + b"bell\x07\n", [RED, "bell"], id="escapes"),
        pytest.param(T + b"a\xc2\x9b2Jb\n" + T + b"\xe2\x80\xaex\n", ["ab", "\ufffdx"], id="escapes beyond ASCII"),
        pytest.param(T + b"\r0%\x1b[A\n" + T + b"\r100%\n", ["100%"], id="a bar below another"),
        pytest.param(T + b"print('" + V2 + b"')\n", [f"print('{V2.decode()}')"], id="not at the beginning"),
    ],
)
def test_lines(block: bytes, lines: list[str]) -> None:
    """Each line is one of text, and messages for programs are left out."""
    assert list(log_lines(block)) == [LogLine(STAMP, line) for line in lines]


def test_messages_can_be_kept() -> None:
    """Messages are lines like any other if somebody wants them."""
    assert [line.text for line in log_lines(T + V2 + b" {}\n", with_messages=True)] == [f"{V2.decode()} {{}}"]


def test_overwritten_lines_can_be_had() -> None:
    """Who draws lines over each other gets the states of a bar below another, or with a message behind it, as well."""
    block = b"".join((T, b"\r0%\x1b[A\n", T, b"\r50%", V2, b" {}\n", T, b"\r100%\n"))
    lines = [(line.text, line.is_overwritten) for line in log_lines(block, with_overwritten=True)]
    assert lines == [("0%", True), ("50%", True), ("100%", False)]


def test_without_timestamp() -> None:
    """A line that came without a timestamp is all text."""
    block = b"".join((T, b"one\n", b"failed to open log\n", b"2026-01-01T00:00:00 local time\n", T, b"two\n"))

    assert list(log_lines(block)) == [
        LogLine(STAMP, "one"),
        LogLine("", "failed to open log"),
        LogLine("", "2026-01-01T00:00:00 local time"),
        LogLine(STAMP, "two"),
    ]


def test_many_seconds() -> None:
    """Each line has its own timestamp."""
    stamps = [f"2026-01-01T00:00:{number // 2:02}.{number}Z" for number in range(9)]

    lines = log_lines("".join(f"{stamp} text\n" for stamp in stamps).encode())

    assert [line.stamp for line in lines] == stamps
