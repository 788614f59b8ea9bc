"""Protobuf request bodies: Go clients send built-in kinds in this encoding, and kubectl does not fall back to JSON.

A body is a magic number and a `runtime.Unknown` that says the kind and holds the object. Field numbers come from
`protobuf_fields.json.gz`, which `hack/generate_protobuf_fields.py` makes. Answers are always JSON.
"""

from __future__ import annotations

import base64
import functools
import gzip
import json
import struct
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from importlib import resources
from typing import Any, Final, NamedTuple

from trainer.kube.objects import Object

MAGIC: Final = b"k8s\x00"

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SIGN_BIT, _WORD = 1 << 63, 1 << 64
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_DEPTH: Final = 64


class ProtobufError(ValueError):
    """Bytes that are no request body we can read; the client has to send JSON or correct bytes."""


class _Field(NamedTuple):
    name: str
    """JSON name; "" for an embedded struct, whose fields belong to the parent."""
    type: Any
    """A scalar, a special type, a message name, `[item]`, `{"map": value}` or `{"items": item}`."""
    keeps_zero: bool
    """Whether the zero value means something: pointers and fields without `omitempty`."""


def decode(body: bytes) -> Object:
    """The object in a protobuf body, with apiVersion and kind.

    Raises:
        ProtobufError: the bytes are malformed, or of a kind or with a field that is not known.
    """
    if not body.startswith(MAGIC):
        raise ProtobufError("the body does not start with the magic number of Kubernetes protobuf")
    envelope = {number: value for number, _, value in _fields(body[len(MAGIC) :])}
    type_meta = {number: _text(value) for number, _, value in _fields(_bytes(envelope.get(1, b"")))}
    api_version, kind = type_meta.get(1, ""), type_meta.get(2, "")
    message = _message_of(api_version, kind)
    obj = {"apiVersion": api_version, "kind": kind}
    return obj | _message(_bytes(envelope.get(2, b"")), message, _MAX_DEPTH)


def _message_of(api_version: str, kind: str) -> str:
    kinds: Mapping[str, str] = _table()["kinds"]
    # Every group has delete options of its own, all of them the same.
    name = kinds.get(f"{api_version}/{kind}") or (kinds["v1/DeleteOptions"] if kind == "DeleteOptions" else None)
    if name is None:
        raise ProtobufError(f"kind {kind!r} of {api_version!r} cannot be read as protobuf: send JSON instead")
    return name


@functools.cache
def _table() -> dict[str, Any]:
    packed = resources.files(__package__).joinpath("protobuf_fields.json.gz").read_bytes()
    document: dict[str, Any] = json.loads(gzip.decompress(packed))
    return document


@functools.cache
def _message_fields(message: str) -> dict[int, _Field]:
    declared: Mapping[str, list[Any]] = _table()["messages"][message]
    return {int(number): _Field(name, kind, bool(keeps)) for number, (name, kind, keeps) in declared.items()}


def _message(data: bytes, message: str, depth: int) -> Object:
    if depth == 0:
        raise ProtobufError("the body is nested too deeply")
    declared = _message_fields(message)
    obj: Object = {}
    for number, wire_type, raw in _fields(data):
        field = declared.get(number)
        if field is None:
            raise ProtobufError(f"{message} has no field {number}")
        if isinstance(field.type, list):
            obj.setdefault(field.name, []).extend(_repeated(raw, wire_type, field.type[0], depth))
        elif isinstance(field.type, dict) and "map" in field.type:
            key, value = _map_entry(raw, field.type["map"], depth)
            obj.setdefault(field.name, {})[key] = value
        else:
            value = _value(raw, field.type, depth)
            if not field.name:
                obj |= value
            elif field.keeps_zero or value not in ("", 0, {}, [], None, False):
                obj[field.name] = value
    return obj


def _repeated(raw: int | bytes, wire_type: int, item: Any, depth: int) -> list[Any]:
    if wire_type == _BYTES and item in ("int", "uint", "bool") and isinstance(raw, bytes):
        packed, position = [], 0
        while position < len(raw):
            number, position = _varint(raw, position)
            packed.append(_value(number, item, depth))
        return packed
    return [_value(raw, item, depth)]


def _map_entry(raw: int | bytes, value_type: Any, depth: int) -> tuple[str, Any]:
    entry: dict[int, int | bytes] = {number: value for number, _, value in _fields(_bytes(raw))}
    default: int | bytes = 0 if value_type in ("int", "uint", "bool") else b""
    return _text(entry.get(1, b"")), _value(entry.get(2, default), value_type, depth)


def _value(raw: int | bytes, kind: Any, depth: int) -> Any:
    if isinstance(kind, dict):
        return [_value(item, kind["items"], depth) for _, _, item in _fields(_bytes(raw))]
    read = _READERS.get(kind)
    return read(raw) if read is not None else _message(_bytes(raw), kind, depth - 1)


def _fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Number, wire type and raw value of every field."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire_type = tag >> 3, tag & 7
        value: int | bytes
        if wire_type == _VARINT:
            value, position = _varint(data, position)
        elif wire_type in (_BYTES, _FIXED64, _FIXED32):
            length = {_FIXED64: 8, _FIXED32: 4}.get(wire_type, 0)
            if wire_type == _BYTES:
                length, position = _varint(data, position)
            value = data[position : position + length]
            if len(value) < length:
                raise ProtobufError("the body ends in the middle of a field")
            position += length
        else:
            raise ProtobufError(f"wire type {wire_type} is not supported")
        yield number, wire_type, value


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data) and shift < 70:
        byte = data[position]
        value |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return value % _WORD, position
    raise ProtobufError("the body ends in the middle of a number")


def _bytes(raw: int | bytes) -> bytes:
    if not isinstance(raw, bytes):
        raise ProtobufError("a number stands where text or a message is expected")
    return raw


def _number(raw: int | bytes) -> int:
    if isinstance(raw, bytes):
        raise ProtobufError("text or a message stands where a number is expected")
    return raw


def _signed(raw: int | bytes) -> int:
    number = _number(raw)
    return number - _WORD if number & _SIGN_BIT else number


def _text(raw: int | bytes) -> str:
    try:
        return _bytes(raw).decode()
    except UnicodeDecodeError as error:
        raise ProtobufError(f"a text is not valid UTF-8: {error}") from error


def _double(raw: int | bytes) -> float:
    data = _bytes(raw)
    try:
        (number,) = struct.unpack("<d" if len(data) == 8 else "<f", data)
    except struct.error as error:
        raise ProtobufError("a number has neither four nor eight bytes") from error
    return float(number)


def _json_value(raw: int | bytes) -> Any:
    nested = {number: value for number, _, value in _fields(_bytes(raw))}
    text = _text(nested.get(1, b""))
    try:
        return json.loads(text) if text else None
    except ValueError as error:
        raise ProtobufError(f"an embedded object is not JSON: {error}") from error


def _quantity(raw: int | bytes) -> str:
    return next((_text(value) for number, _, value in _fields(_bytes(raw)) if number == 1), "0")


def _int_or_string(raw: int | bytes) -> int | str:
    nested = {number: value for number, _, value in _fields(_bytes(raw))}
    return _text(nested.get(3, b"")) if nested.get(1) else _signed(nested.get(2, 0))


def _nanoseconds(raw: int | bytes) -> int:
    return next((_signed(value) for number, _, value in _fields(_bytes(raw)) if number == 1), 0)


def _duration(raw: int | bytes) -> str:
    return f"{_nanoseconds(raw) / 1e9:g}s"


def _moment(raw: int | bytes) -> datetime | None:
    nested = {number: _signed(value) for number, _, value in _fields(_bytes(raw))}
    if not nested:
        return None
    try:
        return _EPOCH + timedelta(seconds=nested.get(1, 0), microseconds=nested.get(2, 0) // 1000)
    except OverflowError as error:
        raise ProtobufError("a time is out of range") from error


def _time(raw: int | bytes) -> str | None:
    moment = _moment(raw)
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _micro_time(raw: int | bytes) -> str | None:
    moment = _moment(raw)
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


_READERS: Final[dict[str, Callable[[int | bytes], Any]]] = {
    "bool": lambda raw: bool(_number(raw)),
    "bytes": lambda raw: base64.b64encode(_bytes(raw)).decode(),
    "double": _double,
    "duration": _duration,
    "fields": _json_value,
    "float": _double,
    "int": _signed,
    "int-or-string": _int_or_string,
    "micro-time": _micro_time,
    "quantity": _quantity,
    "raw": _json_value,
    "string": _text,
    "time": _time,
    "uint": _number,
}
