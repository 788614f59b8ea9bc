"""Words of a command in one line."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trainer.framework.building.words import shell_operator, split_words

LINES = st.text(st.sampled_from("ab \t\n\r'\"\\|&\u00a0"), max_size=20)


def split_by_shlex(line: str) -> list[str] | None:
    """What the standard library makes of a line; None for what it refuses."""
    try:
        return shlex.split(line)
    except ValueError:
        return None


@given(LINES)
@example("a ''")
@example('"\\a\\""')
@example("a\\")
@example('"a\\')
def test_words_are_those_of_shlex(line: str) -> None:
    """Every line has the words that the standard library gives, and the same lines are refused."""
    try:
        words = split_words(line)
    except ValueError:
        words = None
    assert words == split_by_shlex(line)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        pytest.param("a 'b", "No closing quotation", id="quote"),
        pytest.param("a\\", "No escaped character", id="backslash"),
        pytest.param("a\0b", "NUL", id="nul"),
    ],
)
def test_what_is_refused(line: str, problem: str) -> None:
    """The error names what is missing."""
    with pytest.raises(ValueError, match=problem):
        split_words(line)


@pytest.mark.parametrize(
    ("line", "operator"),
    [
        pytest.param("python train.py | tee log", "|", id="pipe"),
        pytest.param("cd /data && python train.py", "&&", id="list"),
        pytest.param("python train.py>log", ">", id="redirection-within-a-word"),
        pytest.param("python -c 'a | b'", None, id="single-quotes"),
        pytest.param('python -c "a \\" | b"', None, id="double-quotes"),
        pytest.param("echo a\\|b", None, id="escaped"),
        pytest.param("echo 'a | b", None, id="open-quote"),
        pytest.param("python f(x)", None, id="parentheses"),
    ],
)
def test_operators(line: str, operator: str | None) -> None:
    """What no shell is going to run is found outside of quotes only."""
    assert shell_operator(line) == operator
