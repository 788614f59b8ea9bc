"""Costs of rules on objects: the figures that the API server keeps stable from release to release."""

from __future__ import annotations

from typing import Any, Final

import pytest

from trainer_devcluster.apiserver.celbudget import Budget
from trainer_devcluster.apiserver.celrules import compile_rules

Schema = dict[str, Any]

NO_SIZE: Final = 1844674407370955264
INT, TEXT, BYTES = {"type": "integer"}, {"type": "string"}, {"type": "string", "format": "byte"}
NUMBER, TRUTH = {"type": "number"}, {"type": "boolean"}
DURATION, DATE, TIME = ({"type": "string", "format": name} for name in ("duration", "date", "date-time"))
ANY: Final[Schema] = {"x-kubernetes-int-or-string": True}


def fields(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}


def items(schema: Schema, **keywords: Any) -> Schema:
    return {"type": "array", "items": schema, **keywords}


def values(schema: Schema, **keywords: Any) -> Schema:
    return {"type": "object", "additionalProperties": schema, **keywords}


PAIRS: Final = items(fields(k=TEXT, v=TEXT, v2=TEXT))
META: Final = fields(name=TEXT, generateName=TEXT)
EMBEDDED: Final[Schema] = {"type": "object", "x-kubernetes-embedded-resource": True}
TEN: Final = {"maxItems": 10}
TEN_ENTRIES: Final = {"maxProperties": 10}
TABLE: Final[dict[str, tuple[Schema, dict[str, int]]]] = {
    "integers": (
        fields(val1=INT, val2=INT, val3=INT, val6=INT),
        {
            "self.val1 == self.val6": 4,
            "type(self.val1) == int": 4,
            "self.val3 + 1 == 2147483647 + 1": 5,
        },
    ),
    "numbers": (
        fields(val1=INT, val4=NUMBER),
        {
            "type(self.val4) == double": 4,
            "self.val4 == 1.0": 2,
            "double(self.val1) < self.val4": 6,
            "self.val1 < int(self.val4)": 6,
            "double(5) < 10.0": 2,
        },
    ),
    "texts": (
        fields(val1=TEXT, val2=TEXT),
        {
            "self.val1.startsWith('Rook')": 3,
            "!self.val1.startsWith('knight')": 4,
            "self.val1.matches('^[^0-9]*$')": 943721,
            "!self.val1.matches('^[0-9]*$')": 629149,
            "type(self.val1) == string": 4,
            "size(self.val1) == 12": 4,
            "self.val1.charAt(3) == 'k'": 4,
            "self.val1.indexOf('o') == 1": 314576,
            "self.val1.indexOf('o', 2) == 2": 314576,
            "self.val1.replace(' ', 'x') == 'Rookxtakesx👑'": 629150,
            "self.val1.replace(' ', 'x', 1) == 'Rookxtakes 👑'": 629150,
            "self.val1.split(' ') == ['Rook', 'takes', '👑']": 629159,
            "self.val1.split(' ', 2) == ['Rook', 'takes 👑']": 629159,
            "self.val1.substring(5) == 'takes 👑'": 314576,
            "self.val1.substring(4, 10).trim() == 'takes'": 629149,
            "self.val1.upperAscii() == 'ROOK TAKES 👑'": 314577,
            "self.val1.lowerAscii() == self.val1.lowerAscii()": 943723,
        },
    ),
    "bytes": (
        fields(val1=BYTES, val2=BYTES),
        {"self.val1 == self.val2": 314577, "self.val1 == b'AB'": 3, "size(self.val1) == 2": 4},
    ),
    "booleans": (fields(val1=TRUTH, val4=TRUTH), {"self.val1 != self.val4": 4, "type(self.val1) == bool": 4}),
    "durations": (
        fields(val1=DURATION),
        {
            "self.val1 == duration('1h2m') + duration('3s4ms')": 6,
            "self.val1.getHours() == 1": 4,
            "type(self.val1) == google.protobuf.Duration": 4,
        },
    ),
    "times": (
        fields(val1=TIME, day=DATE),
        {
            "self.val1 == timestamp('2011-08-18T00:00:00.000+01:00') + duration('19h3m37s10ms')": 6,
            "self.val1.getDate('01:00') == 18": 4,
            "type(self.day) == google.protobuf.Timestamp": 4,
        },
    ),
    "choices": (
        fields(enumStr={**TEXT, "enum": ["Pending", "Available", "Bound", "Released", "Failed"]}),
        {"self.enumStr == 'Pending'": 3, "self.enumStr in ['Pending', 'Available']": 14},
    ),
    "conversions": (
        fields(
            val1=INT, val2=NUMBER, val4=NUMBER, val6=TEXT, val7=BYTES, val8=TEXT, val9=DURATION, val10=TEXT, val11=TIME
        ),
        {
            "int(self.val2) == self.val1": 5,
            "bytes(self.val6) == self.val7": 629150,
            "string(self.val1) == self.val6": 314578,
            "string(self.val4) == '10.5'": 4,
            "string(self.val7) == self.val6": 629150,
            "duration(self.val8) == self.val9": 6,
            "timestamp(self.val10) == self.val11": 6,
            "string(self.val11) == self.val10": 314578,
        },
    ),
    "lists": (
        fields(val1=items(INT), val2=items(INT)),
        {
            "1 in self.val1": 1572865,
            "self.val2[0] in self.val1": 1572868,
            "!(0 in self.val1)": 1572866,
            "self.val1 + self.val2 == [1, 2, 3, 1, 2, 3]": 16,
            "self.val1 + [4, 5] == [1, 2, 3, 4, 5]": 24,
            "has(self.val1) && has(self.val2)": 2,
            "self.val1.all(k, size(self.val1) > 0)": 11010044,
            "self.val1.exists_one(k, self.val1 == [2])": 23592949,
            "!self.val1.exists_one(k, size(self.val1) > 0)": 9437183,
            "size(self.val1.filter(k, size(self.val1) > 1)) == 1": 26738686,
            "self.val1.exists(e, e > 2)": 9437181,
            "!self.val1.exists_one(e, e == 2)": 4718594,
            "size(self.val1.filter(e, e%2 == 0)) == 3": 25165823,
            "self.val1.map(e, e * 20).filter(e, e > 50).exists(e, e == 60)": 53477367,
            "self.val1.map(e, e * 20).filter(e, e > 50).exists_one(e, e == 60)": 50331642,
        },
    ),
    "lists of lists": (
        fields(objs=items(items(fields(k=TEXT, v=TEXT)))),
        {
            "self.objs[0] == self.objs[1]": 104864,
            "self.objs[0] + self.objs[2] == self.objs[2]": 104868,
            "self.objs[0] == [self.objs[0][0], self.objs[0][1]]": 22,
            "self.objs[2] + [self.objs[0][0], self.objs[0][1]] == self.objs[0]": 104883,
            "size(self.objs[0] + [self.objs[3][0]]) == 3": 20,
            "self.objs[0].all(k, size(self.objs[0]) > 0)": 8388604,
            "self.objs[0].exists_one(k, size(self.objs[0]) > 0)": 7340030,
            "size(self.objs[0].filter(k, size(self.objs[0]) > 1)) == 1": 18874366,
        },
    ),
    "maps": (
        fields(val1=values(TEXT), val2=values(TEXT), val=values(INT)),
        {
            "self.val1 == self.val2": 39326,
            "'k1' in self.val1": 3,
            "self.val1 == {'k1': 'a', 'k2': 'b'}": 33,
            "self.val1.all(k, size(self.val1) > 0)": 2752508,
            "self.val1.exists_one(k, size(self.val1) > 0)": 2359294,
            "size(self.val1.filter(k, size(self.val1) > 1)) == 1": 6684670,
            "!has(self.val.a)": 3,
            "self.val.all(k, self.val[k] > 0)": 3595115,
            "self.val.exists_one(k, self.val[k] == 2)": 2696338,
            "!self.val.exists_one(k, self.val[k] > 0)": 3145728,
            "size(self.val.filter(k, self.val[k] > 1)) == 1": 8089017,
        },
    ),
    "objects": (
        fields(a=fields(b=INT), a1=fields(b1=fields(c1=INT), d2=fields(e2=INT)), objs=items(fields(f1=TEXT))),
        {
            "self.objs[0] == self.objs[1]": 6,
            "has(self.a.b)": 2,
            "has(self.a1.b1.c1)": 3,
            "!(has(self.a1.d2) && has(self.a1.d2.e2))": 6,
            "has(self.a) && has(self.a1)": 2,
            "type(self) == type(self)": NO_SIZE + 4,
        },
    ),
    "objects in a list": (
        fields(listMap=PAIRS),
        {
            "has(self.listMap[0].v)": 3,
            "self.listMap.all(m, m.k.startsWith('a'))": 6291453,
            "self.listMap.all(m, !has(m.v2) || m.v2 == 'z')": 8388603,
            "self.listMap.exists(m, m.k.endsWith('1'))": 7340028,
            "self.listMap.exists_one(m, m.k == 'a3')": 5242879,
            "size(self.listMap.filter(m, m.k == 'a1')) == 1": 16777215,
            "self.listMap.exists(m, m.k == 'a1' && m.v == 'b1')": 10485753,
            "self.listMap.map(m, m.v).exists(v, v == 'b1')": 19922939,
            "self.listMap.map(m, has(m.v2) && m.v2 == 'z', m.v2).size() == 1": 18874365,
            "self.listMap.filter(m, has(m.v2) && m.v2 == 'z').map(m, m.v2).size() == 1": 32505851,
        },
    ),
    "whole objects": (
        fields(kind=TEXT, metadata=META, embedded={**fields(spec=fields(field1=TEXT)), **EMBEDDED}),
        {
            "self.kind == 'Pod'": 3,
            "self.metadata.generateName == 'pickItForMe'": 5,
            "self.embedded.kind == 'Pod'": 4,
            "self.embedded.metadata.generateName == 'pickItForMe'": 6,
            "self.embedded.spec.field1 == 'a'": 5,
        },
    ),
    "integers or strings": (
        fields(something=ANY, current=INT, available=INT),
        {
            "type(self.something) == int ? self.something == 1 : self.something == '25%'": 7,
            "self.something == '25%' || self.something == 1": 6,
            "self.something != 'some string'": 4,
            "self.something != ['anything']": 13,
            r"type(self.something) == string && self.something.matches(r'(\d+(\.\d+)?%)')": 1258298,
            "type(self.something) == int ? self.current <= self.something : double(self.current) / "
            "double(self.available) >= double(self.something.replace('%', '')) / 100.0": 629162,
        },
    ),
    "containers of containers": (
        fields(
            mapOfMap=values(values(TEXT, **TEN_ENTRIES), **TEN_ENTRIES),
            mapOfListMap=values(items(fields(k=TEXT, v=TEXT), **TEN), **TEN_ENTRIES),
            listMapOfObj=items(fields(k2=TEXT, v2=TEXT), **TEN),
            listOfMap=items(values(TEXT, **TEN_ENTRIES), **TEN),
        ),
        {
            "self.mapOfMap['x']['y'] == 'b'": 5,
            "self.mapOfListMap['o'].exists(e, e.k == '1' && e.v == 'd')": 104,
            "self.listMapOfObj.exists(e, e.k2 == '2' && e.v2 == 'f')": 103,
            "self.listOfMap[0]['z'] == 'g'": 5,
            "self.mapOfMap.map(k, k).map(k, k).size() == 1": 286,
            "self.listOfMap.map(e, e).map(e, e).size() == 1": 286,
            "self.mapOfMap.map(k, self.mapOfMap[k].map(m, m)).size() == 1": 1585,
            "self.listOfMap.map(e, e.map(m, m)).size() == 1": 1555,
        },
    ),
    "optional values": (
        fields(obj=fields(field=TEXT), m=values(TEXT), l=items(TEXT)),
        {
            "optional.of('a') != optional.of('b')": NO_SIZE + 2,
            "optional.of('a').hasValue()": 2,
            "optional.of('a').or(optional.of('a')).hasValue()": 4,
            "optional.of('a').optMap(v, v == 'value').hasValue()": 18,
            "optional.of('abcdefgabcdefg').optMap(v, v.size()).hasValue()": 18,
            "optional.of([1, 2, 3, 4, 5]).optMap(v, v.size()).hasValue()": 38,
            "self.l[?0].optMap(v, v == 'a').hasValue()": 22,
            "self.obj.?field == optional.of('a')": NO_SIZE + 4,
            "self.obj.?field.orValue('v') == 'a'": 5,
            "self.m[?'k'] == optional.of('v')": NO_SIZE + 4,
            "self.l[?0] == optional.of('a')": NO_SIZE + 4,
        },
    ),
    "quantities": (
        fields(val1=TEXT, val2=TEXT),
        {
            "isQuantity(self.val1)": 314575,
            "quantity(self.val1).isLessThan(quantity(self.val2))": 629151,
            "quantity(self.val1).isInteger()": 314576,
        },
    ),
}


@pytest.mark.parametrize(
    ("schema", "rule", "expected"),
    [
        pytest.param(schema, rule, expected, id=f"{title}: {rule}")
        for title, (schema, rules) in TABLE.items()
        for rule, expected in rules.items()
    ],
)
def test_costs(schema: Schema, rule: str, expected: int) -> None:
    """A rule may be written where the API server lets it be written, because it costs the same."""
    budget = Budget()
    compile_rules({**schema, "x-kubernetes-validations": [{"rule": rule}]}, budget=budget)
    assert [charge.cost for charge in budget.charges] == [expected]
