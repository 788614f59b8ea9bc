"""CEL values and names: how objects look inside expressions, and what expressions may call."""

from __future__ import annotations

import base64
import binascii
import itertools
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from cel.stdlib import STDLIB_FUNCTIONS

from trainer.devcluster.apiserver.correlation import item_key
from trainer.devcluster.apiserver.formats import compile_pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Schema = Mapping[str, Any]

_RESERVED: Final = frozenset(
    (
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
        "let", "loop", "package", "namespace", "return", "var", "void", "while",
    )
)  # fmt: skip
_ESCAPES: Final = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))
_STRING_LITERAL: Final = re.compile(
    r"""[rRbB]{0,2}('''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")""", re.DOTALL
)
_SELECTION: Final = re.compile(r"(?<![\w.])(?:self|oldSelf)((?:\s*\.\s*[A-Za-z_]\w*(?!\s*\(|\w))+)")
_MACRO_VARIABLE: Final = re.compile(r"\.\s*(?:all|exists|exists_one|map|filter)\s*\(\s*([A-Za-z_]\w*)\s*,")
EVALUATION_ERRORS: Final = (LookupError, ArithmeticError, TypeError, ValueError, RuntimeError)
"""What executing a compiled expression raises when it cannot be evaluated."""
_DURATION_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}

_NAMESPACES: Final = frozenset({name.partition(".")[0] for name in STDLIB_FUNCTIONS if "." in name} | {"optional"})
_TYPE_NAMES: Final = frozenset(("bool", "bytes", "double", "dyn", "int", "list", "map", "string", "type", "uint"))
_CORE_FUNCTIONS: Final = frozenset(
    (
        "bool", "bytes", "contains", "double", "duration", "dyn", "endsWith", "getDate", "getDayOfMonth",
        "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours", "getMilliseconds", "getMinutes", "getMonth",
        "getSeconds", "has", "hasValue", "int", "matches", "none", "of", "ofNonZeroValue", "orValue", "size",
        "startsWith", "string", "timestamp", "type", "uint", "value",
    )
)  # fmt: skip


def _is_sorted(items: list[Any]) -> bool:
    return all(first <= second for first, second in itertools.pairwise(items))


def _find(text: str, pattern: str) -> str:
    match = compile_pattern(pattern).search(text)
    return match[0] if match else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [match[0] for match in compile_pattern(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


def _format(template: str, arguments: list[Any]) -> str:
    values = iter(arguments)
    return re.sub(r"%(%|[sdfeboxX]|\.\d+[fe])", lambda match: _formatted(match[1], values), template)


def _formatted(verb: str, values: Any) -> str:
    if verb == "%":
        return "%"
    value = next(values)
    if verb in ("s", "d"):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return format(value, verb if verb[0] == "." or verb not in "fe" else f".6{verb}")


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    **STDLIB_FUNCTIONS, "isSorted": _is_sorted, "find": _find, "findAll": _find_all, "format": _format,
}  # fmt: skip


def functions_of(programs: Iterable[Any]) -> dict[str, Callable[..., Any]]:
    """The functions beyond the core language that compiled expressions call."""
    called = {name for program in programs for name in program.functions()}
    return {name: function for name, function in _FUNCTIONS.items() if name.rpartition(".")[2] in called}


def undeclared(program: Any, expression: str, variables: Iterable[str]) -> str:
    """What a compiled expression refers to but nobody provides; "" when all is there.

    Args:
        program: the compiled expression.
        expression: its text.
        variables: what will be bound when it is evaluated.
    """
    code = _STRING_LITERAL.sub("''", expression)
    variables = {*variables, *_NAMESPACES, *_TYPE_NAMES, *_MACRO_VARIABLE.findall(code)}
    known = _CORE_FUNCTIONS | {name.rpartition(".")[2] for name in _FUNCTIONS}
    missing = [name for name in program.variables() if name not in variables]
    missing += [name for name in program.functions() if name[0].isalpha() and name not in known]
    return f"undeclared reference to '{missing[0]}' (in container '')" if missing else ""


def parse_error(error: ValueError) -> str:
    """Why an expression could not be compiled."""
    return str(error).partition(": ")[2] or str(error)


def describe_error(error: Exception) -> str:
    """Why an expression could not be evaluated, as the API server puts it."""
    if isinstance(error, KeyError):
        return f"no such key: {error.args[0]}"
    if isinstance(error, TypeError) or "Undefined variable or function" in str(error):
        return "no such overload"
    if isinstance(error, ZeroDivisionError):
        return "division by zero"
    if isinstance(error, OverflowError):
        return "integer overflow"
    return str(error).partition(". Check")[0]


def unknown_field(expression: str, schema: Schema) -> str:
    """The first field of `self` that the schema does not have, as an error text; "" when there is none."""
    for match in _SELECTION.finditer(_STRING_LITERAL.sub("''", expression)):
        current: Schema | None = schema
        for name in re.findall(r"[A-Za-z_]\w*", match[1]):
            properties = (current or {}).get("properties")
            if current is None or not isinstance(properties, dict):
                break
            by_escaped = {escape(field): field for field in properties}
            if name not in by_escaped:
                if isinstance(current.get("additionalProperties"), dict):
                    break
                return f"undefined field '{name}'"
            current = properties[by_escaped[name]]
    return ""


def escape(name: str) -> str:
    """A property name as expressions write it: `a-b` is `a__dash__b`."""
    if name in _RESERVED:
        return f"__{name}__"
    for text, replacement in _ESCAPES:
        name = name.replace(text, replacement)
    return name


def value_of(value: Any, schema: Schema, *, order_like: Any = None) -> Any:
    """A JSON value as its schema types it in CEL.

    Args:
        value: the JSON value.
        schema: its structural schema.
        order_like: the other side of a comparison; sets and map lists come in its order, because their own order has
            no meaning in CEL.
    """
    if value is None or schema.get("x-kubernetes-int-or-string"):
        return value
    if isinstance(value, dict):
        return _map_of(value, schema, order_like if isinstance(order_like, dict) else {})
    if isinstance(value, list):
        items = schema.get("items") or {}
        pairs = _paired(value, order_like, schema)
        return [value_of(item, items, order_like=other) for item, other in pairs]
    if schema.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if schema.get("type") == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    return _text_of(value, str(schema.get("format") or "")) if isinstance(value, str) else value


def _map_of(value: Mapping[str, Any], schema: Schema, order_like: Mapping[str, Any]) -> dict[str, Any]:
    properties, additional = schema.get("properties"), schema.get("additionalProperties")
    typed: dict[str, Any] = {}
    for name, child in value.items():
        other = order_like.get(name)
        if isinstance(properties, dict) and name in properties:
            typed[escape(name)] = value_of(child, properties[name], order_like=other)
        elif isinstance(additional, dict):
            typed[name] = value_of(child, additional, order_like=other)
        elif not properties:
            typed[name] = value_of(child, {}, order_like=other)
    return typed


def _paired(items: list[Any], order_like: Any, schema: Schema) -> list[tuple[Any, Any]]:
    list_type = schema.get("x-kubernetes-list-type")
    if not isinstance(order_like, list) or list_type not in ("set", "map"):
        return [(item, None) for item in items]

    def key(item: Any) -> object:
        return item_key(item, schema) if list_type == "map" else repr(item)

    positions = {key(other): index for index, other in enumerate(order_like)}
    ordered = sorted(items, key=lambda item: positions.get(key(item), len(order_like)))
    return [(item, order_like[positions[key(item)]] if key(item) in positions else None) for item in ordered]


def _text_of(text: str, text_format: str) -> object:
    try:
        if text_format == "byte":
            return base64.b64decode(text, validate=True)
        if text_format in ("date-time", "date"):
            moment = datetime.fromisoformat(text)
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        if text_format == "duration":
            return _duration_of(text)
    except (ValueError, binascii.Error):
        return text
    return text


def _duration_of(text: str) -> timedelta:
    if text.lstrip("-") != "0" and _DURATION_PART.sub("", text.lstrip("-")):
        raise ValueError(f"{text!r} is not a duration")
    seconds = sum(float(amount) * _SECONDS[unit] for amount, unit in _DURATION_PART.findall(text))
    return timedelta(seconds=-seconds if text.startswith("-") else seconds)
