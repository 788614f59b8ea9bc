"""Expressions from their text to their value."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devcluster.tests.apiserver.cel.expressions import VARIABLES, evaluate
from trainer_devcluster.apiserver.cel.errors import CompileError, EvaluationError
from trainer_devcluster.apiserver.cel.program import compile_expression

PRIMARY = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("self.list.all(x, x.size() == 1)", True, id="all"),
        pytest.param("self.list.exists(x, x == 'a')", True, id="exists"),
        pytest.param("self.list.exists_one(x, x == 'a')", True, id="exists_one"),
        pytest.param("self.list.map(x, x + x)", ["bb", "aa"], id="map"),
        pytest.param("self.list.map(x, x != 'b', x + x)", ["aa"], id="filtered map"),
        pytest.param("self.list.filter(x, x > 'a')", ["b"], id="filter"),
        pytest.param("self.map.all(k, self.map[k] == 1)", True, id="keys"),
        pytest.param("self.list.all(i, v, i < 2 && v != '')", True, id="two variables"),
        pytest.param("self.map.exists(k, v, v == 1)", True, id="keys and values"),
        pytest.param("self.list.transformList(i, v, v + string(i))", ["b0", "a1"], id="transformList"),
        pytest.param("self.map.transformMap(k, v, v > 0, v + 1)", {"k": 2}, id="transformMap"),
        pytest.param("self.list.transformMapEntry(i, v, {v: i})", {"b": 0, "a": 1}, id="transformMapEntry"),
        pytest.param("[1, 2].map(x, [3].map(y, x + y))", [[4], [5]], id="nested"),
        pytest.param("[[1]].map(x, x.map(x, x + 1))", [[2]], id="inner names hide outer ones"),
        pytest.param("has(self.n) && !has(self.inner.absent)", True, id="has"),
        pytest.param("cel.bind(x, self.n * 2, x + x)", 12, id="bind"),
        pytest.param("self.?inner.?absent.orValue('none')", "none", id="optional field"),
        pytest.param("self.map[?'x'].or(self.map[?'k']).value()", 1, id="optional index"),
        pytest.param("maybe.n.orValue(0) + maybe.?n.value()", 6, id="field of an optional"),
        pytest.param("maybe.optMap(m, m.n + 1).orValue(0)", 4, id="optMap"),
        pytest.param("maybe.optFlatMap(m, m.?inner.?absent).hasValue()", False, id="optFlatMap"),
        pytest.param("[1, ?optional.none(), ?optional.of(2)]", [1, 2], id="optional items"),
        pytest.param("{?'a': optional.none(), 'b': 1}", {"b": 1}, id="optional entries"),
        pytest.param("optional.ofNonZeroValue('').hasValue()", False, id="no zero value"),
        pytest.param("true || 1 / 0 == 1", True, id="or does not look"),
        pytest.param("1 / 0 == 1 || true", True, id="or forgives"),
        pytest.param("!(1 / 0 == 1 && false)", True, id="and forgives"),
        pytest.param("[0, 1].exists(x, 1 / x == 1)", True, id="exists forgives"),
        pytest.param("![0, 1].all(x, 1 / x > 1)", True, id="all forgives"),
        pytest.param("self.n > 2 ? 'many' : string(1 / 0)", "many", id="only one side is evaluated"),
        pytest.param("// why\n1 +\n 2", 3, id="comments and lines"),
        pytest.param("!!true && -(-1) == 1", True, id="signs"),
    ],
)
def test_values(expression: str, expected: Any) -> None:
    """Macros, optional values and the logic of errors are those of the language."""
    assert evaluate(expression) == expected


@pytest.mark.parametrize(
    ("expression", "issue"),
    [
        pytest.param("self.x", "1:5: undefined field 'x'\n | self.x\n | ....^", id="field"),
        pytest.param("x > 1", "1:1: undeclared reference to 'x' (in container '')\n | x > 1\n | ^", id="variable"),
        pytest.param("f(1)", "1:2: undeclared reference to 'f' (in container '')\n | f(1)\n | .^", id="function"),
        pytest.param(
            "self.n == 'a'",
            "1:8: found no matching overload for '_==_' applied to '(int, string)'\n | self.n == 'a'\n | .......^",
            id="operator",
        ),
        pytest.param(
            "self.s.startsWith(1)",
            "1:18: found no matching overload for 'startsWith' applied to 'string.(int)'\n | self.s.startsWith(1)\n"
            " | .................^",
            id="method",
        ),
        pytest.param(
            "self.map[1]",
            "1:9: found no matching overload for '_[_]' applied to '(map(string, int), int)'\n | self.map[1]\n"
            " | ........^",
            id="index",
        ),
        pytest.param(
            "self.n.all(x, true)",
            "1:5: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)\n"
            " | self.n.all(x, true)\n | ....^",
            id="range",
        ),
        pytest.param(
            "self.s.y == 1",
            "1:7: type 'string' does not support field selection\n | self.s.y == 1\n | ......^",
            id="field of a text",
        ),
        pytest.param("[1, 'a']", "1:5: expected type 'int' but found 'string'\n | [1, 'a']\n | ....^", id="mixed list"),
        pytest.param("has(self)", "1:4: invalid argument to has() macro\n | has(self)\n | ...^", id="has"),
        pytest.param(
            "self.n >",
            f"1:9: Syntax error: mismatched input '<EOF>' expecting {PRIMARY}\n | self.n >\n | ........^",
            id="end",
        ),
        pytest.param("[1, 2", "1:6: Syntax error: missing ']' at '<EOF>'\n | [1, 2\n | .....^", id="bracket"),
        pytest.param("1 2", "1:3: Syntax error: mismatched input '2' expecting <EOF>\n | 1 2\n | ..^", id="two"),
        pytest.param("'a", "1:1: Syntax error: token recognition error at: '''\n | 'a\n | ^", id="open quote"),
        pytest.param("“a”", "1:1: Syntax error: token recognition error at: '“'\n | “a”\n | ^", id="typography"),
        pytest.param("true &&\n self.x", "2:6: undefined field 'x'\n |  self.x\n | .....^", id="second line"),
    ],
)
def test_issues(expression: str, issue: str) -> None:
    """What cannot be right is shown with its place."""
    with pytest.raises(CompileError) as caught:
        compile_expression(expression, VARIABLES)
    assert str(caught.value) == f"ERROR: <input>:{issue}"


def test_all_issues_are_listed() -> None:
    """In the order of their places."""
    with pytest.raises(CompileError) as caught:
        compile_expression("self.x == 1 && y", VARIABLES)
    assert [issue.message for issue in caught.value.issues] == [
        "undefined field 'x'",
        "undeclared reference to 'y' (in container '')",
    ]


def test_used_variables() -> None:
    """Names that a macro introduces are no variables."""
    assert compile_expression("[1].all(maybe, maybe > 0)", VARIABLES).variables == frozenset()
    assert compile_expression("self.n > 0 && maybe.hasValue()", VARIABLES).variables == {"self", "maybe"}


@pytest.mark.parametrize("source", ["(" * 5000 + "1" + ")" * 5000, "1" + " + 1" * 100_000, "-" * 9 + "(" * 999])
def test_deep_expressions_are_refused(source: str) -> None:
    """No depth of brackets or length of sums brings the server down."""
    with pytest.raises(CompileError, match="recursion limit"):
        compile_expression(source, VARIABLES)


words = st.sampled_from(
    (
        "self", ".", "n", "s", "list", "(", ")", "[", "]", "1", "'a'", "+", "==", "&&", "?", ":", "{", "}", ",", "all",
        "x", "!", "-", "has", "maybe", "optMap",
    )
)  # fmt: skip


@given(st.lists(words, max_size=12).map(" ".join) | st.text(max_size=20))
def test_any_text_compiles_or_is_refused(source: str) -> None:
    """Nothing but the documented errors comes of any text."""
    with contextlib.suppress(CompileError, EvaluationError):
        evaluate(source)
