"""What the reporter has found that a training was started with: tagged lines with `parameters` and nothing else.

They are for people, and no progress: readers of progress leave such lines out, and no TrainJob gets them in its status,
for which KEP-2779 has no place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

MOST: Final = 500
"""Parameters of a run that are kept."""
_LONGEST_NAME: Final = 128
_LONGEST_VALUE: Final = 512
_KEY: Final = b'"parameters"'


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    parameters: dict[str, object]


_DECODER: Final = msgspec.json.Decoder(_Line)


def parameters_in(payload: bytes) -> dict[str, str] | None:
    """The parameters that a message has, texts by name; None of a message about progress."""
    if _KEY not in payload:
        return None
    try:
        found = _DECODER.decode(payload).parameters
    except (msgspec.DecodeError, RecursionError):
        return None
    return {
        name: value[:_LONGEST_VALUE]
        for name, value in found.items()
        if isinstance(value, str) and name.isprintable() and 0 < len(name) <= _LONGEST_NAME
    }


def with_more(known: dict[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """Those that are known and others, as many as are kept; of one name the later value. The same where none is new."""
    if more.items() <= known.items():
        return known
    merged = dict(known)
    for name, value in more.items():
        if name in merged or len(merged) < MOST:
            merged[name] = value
    return merged
