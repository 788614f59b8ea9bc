"""JSON that somebody else has written, with one error for all that may be wrong with it."""

from __future__ import annotations

import sys
from threading import Lock
from typing import Final, TypeVar

import msgspec

_T = TypeVar("_T")
_DEPTH: Final = 11_000
"""Levels of JSON that are read: those of an API server, which reads 10,000, and those of a list or a watch."""
_deep: Final = Lock()
"""Held while the limit of recursion is another one."""


def decode_json(decoder: msgspec.json.Decoder[_T], text: bytes | bytearray | msgspec.Raw | str) -> _T:
    """Decode a text.

    Raises:
        msgspec.ValidationError: it is JSON of another shape.
        msgspec.DecodeError: it is no JSON, no UTF-8, or nested too deeply, which msgspec says by errors of Python.
    """
    try:
        return decoder.decode(text)
    except UnicodeError as error:  # raised for bytes, and for halves of surrogate pairs in a text
        raise msgspec.DecodeError(f"it is not UTF-8: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise msgspec.DecodeError("it is nested too deeply") from None


def decode_outer(decoder: msgspec.json.Decoder[_T], text: bytes | bytearray | memoryview | msgspec.Raw) -> _T:
    """Decode an answer of an API server whose members stay `Raw`, however deep one of them is nested.

    Whoever may write an object may nest its `managedFields` as deep as the API server reads, and Python 3.11 counts
    levels of JSON as calls, of which it allows 1,000: one object would keep all others of its kind from being listed.

    Raises:
        msgspec.DecodeError: it is no such JSON, or nested too deeply.
    """
    try:
        return decoder.decode(text)
    except RecursionError:
        pass
    with _deep:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, _DEPTH))
        try:
            return decoder.decode(text)
        except RecursionError:
            raise msgspec.DecodeError("it is nested too deeply") from None
        finally:
            sys.setrecursionlimit(limit)
