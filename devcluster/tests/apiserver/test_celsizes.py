"""Sizes that schemas allow: the costs of rules are those that the API server estimates for the same schemas."""

from __future__ import annotations

from typing import Any, Final

import pytest

from trainer_devcluster.apiserver.celbudget import Budget
from trainer_devcluster.apiserver.celrules import compile_rules
from trainer_devcluster.apiserver.celsizes import size_at, smallest_json

Schema = dict[str, Any]

OBJECT: Final[Schema] = {
    "type": "object",
    "required": ["required"],
    "properties": {"required": {"type": "string"}, "optional": {"type": "string"}},
}
INT_OR_STRING: Final[Schema] = {"x-kubernetes-int-or-string": True}


def cost(rule: str, schema: Schema) -> int:
    """What a rule on a schema costs."""
    budget = Budget()
    _, causes = compile_rules({**schema, "x-kubernetes-validations": [{"rule": rule}]}, budget=budget)
    assert not [cause for cause in causes if cause.reason != "FieldValueForbidden"]
    return budget.charges[-1].cost


def text(text_format: str = "", **keywords: Any) -> Schema:
    return {"type": "string", **({"format": text_format} if text_format else {}), **keywords}


def items(schema: Schema, **keywords: Any) -> Schema:
    return {"type": "array", "items": schema, **keywords}


def values(schema: Schema, **keywords: Any) -> Schema:
    return {"type": "object", "additionalProperties": schema, **keywords}


@pytest.mark.parametrize(
    ("schema", "unbounded", "ten"),
    [
        pytest.param(items({"type": "number"}), 4718591, 32, id="numbers"),
        pytest.param(items(text()), 3145727, 32, id="texts"),
        pytest.param(items({"type": "boolean"}), 1887437, 32, id="booleans"),
        pytest.param(items(items({"type": "number"})), 3145727, 32, id="lists"),
        pytest.param(items(OBJECT), 555128, 32, id="objects with a required field"),
        pytest.param(items(INT_OR_STRING), 4718591, 32, id="integers or strings"),
        pytest.param(items(text("duration")), 2359295, 32, id="durations"),
        pytest.param(items(text("date")), 725936, 32, id="dates"),
        pytest.param(items(text("date-time")), 428963, 32, id="times"),
        pytest.param(values({"type": "number"}), 1348169, 32, id="numbers by name"),
        pytest.param(values(text()), 1179647, 32, id="texts by name"),
        pytest.param(values({"type": "boolean"}), 943718, 32, id="booleans by name"),
        pytest.param(values(INT_OR_STRING), 1348169, 32, id="integers or strings by name"),
        pytest.param(values(OBJECT), 428963, 32, id="objects by name"),
        pytest.param(values(values({"type": "number"})), 1179647, 32, id="maps by name"),
        pytest.param(values(items({"type": "number"})), 1179647, 32, id="lists by name"),
        pytest.param(values(text("duration")), 1048577, 32, id="durations by name"),
        pytest.param(values(text("date")), 524288, 32, id="dates by name"),
        pytest.param(values(text("date-time")), 349526, 32, id="times by name"),
    ],
)
def test_number_of_items(schema: Schema, unbounded: int, ten: int) -> None:
    """Without a bound there may be as many of the smallest items as fit into a request."""
    keyword = "maxItems" if schema["type"] == "array" else "maxProperties"
    assert cost("self.all(x, true)", schema) == unbounded
    assert cost("self.all(x, true)", {**schema, keyword: 10}) == ten


NUMBERS: Final = items({"type": "number"})


@pytest.mark.parametrize(
    ("rule", "schema", "expected"),
    [
        pytest.param("self.contains('test')", text(), 314574, id="text"),
        pytest.param("self.contains('test')", text(maxLength=10), 5, id="bounded text, four bytes a character"),
        pytest.param("self.contains('test')", text(maxLength=-1), 1, id="negative bound"),
        pytest.param("self.startsWith('test')", text(), 2, id="start"),
        pytest.param("size(self + 'hello') > size('hello')", text(), 314578, id="texts together"),
        pytest.param("size(self + 'hello') > size('hello')", text(maxLength=4), 7, id="bounded texts together"),
        pytest.param("self[1] == 0.0", NUMBERS, 2, id="numbers have no size"),
        pytest.param("self[1] == self[1]", items(text()), 314577, id="items without a bound"),
        pytest.param("self[1] == self[1]", items(text(), maxItems=8), 314577, id="bounded items"),
        pytest.param("self.all(x, self.all(y, true))", {**NUMBERS, "maxItems": 10}, 352, id="square"),
        pytest.param(
            "self.all(x, self.all(y, self.all(z, true)))", {**NUMBERS, "maxItems": 10}, 3552, id="third power"
        ),
        pytest.param("self.matches('x')", text(), 314574, id="pattern"),
        pytest.param("self.matches('x')", text(maxLength=50), 22, id="pattern on a bounded text"),
        pytest.param("self.matches('')", text(), 1, id="empty pattern"),
        pytest.param("self.all(x, x.contains(self[x]))", values(text()), 2752507, id="keys have no size"),
        pytest.param(
            "self.all(x, x.contains(self[x]))", values(text(maxLength=10), maxProperties=10), 72, id="bounded values"
        ),
        pytest.param("self == 'x'", text(), 2, id="comparison with a short text"),
        pytest.param("self == 'x'", text(maxLength=0), 1, id="comparison of an empty text"),
        pytest.param("self == b'x'", text("byte"), 2, id="bytes"),
        pytest.param("self == b'x'", text("byte", maxLength=0), 1, id="no bytes"),
        pytest.param(
            "self.all(x, x == 0.0)", {**NUMBERS, "maxItems": 3 * 1024 * 2048}, 25165826, id="more than a request holds"
        ),
        pytest.param("self.all(x, x == 0.0)", NUMBERS, 6291454, id="as many as a request holds"),
        pytest.param(
            "self.all(x, x['y'].required == 'z')", items(values(OBJECT)), 7340027, id="fields of values of items"
        ),
        pytest.param(
            "self.all(x, x['y'].required == 'z')", items(values(OBJECT), maxItems=10), 72, id="of bounded items"
        ),
        pytest.param("self[0] == 5", items(INT_OR_STRING), 3, id="integer or string"),
        pytest.param("self[0] == false", items({"type": "boolean"}), 2, id="booleans have no size"),
        pytest.param("self[0] == null", items(OBJECT), 2, id="objects have no size"),
        pytest.param("self[0][0] == -1.0", items(NUMBERS), 3, id="item of an item"),
        pytest.param("self.all(x, x.y == 25.2)", items(values({"type": "number"})), 6291452, id="fields of maps"),
        pytest.param("self[0].x > 2.0", items(values({"type": "number"})), 4, id="field of an item"),
        pytest.param("self[0].getHours() == 2", items(text("duration")), 4, id="part of a duration"),
        pytest.param("self[2].getMinutes() == 45", items(text("date-time")), 4, id="part of a time"),
        pytest.param("self.find('[0-9]+') == ''", text(), 629147, id="search"),
        pytest.param("self.find('[0-9]+') == ''", text(maxLength=10), 11, id="search in a bounded text"),
        pytest.param("self.join(' ') == 'aa bb'", items(text()), 329853068905, id="join"),
        pytest.param(
            "self.join(' ') == 'aa bb'", items(text(maxLength=10), maxItems=10), 43, id="join of bounded texts"
        ),
        pytest.param("self.isSorted() == true", items(text()), 329854432052, id="order"),
        pytest.param(
            "self.isSorted() == true", items(text(maxLength=10), maxItems=10), 52, id="order of bounded texts"
        ),
        pytest.param("self.lowerAscii() == 'lower!'", text(), 314575, id="lower case"),
        pytest.param("self.lowerAscii() == 'lower!'", text(maxLength=10), 6, id="lower case of a bounded text"),
        pytest.param("oldSelf.size() == self.size()", values({"type": "integer"}), 5, id="sizes"),
        pytest.param("self['a'] == self['b']", values(text("date-time")), 8, id="times"),
        pytest.param("self['c'] == self['d']", values(text("duration")), 8, id="durations"),
        pytest.param("self.contains('A')", text(enum=["A", "B", "C", "LongValue"]), 2, id="longest choice"),
        pytest.param(
            "self.contains('A')", text(enum=["A", "LongValue"], maxLength=1000), 401, id="a bound counts more than that"
        ),
    ],
)
def test_sizes(rule: str, schema: Schema, expected: int) -> None:
    """Bounds in the schema decide what a rule can cost, and the largest request where there are none."""
    assert cost(rule, schema) == expected


@pytest.mark.parametrize(("bound", "expected"), [(None, 629154), (4, 12)])
def test_replacement(bound: int | None, expected: int) -> None:
    """The result of `replace` is as long as the texts that go in allow."""
    source = text() if bound is None else text(maxLength=bound)
    fields = {"str": source, "before": text(maxLength=2), "after": text(maxLength=4)}
    rule = "self.str.replace(self.before, self.after) == 'does not matter'"
    assert cost(rule, {"type": "object", "properties": fields}) == expected


@pytest.mark.parametrize(("bound", "expected"), [(None, 629160), (10, 22)])
def test_split(bound: int | None, expected: int) -> None:
    """`split` may make one item of each character."""
    each = text() if bound is None else text(maxLength=bound)
    rule = "self.str.split(self.separator) == []"
    assert cost(rule, {"type": "object", "properties": {"str": each, "separator": each}}) == expected


WIDGET: Final[Schema] = {
    "type": "object",
    "properties": {
        "metadata": {"type": "object", "properties": {"name": text(maxLength=63)}},
        "if": text(maxLength=3),
        "x-y": text(maxLength=4),
        "loose": {"x-kubernetes-preserve-unknown-fields": True},
        "port": {**INT_OR_STRING, "maxLength": 5},
        "template": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "properties": {"labels": values(text(maxLength=1), maxProperties=2)},
        },
    },
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("self", 0, id="object"),
        pytest.param("self.__if__", 12, id="reserved word"),
        pytest.param("self.x__dash__y", 16, id="escaped name"),
        pytest.param("self.port", 20, id="integer or string"),
        pytest.param("self.port.@items", None, id="below an integer or string"),
        pytest.param("self.loose", None, id="without a type"),
        pytest.param("self.nothing", None, id="not there"),
        pytest.param("self.nothing.either", None, id="below what is not there"),
        pytest.param("self.metadata.name", 3145726, id="the server bounds no names of whole objects"),
        pytest.param("self.metadata.labels", None, id="not visible"),
        pytest.param("self.template.kind", 3145726, id="embedded object"),
        pytest.param("self.template.labels", 2, id="map"),
        pytest.param("self.template.labels.@keys", 0, id="keys"),
        pytest.param("self.template.labels.@values", 4, id="values"),
        pytest.param("oldSelf.x__dash__y", 16, id="the variable does not matter"),
    ],
)
def test_paths(path: str, expected: int | None) -> None:
    """Paths lead through fields as expressions write them, and to nothing where expressions cannot look."""
    assert size_at(WIDGET, tuple(path.split(".")), is_resource=True) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param({"type": "integer"}, 1, id="integer"),
        pytest.param(text(), 2, id="text"),
        pytest.param(OBJECT, 2 + len("required") + 4 + 2, id="required field"),
        pytest.param({**OBJECT, "properties": {"required": text(default="x")}}, 2, id="field with a default"),
        pytest.param({**OBJECT, "properties": {"required": {}}}, 2, id="field that expressions do not see"),
        pytest.param({"type": "object", "required": ["other"]}, 2, id="required, and not described"),
        pytest.param(values(OBJECT), 2, id="map"),
        pytest.param(items(OBJECT), 2, id="list"),
        pytest.param({}, 0, id="anything"),
    ],
)
def test_smallest_json(schema: Schema, expected: int) -> None:
    """Only what has to be sent counts."""
    assert smallest_json(schema) == expected
