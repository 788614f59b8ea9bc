"""YAML as Kubernetes reads and writes it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from trainer import kubernetes_yaml
from trainer.kubernetes_yaml import YamlError, dump, join, parse


@pytest.fixture(params=["libyaml", "python"])
def loaders(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module as it is with libyaml, and where PyYAML was built without."""
    if request.param == "libyaml":
        yield kubernetes_yaml
        return
    monkeypatch.setitem(sys.modules, "yaml.cyaml", None)
    spec = importlib.util.spec_from_file_location("yaml_without_libyaml", str(kubernetes_yaml.__file__))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module


@pytest.mark.parametrize(
    ("text", "where"),
    [
        pytest.param("a: [1\nb: 2\n", "line 2, column 2", id="bracket"),
        pytest.param("a: 1\na: 2\n", "line 2, column 1", id="key-twice"),
        pytest.param("a: *b\n", "line 1, column 4", id="undefined-alias"),
        pytest.param("a: 'x", "line 1, column 6", id="open-quote"),
        pytest.param("\ta: 1", "line 1, column 1", id="tab"),
        pytest.param("a: b: c", "line 1, column 5", id="value-in-value"),
        pytest.param("a: .nan", "line 1, column 4", id="no-number"),
        pytest.param("a: [", "line 1, column 5", id="end-of-the-text"),
        pytest.param("a: [\n", "line 2, column 1", id="end-of-the-last-line"),
        pytest.param("[" * 100_000, "", id="lists-in-lists"),
        pytest.param("{a: " * 50_000, "", id="mappings-in-mappings"),
        pytest.param("- " * 30_000, "", id="lists-in-block-style"),
        pytest.param("a: '\ud800'", "", id="half-a-character"),
    ],
)
def test_both_parsers(loaders: Any, text: str, where: str) -> None:
    """With and without libyaml the same texts are refused at the same place, however deep they are nested."""
    with pytest.raises(loaders.YamlError) as caught:
        list(loaders.parse(text))
    assert caught.value.where == where
    (document,) = loaders.parse("{a: 1:30, b: 0644, c: y}")
    assert document == {"a": "1:30", "b": 420, "c": True}
    with pytest.raises(loaders.YamlError, match="an alias is not allowed here"):
        list(loaders.parse("a: &a [1]\nb: *a\n", aliases=False))


@pytest.mark.parametrize(
    ("text", "message", "where"),
    [
        pytest.param(
            "a: [1\nb: 2\n", "not valid YAML: did not find expected ',' or ']'", "line 2, column 2", id="bracket"
        ),
        pytest.param(
            "a: 1\na: 2\n", "not valid YAML: the key 'a' is defined twice", "line 2, column 1", id="key twice"
        ),
        pytest.param("a: \x01", "not valid YAML: ", "", id="control character"),
        pytest.param(
            "nesting depth: 1\nnesting depth: 2", "not valid YAML: ", "line 2, column 1", id="key-of-the-user"
        ),
        pytest.param("[" * 5000, "not valid YAML: it is nested too deeply", "", id="abyss"),
    ],
)
def test_what_is_no_yaml(text: str, message: str, where: str) -> None:
    """The message says what is wrong, and where if that is known."""
    with pytest.raises(YamlError) as caught:
        list(parse(text))

    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    assert caught.value.where == where


def test_aliases_may_be_refused() -> None:
    """A short text with them can stand for a huge object."""
    text = "a: &a [1]\nb: *a\n"
    assert list(parse(text)) == [{"a": [1], "b": [1]}]
    with pytest.raises(YamlError, match="not valid YAML: an alias is not allowed here"):
        list(parse(text, aliases=False))
    assert list(parse("a: '*a'\nb: &b 1\n", aliases=False)) == [{"a": "*a", "b": 1}]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        pytest.param("1:30", "1:30", id="time of day"),
        pytest.param("190:20:30.15", "190:20:30.15", id="sexagesimal"),
        pytest.param("2026-01-01", "2026-01-01", id="date"),
        pytest.param("=", "=", id="equals sign"),
        pytest.param("2.0", 2, id="whole number with a point"),
        pytest.param("1e3", 1000, id="whole number with an exponent"),
        pytest.param("-0.5", -0.5, id="fraction"),
        pytest.param("0644", 420, id="octal"),
        pytest.param("0o644", 420, id="octal in YAML 1.2"),
        pytest.param("0x1F", 31, id="hexadecimal"),
        pytest.param("-0b11", -3, id="binary"),
        pytest.param("1_000", 1000, id="grouped digits"),
        pytest.param("089", 89, id="no octal"),
        pytest.param("y", True, id="yes"),
        pytest.param("N", False, id="no"),
        pytest.param("yarn", "yarn", id="word with y"),
        pytest.param("1.2.3", "1.2.3", id="version"),
        pytest.param("12ab", "12ab", id="digits and letters"),
        pytest.param("0x_", "0x_", id="prefix without digits"),
    ],
)
def test_plain_words(written: str, value: Any) -> None:
    """Numbers and texts are distinguished as by kubectl."""
    document: Any
    (document,) = parse(f"value: {written}")

    assert document == {"value": value}
    assert type(document["value"]) is type(value)


@pytest.mark.parametrize("written", [".nan", ".inf", "-.inf", "1e999"])
def test_numbers_that_json_does_not_have(written: str) -> None:
    """They are refused where they stand."""
    with pytest.raises(YamlError, match="is a number that JSON cannot say") as caught:
        list(parse(f"value: {written}"))

    assert caught.value.where == "line 1, column 8"


def test_endless_numbers() -> None:
    """A number of thousands of digits is a mistake, and no reason to fail otherwise."""
    with pytest.raises(YamlError, match="too many digits"):
        list(parse("value: " + "1" * 5000))


def test_documents_before_a_mistake_are_read() -> None:
    """A mistake at the end of a file does not hide what comes before it."""
    documents = parse("a: 1\n---\nb: 2\n--- [")

    assert [next(documents), next(documents)] == [{"a": 1}, {"b": 2}]
    with pytest.raises(YamlError):
        next(documents)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        pytest.param("plain", "plain", id="word"),
        pytest.param("29400", "'29400'", id="integer"),
        pytest.param("1e3", "'1e3'", id="number in Go"),
        pytest.param("1.5", "'1.5'", id="fraction"),
        pytest.param("0o17", "'0o17'", id="octal in YAML 1.2"),
        pytest.param("y", "'y'", id="yes"),
        pytest.param("on", "'on'", id="on"),
        pytest.param("2026-01-01", "'2026-01-01'", id="date"),
        pytest.param("500m", "500m", id="quantity"),
        pytest.param("", "''", id="empty"),
        pytest.param("a: b # c", "'a: b # c'", id="looks like YAML"),
        pytest.param("one\ntwo\n", "|\n  one\n  two", id="lines"),
        pytest.param("word " * 60 + "end", "word " * 60 + "end", id="long"),
        pytest.param("über", "über", id="letters of other languages"),
        pytest.param("\x85", r'"\N"', id="rare line break"),
        pytest.param("a\r\nb", r'"a\r\nb"', id="line break of Windows"),
        pytest.param(True, "true", id="true"),
        pytest.param(2, "2", id="number"),
        pytest.param(None, "null", id="null"),
        pytest.param({}, "{}", id="nothing"),
    ],
)
def test_values(value: Any, written: str) -> None:
    """Every reader takes a value for what it is."""
    text = dump({"value": value})

    assert text == f"value: {written}\n"
    assert list(parse(text)) == [{"value": value}]


def test_objects() -> None:
    """Keys are sorted as by kubectl, and what occurs twice is written twice."""
    shared = {"b": [1, 2], "a": {"d": 1, "c": 2}}
    text = dump({"two": shared, "one": shared})

    written = "a:\n    c: 2\n    d: 1\n  b:\n  - 1\n  - 2\n"
    assert text == f"one:\n  {written}two:\n  {written}"


def test_streams() -> None:
    """Several documents make one text."""
    assert list(yaml.safe_load_all(join([dump({"a": 1}), dump({"b": 2})]))) == [{"a": 1}, {"b": 2}]
