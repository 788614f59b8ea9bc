"""JSONPath in kubectl's dialect, as printer columns and scale paths of custom resources use it.

Source: Kubernetes documentation, "JSONPath Support". Template features of kubectl (several expressions, `range`, text
between them) are for clients and refused here.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

Step: TypeAlias = Callable[[list[Any], Any], list[Any]]
"""From the values found so far, and the root, to the values one step further."""

_FIELD: Final = re.compile(r"(?:\\.|[^\\.\[\]{}\s()=!<>,'\"])+")
_SLICE: Final = re.compile(r"^(-?\d*):(-?\d*)(?::(-?\d*))?$")
_QUOTED: Final = re.compile(r"""^(['"])((?:\\.|(?!\1).)*)\1$""")
_COMPARISON: Final = re.compile(r"(==|!=|<=|>=|<|>)")
_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_NOTHING: Final = object()


class JSONPathError(ValueError):
    """A path that cannot be parsed; the message quotes it and says where."""


@dataclass(frozen=True, slots=True)
class JSONPath:
    """A parsed path; missing fields and indexes out of range give no result instead of an error."""

    text: str
    _steps: tuple[Step, ...]

    @classmethod
    def parse(cls, text: str) -> JSONPath:
        """Parse `.spec.replicas`, `{.items[0]}`, `.status.conditions[?(@.type=="Ready")].status` and the like.

        Raises:
            JSONPathError: the text is not a path.
        """
        expression = text.strip()
        if expression.startswith("{") and expression.endswith("}"):
            expression = expression[1:-1].strip()
        return cls(text, tuple(_steps(expression, text)))

    def find(self, value: Any) -> list[Any]:
        """All values at the path, in document order; parts of `value`, not copies."""
        found = [value]
        for step in self._steps:
            found = step(found, value)
        return found


def _steps(expression: str, text: str) -> Iterator[Step]:
    position = 0
    while position < len(expression):
        character = expression[position]
        if character in "$@" and position == 0:
            position += 1
        elif expression.startswith("..", position):
            yield _descend
            position += 2
            if not expression.startswith("[", position):
                step, position = _read_field(expression, position, text)
                yield step
        elif character == ".":
            if position + 1 < len(expression) and expression[position + 1] == "[":
                position += 1
            else:
                step, position = _read_field(expression, position + 1, text)
                yield step
        elif character == "[":
            end = _closing(expression, position, text)
            yield _bracket(expression[position + 1 : end].strip(), text)
            position = end + 1
        elif position == 0:
            step, position = _read_field(expression, 0, text)
            yield step
        else:
            raise JSONPathError(f"{text!r}: expected . or [ at {expression[position:]!r}")


def _read_field(expression: str, position: int, text: str) -> tuple[Step, int]:
    match = _FIELD.match(expression, position)
    if match is None:
        raise JSONPathError(f"{text!r}: expected the name of a field at {expression[position:]!r}")
    name = re.sub(r"\\(.)", r"\1", match[0])
    return (_every if name == "*" else _field(name)), match.end()


def _closing(expression: str, opening: int, text: str) -> int:
    depth, quote, position = 0, "", opening
    while position < len(expression):
        character = expression[position]
        if character == "\\":
            position += 1
        elif quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "[":
            depth += 1
        elif character == "]":
            depth -= 1
            if depth == 0:
                return position
        position += 1
    raise JSONPathError(f"{text!r}: unterminated [")


def _bracket(content: str, text: str) -> Step:
    if content == "*":
        return _every
    if content.startswith("?(") and content.endswith(")"):
        return _filter(content[2:-1].strip(), text)
    parts = _split(content)
    if len(parts) > 1:
        return _union([_bracket(part.strip(), text) for part in parts])
    quoted = _QUOTED.match(content)
    if quoted:
        return _field(re.sub(r"\\(.)", r"\1", quoted[2]))
    if re.fullmatch(r"-?\d+", content):
        return _index(int(content))
    match = _SLICE.match(content)
    if match is None:
        raise JSONPathError(f"{text!r}: invalid array index {content!r}")
    start, end, step = (int(part) if part and part != "-" else None for part in match.groups())
    if step is not None and step <= 0:
        raise JSONPathError(f"{text!r}: the step of a slice must be greater than 0")
    return _slice(start, end, step)


def _split(content: str) -> list[str]:
    return re.findall(r"""(?:'(?:\\.|[^'])*'|"(?:\\.|[^"])*"|[^,'"])+""", content) or [content]


def _field(name: str) -> Step:
    def step(values: list[Any], _root: Any) -> list[Any]:
        return [value[name] for value in values if isinstance(value, dict) and name in value]

    return step


def _every(values: list[Any], _root: Any) -> list[Any]:
    return [child for value in values for child in _children(value)]


def _descend(values: list[Any], _root: Any) -> list[Any]:
    return [nested for value in values for nested in _walk(value)]


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _walk(value: Any) -> Iterator[Any]:
    waiting = [value]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(list(_children(current))))


def _index(index: int) -> Step:
    def step(values: list[Any], _root: Any) -> list[Any]:
        return [value[index] for value in values if isinstance(value, list) and -len(value) <= index < len(value)]

    return step


def _slice(start: int | None, end: int | None, stride: int | None) -> Step:
    def step(values: list[Any], _root: Any) -> list[Any]:
        return [item for value in values if isinstance(value, list) for item in value[start:end:stride]]

    return step


def _union(steps: list[Step]) -> Step:
    def step(values: list[Any], root: Any) -> list[Any]:
        return [found for alternative in steps for found in alternative(values, root)]

    return step


def _filter(condition: str, text: str) -> Step:
    parts = _COMPARISON.split(condition, maxsplit=1)
    left = _operand(parts[0].strip(), text)
    if len(parts) == 1:

        def holds(item: Any, root: Any) -> bool:
            return left(item, root) is not _NOTHING
    else:
        compare, right = _OPERATORS[parts[1]], _operand(parts[2].strip(), text)

        def holds(item: Any, root: Any) -> bool:
            return _compare(compare, left(item, root), right(item, root))

    def step(values: list[Any], root: Any) -> list[Any]:
        return [item for value in values if isinstance(value, list) for item in value if holds(item, root)]

    return step


def _compare(compare: Callable[[Any, Any], bool], left: Any, right: Any) -> bool:
    numbers = [isinstance(side, int | float) and not isinstance(side, bool) for side in (left, right)]
    if left is _NOTHING or right is _NOTHING or (not all(numbers) and type(left) is not type(right)):
        return False
    try:
        return bool(compare(left, right))
    except TypeError:
        return False


def _operand(text: str, whole: str) -> Callable[[Any, Any], Any]:
    quoted = _QUOTED.match(text)
    if quoted:
        constant: Any = re.sub(r"\\(.)", r"\1", quoted[2])
    elif text in ("true", "false"):
        constant = text == "true"
    elif re.fullmatch(r"-?\d+(\.\d+)?", text):
        constant = float(text) if "." in text else int(text)
    elif text.startswith(("@", "$")):
        path, from_root = JSONPath(text, tuple(_steps(text, whole))), text.startswith("$")

        def first(item: Any, root: Any) -> Any:
            return next(iter(path.find(root if from_root else item)), _NOTHING)

        return first
    else:
        raise JSONPathError(f"{whole!r}: {text!r} in a filter is neither a path, a quoted string nor a number")
    return lambda _item, _root: constant
