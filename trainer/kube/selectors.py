"""Label and field selectors, as the API server reads them (Kubernetes documentation, "Labels and Selectors")."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from trainer.kube.field_errors import show
from trainer.kube.names import label_value_problems, qualified_name_problems

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_TOKEN = re.compile(r"\s*(?P<token>==|!=|[=!<>(),]|[^\s=!<>(),]+)")
_PUNCTUATION = frozenset(["==", "!=", "=", "!", "<", ">", "(", ")", ","])


class Operator(StrEnum):
    """How a requirement compares a label."""

    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"
    GREATER_THAN = "gt"
    LESS_THAN = "lt"


_OBJECT_OPERATORS = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet the condition; an absent label meets `notin` and `!` only."""
        value = labels.get(self.key)
        match self.operator:
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
            case Operator.IN:
                return value is not None and value in self.values
            case Operator.NOT_IN:
                return value is None or value not in self.values
            case Operator.GREATER_THAN | Operator.LESS_THAN:
                return self._compares(value)

    def _compares(self, value: str | None) -> bool:
        try:
            number, bound = int(value or ""), int(self.values[0])
        except ValueError:
            return False
        return number > bound if self.operator is Operator.GREATER_THAN else number < bound

    def __str__(self) -> str:
        match self.operator:
            case Operator.EXISTS:
                return self.key
            case Operator.DOES_NOT_EXIST:
                return f"!{self.key}"
            case Operator.GREATER_THAN:
                return f"{self.key}>{self.values[0]}"
            case Operator.LESS_THAN:
                return f"{self.key}<{self.values[0]}"
            case Operator.IN if len(self.values) == 1:
                return f"{self.key}={self.values[0]}"
            case Operator.NOT_IN if len(self.values) == 1:
                return f"{self.key}!={self.values[0]}"
            case _:
                return f"{self.key} {self.operator} ({','.join(self.values)})"


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A conjunction of requirements on labels; without any it selects everything."""

    requirements: tuple[Requirement, ...] = ()

    @classmethod
    def parse(cls, text: str) -> LabelSelector:
        """Read the query form, such as `app=web,tier in (a,b),!canary`.

        Raises:
            ValueError: the text is not a label selector; the message says where and why.
        """
        return cls(tuple(_LabelParser(text).requirements()))

    @classmethod
    def from_object(cls, selector: Mapping[str, Any]) -> LabelSelector:
        """Read metav1.LabelSelector (`matchLabels` and `matchExpressions`); an empty one selects everything.

        Raises:
            ValueError: an unknown operator, or values that do not fit the operator.
        """
        requirements = [
            Requirement(key, Operator.IN, (value,))
            for key, value in sorted((selector.get("matchLabels") or {}).items())
        ]
        requirements += [_expression(entry) for entry in selector.get("matchExpressions") or []]
        return cls(tuple(requirements))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet all requirements."""
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def _expression(entry: Mapping[str, Any]) -> Requirement:
    key, name, values = entry.get("key") or "", entry.get("operator"), tuple(entry.get("values") or ())
    operator = _OBJECT_OPERATORS.get(str(name))
    if operator is None:
        raise ValueError(
            f"matchExpressions: operator {name!r} of key {key!r} is not one of {', '.join(_OBJECT_OPERATORS)}"
        )
    needs_values = operator in {Operator.IN, Operator.NOT_IN}
    if needs_values != bool(values):
        raise ValueError(
            f"matchExpressions: operator {name} of key {key!r} {'needs' if needs_values else 'takes no'} values"
        )
    return Requirement(_label_key(key), operator, values)


def _label_key(key: str) -> str:
    problems = qualified_name_problems(key)
    if problems:
        # A selector has no path in an object: this is how Go writes the lack of one.
        raise ValueError(f"<nil>: Invalid value: {show(key)}: {'; '.join(problems)}")
    return key


def _label_value(value: str, key: str, index: int = 0) -> str:
    problems = label_value_problems(value)
    if problems:
        raise ValueError(f"values[{index}][{key}]: Invalid value: {show(value)}: {'; '.join(problems)}")
    return value


class _LabelParser:
    """Recursive descent over the query form of a label selector, with the messages of apimachinery's parser."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._position = 0

    def requirements(self) -> Iterator[Requirement]:
        while token := self._peek():
            if token in _PUNCTUATION - {"!"}:
                raise _unexpected(token, "!, identifier, or 'end of string'")
            try:
                yield self._requirement()
            except ValueError as error:
                raise ValueError(f"unable to parse requirement: {error}") from error
            separator = self._take()
            if not separator:
                return
            if separator != ",":
                raise _unexpected(separator, "',' or 'end of string'")
            if (following := self._peek()) == "" or following in _PUNCTUATION - {"!"}:
                raise _unexpected(following, "identifier after ','")

    def _requirement(self) -> Requirement:
        if self._peek() == "!":
            self._take()
            return Requirement(self._key(), Operator.DOES_NOT_EXIST)
        key = self._key()
        if self._peek() in {"", ","}:
            return Requirement(key, Operator.EXISTS)
        match self._take():
            case "=" | "==":
                return Requirement(key, Operator.IN, (_label_value(self._value(), key),))
            case "!=":
                return Requirement(key, Operator.NOT_IN, (_label_value(self._value(), key),))
            case ">" | "<" as sign:
                operator = Operator.GREATER_THAN if sign == ">" else Operator.LESS_THAN
                return Requirement(key, operator, (self._integer(),))
            case "in" | "notin" as word:
                return Requirement(key, Operator(word), self._values(key))
            case other:
                raise _unexpected(other, "in, notin, =, ==, !=, gt, lt")

    def _key(self) -> str:
        key = self._take()
        if key == "" or key in _PUNCTUATION:
            raise _unexpected(key, "identifier")
        return _label_key(key)

    def _value(self) -> str:
        if self._peek() in {"", ","}:
            return ""
        value = self._take()
        if value in _PUNCTUATION:
            raise _unexpected(value, "identifier")
        return value

    def _integer(self) -> str:
        value = self._value()
        if not re.fullmatch(r"[-+]?[0-9]+", value):
            detail = "for 'Gt', 'Lt' operators, the value must be an integer"
            raise ValueError(f"values[0]: Invalid value: {show(value)}: {detail}")
        return value

    def _values(self, key: str) -> tuple[str, ...]:
        if (opening := self._take()) != "(":
            raise ValueError(f"found '{opening}' expected: '('")
        if (first := self._peek()) in _PUNCTUATION - {",", ")"} or not first:
            raise _unexpected(first, "',', ')' or identifier")
        values: set[str] = set()
        while True:
            values.add("" if self._peek() in {",", ")"} else self._take())
            separator = self._take()
            if separator == ")":
                return tuple(_label_value(value, key, index) for index, value in enumerate(sorted(values)))
            if separator != ",":
                raise _unexpected(separator, "',' or ')'")
            if (following := self._peek()) in _PUNCTUATION - {",", ")"} or not following:
                raise _unexpected(following, "',', or identifier")

    def _peek(self) -> str:
        return self._tokens[self._position] if self._position < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._position += 1
        return token


def _unexpected(found: str, expected: str) -> ValueError:
    return ValueError(f"found '{found}', expected: {expected}")


def _tokens(text: str) -> list[str]:
    return [match["token"] for match in _TOKEN.finditer(text)]


FieldRequirement: TypeAlias = tuple[str, Literal["=", "!="], str]
"""Path, operator and value of one condition on a field."""


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """A conjunction of comparisons of fields; which fields may be named is for the API server to say."""

    requirements: tuple[FieldRequirement, ...] = ()

    @classmethod
    def parse(cls, text: str) -> FieldSelector:
        r"""Read the query form, such as `metadata.name=a,status.phase!=Running`; `\` escapes `,`, `=` and itself.

        Raises:
            ValueError: a term has no operator or no path.
        """
        return cls(tuple(_field_requirement(term, text) for term in _split_terms(text) if term.strip()))

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Whether the fields meet all requirements; an absent field compares as the empty string."""
        return all((fields.get(path, "") == value) == (operator == "=") for path, operator, value in self.requirements)

    def __str__(self) -> str:
        return ",".join(f"{path}{operator}{_escape(value)}" for path, operator, value in self.requirements)


def _split_terms(text: str) -> Iterable[str]:
    return re.findall(r"(?:\\.|[^\\,])+", text)


def _field_requirement(term: str, text: str) -> FieldRequirement:
    match = re.fullmatch(r"(?P<path>[^=!\\]+)(?P<operator>==|!=|=)(?P<value>.*)", term.strip(), re.DOTALL)
    if match is None:
        raise ValueError(f"invalid selector: '{text}'; can't understand '{term}'")
    operator: Literal["=", "!="] = "!=" if match["operator"] == "!=" else "="
    return match["path"].strip(), operator, _unescape(match["value"].strip())


def _unescape(value: str) -> str:
    plain = re.sub(r"\\([\\,=])", "", value)
    if (escape := re.search(r"\\.?", plain)) is not None:
        raise ValueError(f"invalid field selector: invalid escape sequence: {escape[0]}")
    if "=" in plain:
        raise ValueError(f"invalid field selector: unescaped character in value: {ord('=')}")
    return re.sub(r"\\([\\,=])", r"\1", value)


def _escape(value: str) -> str:
    return re.sub(r"([\\,=])", r"\\\1", value)
