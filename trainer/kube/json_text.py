"""JSON that somebody else has written, with one error for all that may be wrong with it."""

from __future__ import annotations

from typing import TypeVar

import msgspec

_T = TypeVar("_T")


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
