"""Lines of logs as a terminal shows them."""

from __future__ import annotations

import pytest

from trainer.progress.lines.terminal_line import may_be_special, shown, without_colors

RESET = "\x1b[0m"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("Größe\t1  ", "Größe\t1  ", id="ordinary"),
        pytest.param("\r 10%\r 20%", " 20%", id="carriage returns"),
        pytest.param("10%\r20%\r", "20%", id="a carriage return at the end"),
        pytest.param("100 s\r9 s  ", "9 s", id="blanks over a longer state"),
        pytest.param("text  \r", "text  ", id="blanks of a line"),
        pytest.param("hello world\rbye", "byelo world", id="what is not written over stays"),
        pytest.param("abc\b\bx", "axc", id="backspaces"),
        pytest.param("\b\babc", "abc", id="backspaces at the edge"),
        pytest.param("long text\r\x1b[Kab", "ab", id="erased to the end"),
        pytest.param("50%\x1b[2K\r100%", "100%", id="erased"),
        pytest.param("abcdef\x1b[3Dx\x1b[1Gy\x1b[2Cz", "ybczef", id="moved within the line"),
        pytest.param("a\x1b[9999Cb\x1b[99999999999Dc", "cb", id="moved beyond it"),
        pytest.param("a\x1b[2J\x1b[H\x1b[5A\x1b[1;1Hb\x1b7\x1b8\x1bM\x1bcc", "abc", id="moved beyond the line"),
        pytest.param("\x1b]0;title\x07a\x1b]2;title\x1b\\b\x9d0;t\x9cc\x1b]0;open", "abc", id="titles"),
        pytest.param("\x1b]8;;http://x\x07link\x1b]8;;\x07", "link", id="links"),
        pytest.param("\x1bP+q544e\x1b\\a\x1b_x\x1b\\b\x1b^y\x07c", "abc", id="device controls"),
        pytest.param("a\x1b[6n\x1b[c\x1b[?1049hb\x1b[>4;2mc", "abc", id="questions and modes"),
        pytest.param("a\x07\x00\x0e\x0b\x0c\x7fb\x85\x9b31mc", f"ab\x1b[31mc{RESET}", id="other controls"),
        pytest.param("a\u202eb\u2066c", "a\ufffdb\ufffdc", id="directions"),
        pytest.param("a\x1b", "a", id="half an escape"),
        pytest.param("a\x1b[31", "a", id="half a colour"),
        pytest.param("\x1b[31mred", f"\x1b[31mred{RESET}", id="an open colour"),
        pytest.param("\x1b[1;91ma\x1b[mb", f"\x1b[1;91ma{RESET}b", id="a closed colour"),
        pytest.param("\x1b[1ma\x1b[22mb\x1b[3;42mc\x1b[23;49md", f"\x1b[1ma{RESET}b\x1b[3;42mc{RESET}d", id="parts"),
        pytest.param("\x1b[38;5;200;48;2;1;2;3mx", f"\x1b[38;5;200;48;2;1;2;3mx{RESET}", id="more colours"),
        pytest.param("\x1b[38:5:200mx\x1b[39my", f"\x1b[38;5;200mx{RESET}y", id="colons"),
        pytest.param("\x1b[38;5;999mx\x1b[38;7mx\x1b[38my", "xxy", id="no colours"),
        pytest.param("\x1b[5;8msecret", "secret", id="neither blinking nor hidden"),
        pytest.param(
            "\x1b[31mold text\r\x1b[32mnew", f"\x1b[32mnew{RESET}\x1b[31m text{RESET}", id="colours written over"
        ),
    ],
)
def test_shown(line: str, expected: str) -> None:
    """Only text and colours are left, where the cursor has put them, and the colours end with the line."""
    assert shown(line) == expected
    assert shown(expected) == expected
    assert may_be_special(line.encode()) or line == expected


def test_without_colors() -> None:
    """Where there are no colours, text is left."""
    assert without_colors(shown("a\x1b[1;31mb\x1b[0mc\x1b[38;5;9md")) == "abcd"
