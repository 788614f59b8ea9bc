from __future__ import annotations

import re
from itertools import product

import pytest

from trainer_devcluster.controllers.jobset.patterns import is_found

FAILURE = "Container c for pod n/a-node-0 failed with exit code 42 matching FailJob rule at index 0"


@pytest.mark.parametrize(
    "pattern",
    [
        "exit code 42",
        "^Container .* failed",
        "index 0$",
        r"index 0\z",
        r"\bcode\s+\d{2}\b",
        "exit code (1|42) ",
        "(?i)EXIT",
        "(?i:EXIT) code",
        "(?P<code>[[:digit:]]+) matching",
        "(?<code>42)",
        "[^]a]",
        r"\Qn/a-node-0\E",
        r"\x{63}ode",
        "",
    ],
)
def test_patterns_that_occur(pattern: str) -> None:
    """Anywhere in the message, in the syntax of RE2."""
    assert is_found(pattern, FAILURE)


@pytest.mark.parametrize(
    "pattern",
    [
        "exit code 43",
        "^failed",
        "code$",
        pytest.param("EXIT", id="letters of the other case"),
        pytest.param("[broken", id="open class"),
        pytest.param("(", id="open group"),
        pytest.param("*", id="nothing to repeat"),
        pytest.param("(?=exit)", id="lookahead"),
        pytest.param("(?<=exit )code", id="lookbehind"),
        pytest.param(r"(o)\1?", id="reference to a group"),
        pytest.param("c++", id="possessive repetition"),
        pytest.param("(?>c)", id="atomic group"),
        pytest.param("exit(?i) CODE", id="flags in the middle"),
        pytest.param(r"\pL", id="unicode class"),
        pytest.param("[[:letter:]]", id="unknown class"),
    ],
)
def test_patterns_that_do_not_occur(pattern: str) -> None:
    """Patterns are not validated at admission; a malformed one matches nothing."""
    assert not is_found(pattern, FAILURE)


def test_the_end_of_a_text_is_its_end() -> None:
    """Not the place before its last line feed."""
    assert not is_found("a$", "a\n")


def test_classes_are_those_of_ascii() -> None:
    """As Go's are."""
    assert not is_found(r"\d", "٣")


@pytest.mark.parametrize("pattern", ["(a+)+Z", "(a|a)*Z", "((a*)*)*Z", "(a?){50}a{50}Z", "(.*)(.*)(.*)(.*)(.*)(.*)Z"])
def test_no_pattern_takes_long(pattern: str) -> None:
    """Backtracking would try more ways than a cluster has years."""
    assert not is_found(pattern, "a" * 60)
    assert is_found(pattern, "a" * 60 + "Z")


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "ab|",
            "(?:ab)+",
            "(a|bc){2}",
            "a{2,}",
            "a{1,2}?c",
            "a{,2}c",
            "(a?b*)*c",
            "^a|c$",
            "a^",
            r"\bb",
            r"b\B",
            "(|a)c",
        ),
        *(
            "(?i)AB",
            "(?s)a.b",
            "(?m)^b",
            "(?m:a$)",
            "(?i:A(?-i:B))",
            "[^ab]",
            "[]a]c",
            r"[\]a]c",
            r"\x61b",
            "a{b",
            "(?i:A)B",
        ),
        *("((a)|(b))+c", "a(b(c)?)?a", "()", "(?:)*", "x*", "(a*)+$", "(a|ab)(c|bcd)", r"(\b|a)+"),
    ],
)
def test_patterns_occur_where_those_of_python_do(pattern: str) -> None:
    """In every text of up to five of some letters."""
    texts = ["".join(letters) for length in range(6) for letters in product("abc\n", repeat=length)]
    expected = re.compile(pattern.replace("$", r"(?!\n\Z)$"), re.ASCII)
    assert [is_found(pattern, text) for text in texts] == [bool(expected.search(text)) for text in texts]
