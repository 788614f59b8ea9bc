"""Request bodies: from bytes in one of the accepted formats to an object, with what is odd about them."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NoReturn

import yaml

from trainer.kube.errors import ApiError
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.wire import protobuf
from trainer_devcluster.apiserver.wire.headers import JSON, PROTOBUF, YAML
from trainer_kube_testing.api_semantics import statuses

MAX_BODY_BYTES = 3 * 1024 * 1024
MAX_DEPTH = 200
"""Lists and objects inside each other. The real server goes to 10,000, which no kind needs and Python's stack does not
hold."""
_MAX_YAML_NODES = 250_000
"""Also what the parser may report: it takes seconds for a million."""
_TOO_DEEP = f"exceeded max depth of {MAX_DEPTH}"
_TOO_MANY = f"the document has more than {_MAX_YAML_NODES} nodes"
_MERGE_TAG = "tag:yaml.org,2002:merge"
_INTEGER_DIGITS = 20
_OBJECT_FORMATS = (JSON, YAML, PROTOBUF)
_LARGE_NUMBER = re.compile(rb"[0-9]{19}")
_MIN_INTEGER, _MAX_INTEGER = -(1 << 63), (1 << 63) - 1
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")

_GO_CONTEXTS = {
    "Expecting value": "looking for beginning of value",
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
}
"""What Go says where Python's reader of JSON says this."""


@dataclass(frozen=True, slots=True)
class Body:
    """A decoded body."""

    value: Any
    duplicates: list[str] = field(default_factory=list)
    """Paths of JSON members that occur twice in one object; the last one counts."""


def decode_object(content: bytes, content_type: str) -> tuple[Object, list[str]]:
    """An object and the paths of its duplicate fields.

    Raises:
        ApiError: 400, the bytes are malformed or no object; 415, the format is not one of those read.
    """
    media_type = content_type.split(";", 1)[0].strip().lower() or JSON
    if media_type not in _OBJECT_FORMATS:
        raise statuses.unsupported_media_type(_OBJECT_FORMATS)
    if media_type == PROTOBUF:
        return _decode_protobuf(content), []
    body = decode_json(content) if media_type == JSON else Body(decode_yaml(content))
    if not isinstance(body.value, dict):
        found = type(body.value).__name__
        raise statuses.bad_request(
            f"couldn't get version/kind; the body must be an object with apiVersion and kind, not a {found}"
        )
    return body.value, body.duplicates


def decode_json(content: bytes) -> Body:
    """Any JSON value, with the paths of duplicate members.

    Raises:
        ApiError: 400, the bytes are not JSON.
    """
    repeated: dict[int, tuple[Object, list[str]]] = {}

    def collect(pairs: list[tuple[str, Any]]) -> Object:
        members = dict(pairs)
        if len(members) < len(pairs):
            counts = Counter(name for name, _ in pairs)
            # The dict is kept here too, so that its id stays unique until the paths are known.
            repeated[id(members)] = members, [name for name, count in counts.items() if count > 1]
        return members

    try:
        value = json.loads(
            content.decode(),
            object_pairs_hook=collect,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_integer if _LARGE_NUMBER.search(content) else None,
        )
        if content.count(b"{") + content.count(b"[") > MAX_DEPTH:
            require_depth(value)
        if _SURROGATE_ESCAPE.search(content):
            _refuse_half_characters(value)
        return Body(value, _paths(value, repeated, "") if repeated else [])
    except ValueError as error:
        problem = _json_problem(content) or str(error)
        raise statuses.bad_request(f"couldn't get version/kind; json parse error: {problem}") from error
    except RecursionError as error:
        raise statuses.bad_request(f"couldn't get version/kind; json parse error: {_TOO_DEEP}") from error


def decode_yaml(content: bytes) -> Any:
    """Any YAML document, as JSON values.

    Raises:
        ApiError: 400, the bytes are not one YAML document, or it expands to too many nodes.
    """
    # kubectl sends JSON under the name of YAML, which takes a fiftieth of the time to read as what it is.
    if content.startswith(b"{"):
        try:
            return decode_json(content).value
        except ApiError:
            pass
    try:
        _check_events(content)
        value = _plain(yaml.load(content, Loader=_JsonLoader), [_MAX_YAML_NODES])  # noqa: S506 - from the safe loader
        require_depth(value)
    except RecursionError as error:
        raise statuses.bad_request(f"error parsing YAML: {_TOO_DEEP}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise statuses.bad_request(f"error parsing YAML: {error}") from error
    except (AttributeError, LookupError, TypeError) as error:
        # Constructors of explicit tags do not check what they are given.
        raise statuses.bad_request("error parsing YAML: a value does not fit its tag") from error
    return value


def require_depth(value: Any) -> None:
    """Check that lists and objects are not too deep inside each other.

    Raises:
        ValueError: they are.
    """
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        if not level:
            return
        level = [
            child
            for container in level
            for child in (container.values() if isinstance(container, dict) else container)
            if isinstance(child, dict | list)
        ]
    if level:
        raise ValueError(_TOO_DEEP)


def _check_events(content: bytes) -> None:
    """Refuse what would not come back from the parser: it recurses in C, without a limit of its own."""
    depth = 0
    for count, event in enumerate(yaml.parse(content, Loader=_JsonLoader)):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise ValueError(_TOO_DEEP)
        if count > _MAX_YAML_NODES:
            raise ValueError(_TOO_MANY)


class _JsonLoader(yaml.CSafeLoader):
    """Reads timestamps and such as text, as the YAML-to-JSON conversion of Kubernetes does."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Refuse merge keys: a few of them, nested, make a mapping that no memory holds."""
        if any(key.tag == _MERGE_TAG for key, _ in node.value):
            raise ValueError("merge keys (<<) are not supported: write the fields out")


_JsonLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def _plain(value: Any, budget: list[int]) -> Any:
    # Aliases make a small document huge, so the copy counts what it visits.
    budget[0] -= 1
    if budget[0] < 0:
        raise ValueError(_TOO_MANY)
    if isinstance(value, dict):
        return {_key(key): _plain(entry, budget) for key, entry in value.items()}
    if isinstance(value, list):
        return [_plain(entry, budget) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a JSON number")
    if isinstance(value, int) and not isinstance(value, bool):
        return value if _MIN_INTEGER <= value <= _MAX_INTEGER else _finite(str(value))
    if value is None or isinstance(value, bool | float | str):
        return value
    raise ValueError(f"{value!r} has no JSON form")


def _key(key: object) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, str | int | float):
        return str(key)
    raise ValueError(f"{key!r} cannot be the name of a field")


def _decode_protobuf(content: bytes) -> Object:
    try:
        obj: Object = _plain(protobuf.decode(content), [_MAX_YAML_NODES])
        require_depth(obj)
        _refuse_half_characters(obj)
    except (ValueError, RecursionError) as error:
        raise statuses.bad_request(f"cannot decode the protobuf body: {error}") from error
    return obj


def _paths(value: Any, repeated: dict[int, tuple[Object, list[str]]], path: str) -> list[str]:
    found: list[str] = []
    if isinstance(value, dict):
        found += [f"{path}.{name}".lstrip(".") for name in repeated.get(id(value), (value, []))[1]]
        for name, entry in value.items():
            found += _paths(entry, repeated, f"{path}.{name}")
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            found += _paths(entry, repeated, f"{path}[{index}]")
    return found


def _refuse_half_characters(value: Any) -> None:
    """Escapes can spell half of a surrogate pair, which no answer could ever carry; a UnicodeError is a ValueError."""
    json.dumps(value, ensure_ascii=False).encode()


def _integer(text: str) -> int | float:
    """A number as Go reads it: what does not fit 64 bits is not whole."""
    if len(text) <= _INTEGER_DIGITS and _MIN_INTEGER <= (value := int(text)) <= _MAX_INTEGER:
        return value
    return _finite(text)


def _json_problem(content: bytes) -> str:
    """What is wrong with malformed JSON, in Go's words where clients know them; "" if it is something else."""
    text = content.decode("latin-1")
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        if error.pos >= len(text):
            return "unexpected end of JSON input"
        context = _GO_CONTEXTS.get(error.msg)
        return f"invalid character {_shown(text[error.pos])} {context}" if context else str(error)
    except (ValueError, RecursionError) as error:
        return str(error)
    return ""


def _shown(character: str) -> str:
    return f"'{character}'" if character.isascii() and character.isprintable() else f"'\\x{ord(character):02x}'"


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is too large for a number")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
