"""Estimated costs of expressions: the figures are those of cel-go and of the API server for the same expressions."""

from __future__ import annotations

from typing import Final

import pytest

from trainer_devcluster.apiserver.cel import types
from trainer_devcluster.apiserver.cel.program import compile_expression
from trainer_devcluster.apiserver.cel.types import parse_type

NO_SIZE: Final = 1844674407370955264
"""Cost of going once through a text whose length nobody bounds."""
MESSAGE: Final = types.object_of("message", {"number": types.INT, "text": types.STRING})


def cost(expression: str, sizes: dict[str, int] | None = None, **variables: types.Type) -> tuple[int, int]:
    """Least and most cost.

    Args:
        expression: what is estimated.
        sizes: largest sizes by path, such as `input.@items`.
        variables: types of the variables.
    """
    known = sizes or {}
    program = compile_expression(expression, variables, size_of=lambda path: known.get(".".join(path)))
    assert program.cost is not None
    return program.cost.least, program.cost.most


@pytest.mark.parametrize(
    ("expression", "least", "most"),
    [
        ("'Hello World!'", 0, 0),
        ("[1, 2, 3]", 10, 10),
        ("{'a': 1, 'b': 2, 'c': 3}", 30, 30),
        ("true || false", 0, 0),
        ("true && false", 0, 0),
        ("1 < 2", 1, 1),
        ("1 == 2", 1, 1),
        ("2 in [1, 2, 3]", 13, 13),
        ("1 + 1", 1, 1),
        ("5 % 3", 1, 1),
        ("true ? 1 : 2", 0, 0),
        ("size('123')", 1, 1),
        ("string(1)", 1, 1),
        ("'123'.matches('[0-9]')", 2, 2),
        ("''.matches('(((((((((())))))))))[0-9]')", 7, 7),
        ("((5 != 6) == (1 == 2)) == ((3 <= 4) == (9 != 9))", 7, 7),
        ("type(1)", 1, 1),
        ("type(1) == int", 3, NO_SIZE + 2),
        ("[[1,2],[1,2],[1,2],[1,2],[1,2]][4]", 61, 61),
        ("{'a': [1,2], 'b': [1,2], 'c': [1,2], 'd': [1,2], 'e': [1,2]}.b", 81, 81),
        ("{'hello': 'hi'}['hello'] != {'hello': 'bye'}['hello']", 63, 63),
        ("['hello', 'hi'][0] != ['hello', 'bye'][1]", 23, 23),
    ],
)
def test_parts(expression: str, least: int, most: int) -> None:
    """Literals are free, new lists and maps are not, and comparing costs as much as the shorter side is long."""
    assert cost(expression) == (least, most)


@pytest.mark.parametrize(
    ("expression", "least", "most"),
    [
        ("[1, 2, 3].all(x, true)", 20, 20),
        ("[1,2,3,4,5].filter(x, x % 2 == 0)", 41, 101),
        ("[1,2,3,4,5].map(x, x)", 86, 86),
        ("[1,2,3,4,5].map(x, x).filter(x, x % 2 == 0)", 117, 177),
        ("[1,2,3,4,5].map(x, x).exists(x, x == 5) == true", 108, 118),
        ("[1,2,3,4,5].map(x, x).map(x, x)", 162, 162),
        ("[1,2,3,4,5].map(x, x)[4]", 87, 87),
        ("[1,2,3,4,5].map(x, x).map(x, x) + [1]", 173, 173),
        ("[[1, 1], [2, 2], [3, 3], [4, 4], [5, 5]].all(y, y.all(y, y == 1))", 76, 136),
        ("[1,2,3,4,5].map(x, [x, x]).all(y, y.all(y, y == 1))", 157, 217),
        ("['a', 'ab', 'abc', 'abcd', 'abcde'].map(x, [x, x]).all(y, y.all(y, y.startsWith('a')))", 157, 217),
        ("([['a', 'b']] + [['c']]).all(x, x.all(y, true))", 48, 64),
        ("[1,2,3].all(i, i in [1,2,3].map(j, j + j))", 20, 230),
        ("dyn([1,2,3]).all(i, i in dyn([1,2,3]).map(j, j + j))", 21, 234),
    ],
)
def test_loops(expression: str, least: int, most: int) -> None:
    """A macro costs what its loop costs, and what it makes is as large as what goes in."""
    assert cost(expression) == (least, most)


INTS, TEXTS = parse_type("list<int>"), parse_type("list<string>")
MESSAGES = types.list_of(MESSAGE)
MAPS = types.map_of(types.STRING, types.map_of(types.STRING, MESSAGE))


@pytest.mark.parametrize(
    ("expression", "variables", "sizes", "expected"),
    [
        pytest.param("input", {"input": INTS}, {}, (1, 1), id="variable"),
        pytest.param("input['key']", {"input": parse_type("map<string, string>")}, {}, (2, 2), id="key"),
        pytest.param("input.number", {"input": MESSAGE}, {}, (2, 2), id="field"),
        pytest.param("has(input.number)", {"input": MESSAGE}, {}, (1, 1), id="presence is free"),
        pytest.param("has(input.a.b)", {"input": MAPS}, {}, (2, 2), id="presence of a nested field"),
        pytest.param("input.all(x, true)", {"input": MESSAGES}, {"input": 100}, (2, 302), id="all"),
        pytest.param(
            "input.all(x, x.all(y, true))",
            {"input": types.list_of(MESSAGES)},
            {"input": 50, "input.@items": 10},
            (2, 1752),
            id="nested all",
        ),
        pytest.param("input.matches('[0-9]')", {"input": types.STRING}, {"input": 500}, (3, 103), id="matches"),
        pytest.param(
            "a || b || c || d", dict.fromkeys("abcd", types.BOOL), {}, (1, 4), id="the first operand may be enough"
        ),
        pytest.param("string(input)", {"input": types.BYTES}, {"input": 500}, (1, 51), id="text of bytes"),
        pytest.param(
            "string(input) == string(input)", {"input": types.BYTES}, {"input": 500}, (3, 152), id="texts of bytes"
        ),
        pytest.param("bytes(input)", {"input": types.STRING}, {"input": 500}, (1, 51), id="bytes of a text"),
        pytest.param(
            "bytes(input) == bytes(input)", {"input": types.STRING}, {"input": 500}, (3, 302), id="bytes of texts"
        ),
        pytest.param(
            "a.contains(b)",
            {"a": types.STRING, "b": types.STRING},
            {"a": 500, "b": 500},
            (2, 2502),
            id="contains is a product",
        ),
        pytest.param("a.startsWith(b)", {"a": types.STRING, "b": types.STRING}, {"b": 500}, (2, 52), id="starts with"),
        pytest.param("a.endsWith(b)", {"a": types.STRING, "b": types.STRING}, {"b": 500}, (2, 52), id="ends with"),
        pytest.param("input.size()", {"input": types.STRING}, {}, (2, 2), id="size"),
        pytest.param(
            "(x > 2 ? a : b).all(y, true)",
            {"x": types.INT, "a": MESSAGES, "b": MESSAGES},
            {"a": 1, "b": 1},
            (4, 7),
            id="loop over one of two",
        ),
        pytest.param(
            "input.all(k, input[k].number > 3)",
            {"input": types.map_of(types.STRING, MESSAGE)},
            {"input": 10},
            (2, 82),
            id="loop over a map",
        ),
        pytest.param(
            "input.all(k, input[k].all(x, true))",
            {"input": MAPS},
            {"input": 5, "input.@values": 10},
            (2, 187),
            id="nested maps",
        ),
        pytest.param(
            "input.all(k, k.contains(k))", {"input": MAPS}, {"input": 5, "input.@keys": 10}, (2, 32), id="size of keys"
        ),
        pytest.param(
            "input.all(k, input[k].all(k, true) && k.contains(k))",
            {"input": MAPS},
            {"input": 2, "input.@values": 2, "input.@keys": 5},
            (2, 34),
            id="shadowed variable",
        ),
        pytest.param("(a + b).all(x, true)", {"a": INTS, "b": INTS}, {"a": 10, "b": 10}, (4, 64), id="lists together"),
        pytest.param(
            "'abcdefg'.contains(a + b)",
            {"a": types.STRING, "b": types.STRING},
            {"a": 10, "b": 10},
            (2, 6),
            id="texts together",
        ),
        pytest.param("a.size() == b.size()", {"a": INTS, "b": INTS}, {}, (5, 5), id="sizes are numbers"),
        pytest.param(
            "([x, x] + a + b).size()",
            {"x": types.INT, "a": INTS, "b": INTS},
            {"a": 10, "b": 20},
            (17, 17),
            id="size of lists together",
        ),
        pytest.param(
            "[a, b].exists(l, l.exists(v, v.startsWith('hi')))",
            {"a": TEXTS, "b": TEXTS},
            {"a": 10, "a.@items": 64, "b": 20, "b.@items": 128},
            (21, 265),
            id="sizes of what a literal holds",
        ),
        pytest.param(
            "input.map(x, [x, x]).all(y, y.all(y, y.startsWith('a')))",
            {"input": TEXTS},
            {"input": 5, "input.@items": 10},
            (13, 208),
            id="sizes of what a loop makes",
        ),
        pytest.param(
            "string(a) == string(b)",
            {"a": types.TIMESTAMP, "b": types.TIMESTAMP},
            {},
            (5, NO_SIZE + 4),
            id="texts of times may be endless",
        ),
        pytest.param("maybe.text.hasValue()", {"maybe": types.optional_of(MESSAGE)}, {}, (2, 2), id="optional object"),
        pytest.param("a == b", {"a": types.TIMESTAMP, "b": types.TIMESTAMP}, {}, (3, 3), id="times"),
        pytest.param("a != b", {"a": types.DURATION, "b": types.DURATION}, {}, (3, 3), id="durations"),
        pytest.param(
            "type(self.val1) == int",
            {"self": parse_type("map<string, int>")},
            {},
            (5, NO_SIZE + 4),
            id="types may be endless",
        ),
        pytest.param(
            "self.val1 == timestamp('2011-08-18T00:00:00.000+01:00') + duration('19h3m37s10ms')",
            {"self": parse_type("map<string, timestamp>")},
            {},
            (6, 6),
            id="calculating with times",
        ),
    ],
)
def test_variables(
    expression: str, variables: dict[str, types.Type], sizes: dict[str, int], expected: tuple[int, int]
) -> None:
    """What variables and their parts may hold decides about the worst case."""
    assert cost(expression, sizes, **variables) == expected


INTS_LITERAL: Final = "[1, 2, 3, 4, 5]"
ADDRESS_4, ADDRESS_6 = "ip('192.168.0.1')", "ip('2001:db8:3333:4444:5555:6666:7777:8888')"
NETWORK: Final = "cidr('192.168.0.0/16')"


@pytest.mark.parametrize(
    ("expression", "least", "most"),
    [
        *((f"{INTS_LITERAL}.{name}()", 15, 15) for name in ("sum", "isSorted", "max", "min")),
        (f"{INTS_LITERAL}.indexOf(3)", 15, 15),
        ("[uint(1), uint(2), uint(3), uint(4), uint(5)].lastIndexOf(uint(3))", 21, 21),
        ("'01234567890123456789012345678901234567890123456789'.indexOf('123')", 5, 5),
        ("url('https:://kubernetes.io/').getHost()", 4, 4),
        (ADDRESS_4, 2, 2),
        (f"{ADDRESS_4}.family()", 3, 3),
        (f"{ADDRESS_6}.isGlobalUnicast()", 5, 5),
        (f"{ADDRESS_4} == {ADDRESS_4}", 5, 5),
        ("ip.isCanonical('192.168.0.1')", 3, 3),
        ("ip.isCanonical('2001:db8:3333:4444:5555:6666:7777:8888')", 8, 8),
        (NETWORK, 2, 2),
        (f"{NETWORK}.ip()", 3, 3),
        (f"{NETWORK}.containsCIDR(cidr('192.0.0.0/30'))", 7, 11),
        (f"{NETWORK}.containsCIDR('192.0.0.0/30')", 7, 11),
        (f"{NETWORK}.containsIP(ip('192.0.0.1'))", 4, 7),
        (f"{NETWORK}.containsIP('192.169.0.1')", 5, 8),
        ("'ABCDEFGHIJ abcdefghij'.lowerAscii()", 3, 3),
        ("'ABCDEFGHIJ abcdefghij'.upperAscii() == 'abcdefghij ABCDEFGHIJ'.upperAscii()", 7, 9),
        ("strings.quote('ABCDEFGHIJ abcdefghij')", 3, 3),
        ("strings.quote('ABCDEFGHIJ abcdefghij') == strings.quote('ABCDEFGHIJ abcdefghij')", 7, 11),
        ("'abc 123 def 123'.replace('123', '456')", 3, 3),
        ("'abc 123 def 123'.replace('', 'x')", 3, 3),
        ("'abc 123 def 123'.replace('123', '456', 1)", 3, 3),
        ("'abc 123 def 123'.split(' ')", 3, 3),
        ("'abc 123 def 123'.split(' ', 1)", 3, 3),
        ("'abc 123 def 123'.substring(5, 8)", 2, 2),
        ("'  abc 123 def 123  '.trim()", 2, 2),
        ("'abc 123 def 123'.find('123')", 2, 2),
        ("'abc 123 def 123'.findAll('123', 1)", 2, 2),
        ("quantity('12Mi')", 1, 1),
        ("isQuantity('20M')", 1, 1),
        ("quantity('200M') == quantity('200M')", 3, 3),
        ("quantity('200M') != quantity('200M')", 3, NO_SIZE + 2),
        ("quantity('50M').isLessThan(quantity('50Mi'))", 3, 3),
        ("quantity('50k').add(20).sub(quantity('100k')).sub(-50000).asInteger() > 0", 7, 7),
        ("sets.contains([], [])", 21, 21),
        ("sets.contains([1, 2, 3, 4], [2, 3])", 29, 29),
        ("!sets.contains([1], [2])", 23, 23),
        ("sets.contains([[1], [2, 3]], [[2, 3]])", 53, 53),
        ("sets.equivalent([1], [1, 1])", 25, 25),
        ("sets.equivalent([1, 2, 3], [3, 2, 1])", 39, 39),
        ("sets.intersects([1, 2], [2, 2, 2])", 27, 27),
    ],
)
def test_library(expression: str, least: int, most: int) -> None:
    """Functions of the library cost what they have to read and write."""
    assert cost(expression) == (least, most)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("'%s is %d'.format([self.text, 1])", (13, 13), id="a format is read, whatever goes in"),
        pytest.param("format.dns1123Label().validate(self.text)", (1 + 2, 1 + 2 + 32 * 5), id="named format"),
        pytest.param("self.?text.orValue('')", (3, 3), id="optional field"),
        pytest.param("self.?text.optMap(t, t.size())", (2 + 1 + 1, 2 + 1 + 10 + 3 + 1 + 2), id="value of an optional"),
        pytest.param("cel.bind(t, self.text, t.contains('abc'))", (10 + 2 + 1, 10 + 2 + 1 + 5), id="bound variable"),
        pytest.param("self.parts.transformList(i, p, p.size())", (2 + 11, 2 + 11 + 3 * 14), id="list of a list"),
        pytest.param("self.parts.transformMap(i, p, i > 0, p)", (2 + 31, 2 + 31 + 3 * (2 + 4)), id="map of a list"),
        pytest.param(
            "self.parts.exists_one(p, p == 'abcdefghijk')", (2 + 2, 2 + 2 + 3 * (1 + 2 + 2)), id="exactly one"
        ),
    ],
)
def test_names_of_parts(expression: str, expected: tuple[int, int]) -> None:
    """What a name introduced by a macro stands for keeps the size of the field that it comes from."""
    fields = {"text": types.STRING, "parts": TEXTS}
    sizes = {"self.text": 50, "self.parts": 3, "self.parts.@items": 12}
    assert cost(expression, sizes, self=types.object_of("self", fields)) == expected


@pytest.mark.parametrize(
    ("text", "old", "new", "longest"),
    [
        pytest.param(30, 0, 10, 340, id="between all characters"),
        pytest.param(30, 10, 0, 30, id="nothing may be replaced"),
        pytest.param(40, 2, 4, 80, id="everything may be replaced"),
    ],
)
def test_size_of_replacement(text: int, old: int, new: int, longest: int) -> None:
    """A text with replacements is as long as it can get, as comparing it with a longer one shows."""
    source = f"{'a' * text!r}.replace({'b' * old!r}, {'c' * new!r})"
    assert cost(f"{source} == other", {"other": 1000}, other=types.STRING)[1] == text // 5 + 1 + longest // 10


def test_size_of_text_from_bytes() -> None:
    """Four bytes may make one character, so that more of these short texts may be in a longer one."""
    source = f"{'a' * 40!r}.replace(string(b'aaaaaaaa'), 'cccc')"
    assert cost(f"{source} == other", {"other": 1000}, other=types.STRING)[1] == 8 + 1 + 1 + 40 // 2 * 4 // 10
