"""Label and field selectors, as the API server reads them (Kubernetes documentation, "Labels and Selectors")."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from trainer.kube.field_errors import show
from trainer.kube.names import label_value_problems, qualified_name_problems

_REQUIREMENT = re.compile(
    r"""
    \s*+ (?:
        ! \s*+ (?P<absent> [^\s=!<>(),]++ )
      | (?P<key> [^\s=!<>(),]++ ) \s*+ (?:
            (?P<sign> == | != | = | < | > ) \s*+ (?P<value> [^\s=!<>(),]*+ )
          | (?P<word> in | notin ) \s*+ \( (?P<values> [^=!<>()]*+ ) \)
        )?+
    ) \s*+ (?: , (?= \s* [^\s,] ) | \Z )
    """,
    re.VERBOSE,
)
"""One requirement and the comma or end behind it, read in linear time."""
_SHOWN = 200
"""Characters of a malformed selector that a message repeats."""


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
        return cls(tuple(_requirements(text)))

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


def _requirements(text: str) -> Iterator[Requirement]:
    """The requirements of the query form of a label selector; an error names the place."""
    text, position = text.strip(), 0
    while position < len(text):
        match = _REQUIREMENT.match(text, position)
        if match is None:
            raise ValueError(f"unable to parse requirement: {_complaint(text[position : position + _SHOWN].strip())}")
        try:
            yield _requirement(match)
        except ValueError as error:
            raise ValueError(f"unable to parse requirement: {error}") from error
        position = match.end()


def _requirement(match: re.Match[str]) -> Requirement:
    if match["absent"] is not None:
        return Requirement(_label_key(match["absent"]), Operator.DOES_NOT_EXIST)
    key = _label_key(match["key"])
    match match["sign"] or match["word"]:
        case None:
            return Requirement(key, Operator.EXISTS)
        case "=" | "==":
            return Requirement(key, Operator.IN, (_label_value(match["value"], key),))
        case "!=":
            return Requirement(key, Operator.NOT_IN, (_label_value(match["value"], key),))
        case ">" | "<" as sign:
            if not re.fullmatch(r"[-+]?[0-9]+", match["value"]):
                detail = "for 'Gt', 'Lt' operators, the value must be an integer"
                raise ValueError(f"values[0]: Invalid value: {show(match['value'])}: {detail}")
            operator = Operator.GREATER_THAN if sign == ">" else Operator.LESS_THAN
            return Requirement(key, operator, (match["value"],))
        case word:
            values = sorted({value.strip() for value in match["values"].split(",")})
            return Requirement(
                key, Operator(word), tuple(_label_value(value, key, index) for index, value in enumerate(values))
            )


def _complaint(rest: str) -> str:
    if following := re.match(r"[^\s=!<>(),]+\s+(?!(?:in|notin)\b)([^\s=!<>(),]+)", rest):
        return f"found '{following[1]}', expected: in, notin, =, ==, !=, gt, lt"
    return f"'{rest}' is none of KEY, !KEY, KEY=VALUE, KEY!=VALUE, KEY>NUMBER, KEY in (VALUES), KEY notin (VALUES)"


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
