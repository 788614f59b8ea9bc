"""What functions compute."""

from __future__ import annotations

from typing import Any

import pytest

from devcluster.tests.apiserver.cel.expressions import evaluate
from trainer_devcluster.apiserver.cel.errors import EvaluationError


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 + 2 * 3 - 4 / 3", 6),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("2u + 3u", 5),
        ("1.5 * 2.0", 3.0),
        ("1 < 2.5 && 2u > 1", True),
        ("[1, 2] + [3]", [1, 2, 3]),
        ("'a' + 'b' + \"c\"", "abc"),
        (r"r'\n' + '\n'", "\\n\n"),
        ("1 == 1 ? 'y' : 'n'", "y"),
        ("1 in [1, 2] && 'k' in {'k': 1}", True),
        ("dyn(1) == 1.0 && dyn(1) == 1u && dyn('1') != 1", True),
        ("{'a': 1, 'b': 2} == {'b': 2, 'a': 1}", True),
        ("size('häö') + size([1]) + size({1: 2})", 5),
        ("string(1) + string(true) + string(1.0) + string(1e6) + string(0.5) + string(1e-7)", "1true11e+060.51e-07"),
        ("int('-5') + int(3.9) + int(2u)", 0),
        ("double('1.5') + double(1)", 2.5),
        ("bool('true') && !bool('F')", True),
        ("string(b'ab')", "ab"),
        ("type(1) == int && type('') == string && type(type(1)) == type", True),
    ],
)
def test_core(expression: str, expected: Any) -> None:
    """Operators and conversions are those of the language."""
    assert evaluate(expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("'hello'.charAt(4) + 'hello'.charAt(5)", "o"),
        ("'hello'.indexOf('l') + 'hello'.indexOf('l', 3) + 'hello'.indexOf('x')", 4),
        ("'hello'.lastIndexOf('l') + 'hello'.lastIndexOf('l', 2)", 5),
        ("'hello'.replace('l', 'L', 1) + 'aa'.replace('a', 'b')", "heLlobb"),
        ("'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c']", True),
        ("'abc'.split('') == ['a', 'b', 'c'] && 'a'.split(',', 0) == []", True),
        ("'hello'.substring(1, 3) + 'hello'.substring(4)", "elo"),
        (r"' \ta '.trim() + 'AbÄ'.lowerAscii() + 'abä'.upperAscii()", "aabÄABä"),
        ("['a', 'b'].join('-') + ['a', 'b'].join()", "a-bab"),
        (r"""strings.quote('a"b\n')""", r'"a\"b\n"'),
        ("'%s %d %.2f %x %b %%'.format(['a', 5, 1.255, 255, 5])", "a 5 1.25 ff 101 %"),
        ("'%s'.format([dyn([dyn(1), 'a', true, null])])", "[1, a, true, null]"),
        ("'abc 123'.find('[0-9]+') + 'x'.find('y')", "123"),
        ("'1 2 3'.findAll('[0-9]', 2) == ['1', '2'] && 'abc'.matches('^a')", True),
        ("'ab'.startsWith('a') && 'ab'.endsWith('b') && 'abc'.contains('b')", True),
    ],
)
def test_strings(expression: str, expected: Any) -> None:
    """Indexes count characters."""
    assert evaluate(expression) == expected


@pytest.mark.parametrize(
    "expression",
    [
        "[1, 2, 2].isSorted() && !['b', 'a'].isSorted()",
        "[1, 3].sum() == 4 && [0.5, 0.5].sum() == 1.0 && [duration('1m'), duration('2m')].sum() == duration('3m')",
        "[3, 1].min() == 1 && ['a', 'c'].max() == 'c'",
        "[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(5) == -1",
        "sets.contains([1, 2, 3], [3, 1]) && sets.equivalent([1, 1, 2], [2, 1]) && !sets.intersects([1], [2])",
        "duration('1h30m').getMinutes() == 90 && string(duration('90m')) == '5400s'",
        "timestamp('2026-03-01T10:00:00Z') - duration('1h') == timestamp('2026-03-01T10:00:00+01:00')",
        "timestamp('2026-03-01T23:30:00Z').getDayOfWeek() == 0 && timestamp('2026-03-01T23:30:00Z').getMonth() == 2",
        "timestamp('2026-03-01T23:30:00Z').getHours('02:00') == 1 && timestamp('2026-03-01T23:30:00Z').getDate() == 1",
        "string(timestamp('2026-03-01T10:00:00.5+01:00')) == '2026-03-01T09:00:00.5Z'",
        "url('https://u@ex.org:80/p?a=1&a=2&b').getHost() == 'ex.org:80' && isURL('/x') && !isURL('x')",
        "url('https://[::1]:80/').getHostname() == '::1' && url('https://ex.org/p').getPort() == ''",
        "url('https://ex.org/p?a=1&a=2').getQuery()['a'] == ['1', '2'] && !isURL('http://x/a b')",
        "url('https://ex.org/p%20q').getEscapedPath() == '/p%20q' && url('https://x').getScheme() == 'https'",
        "ip('127.0.0.1').isLoopback() && ip('::1').family() == 6 && !isIP('1.2.3') && !isIP('::ffff:1.2.3.4')",
        "ip('10.0.0.1').isGlobalUnicast() && ip('224.0.0.1').isLinkLocalMulticast() && ip('0.0.0.0').isUnspecified()",
        "ip('169.254.1.1').isLinkLocalUnicast() && string(ip('1::')) == '1::' && !ip.isCanonical('1:0::')",
        "cidr('10.0.0.0/8').containsIP('10.2.3.4') && cidr('10.0.0.0/8').containsIP(ip('10.0.0.1'))",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))",
        "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && cidr('10.1.2.3/8').ip() == ip('10.1.2.3')",
        "cidr('::/64').prefixLength() == 64 && isCIDR('1.2.3.4/32') && !isCIDR('1.2.3.4') && !isCIDR('1.2.3.4/08')",
        "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('500m').isLessThan(quantity('1'))",
        "quantity('2k').asInteger() == 2000 && quantity('1.5').asApproximateFloat() == 1.5",
        "quantity('1').add(quantity('1k')).sub(1) == quantity('1k') && isQuantity('1Mi') && !isQuantity('1 Mi')",
        "quantity('200M').compareTo(quantity('0.2G')) == 0 && !quantity('50k').add(quantity('1m')).isInteger()",
        "semver('1.2.3').isGreaterThan(semver('1.2.3-rc.1')) && semver('1.10.0').compareTo(semver('1.9.0')) == 1",
        "isSemver('1.2.3') && !isSemver('v1.2') && isSemver('v1.2', true) && semver('v01.2', true).minor() == 2",
        "semver('1.0.0-alpha.1').isLessThan(semver('1.0.0-alpha.beta')) && semver('1.0.0+a') == semver('1.0.0+b')",
        "!format.dns1123Label().validate('a-b').hasValue() && format.dns1123Label().validate('A').hasValue()",
        "format.named('dns1035LabelPrefix').value().validate('a-').orValue([]) == []",
        "format.named('uuid').value().validate('x') == optional.of(['does not match the UUID format'])",
        "!format.named('nothing').hasValue()",
    ],
)
def test_extensions(expression: str) -> None:
    """The libraries of the API server do what its documentation says."""
    assert evaluate(expression) is True


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("9223372036854775807 + 1 == 0", "integer overflow"),
        ("-(-9223372036854775807 - 1) == 0", "integer overflow"),
        ("0u - 1u == 0u", "unsigned integer overflow"),
        ("1 / 0 == 1", "division by zero"),
        ("1 % 0 == 1", "modulus by zero"),
        ("self.list[2] == ''", "index out of bounds: 2"),
        ("self.map['x'] == 1", "no such key: x"),
        ("self.inner.absent == ''", "no such key: absent"),
        ("self.any + 1 == 6", "no such overload"),
        ("int('x') == 1", 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("'abc'.substring(2, 1) == ''", "invalid substring range. start: 2, end: 1"),
        ("'abc'.charAt(4) == ''", "index out of range: 4"),
        ("[0].filter(x, x > 1).min() == 1", "min called on empty list"),
        ("optional.none().value() == 1", "optional.none() dereference"),
        (
            "ip('x').family() == 4",
            'IP Address "x" parse error during conversion from string: ParseAddr("x"): unable to',
        ),
        ("duration('x') == duration('1s')", 'time: invalid duration "x"'),
    ],
)
def test_failures(expression: str, message: str) -> None:
    """What has no value is an error that says why."""
    with pytest.raises(EvaluationError) as caught:
        evaluate(expression)
    assert str(caught.value).startswith(message)
