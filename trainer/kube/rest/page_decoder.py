"""Decoding the page of a list without holding up the event loop.

A server that answers from its watch cache ignores `limit`, so one body may hold every object of a kind: 10,000 pods are
80 MB, and to scan them at once takes about 0.1 s. The array of items is therefore cut where one item seems to end, and
each piece is decoded on its own. The decoder proves each cut: a piece that is cut inside of an item is no valid JSON.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio.lowlevel
import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

PIECE_BYTES = 1 << 20
"""Scanning so much takes about a millisecond."""

_ITEMS = b'"items":['
_OPENING = re.compile(rb'\s*\{"[^"]*":[^"]*"')
"""How items begin, up to the first quote behind their first key; arrays inside of items rarely begin so."""

_MISSES = 8
"""So many cuts in a row that turn out to be inside of an item end the cutting."""


class _ListMeta(msgspec.Struct):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    continue_token: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] | None = None


_page = msgspec.json.Decoder(_Page)
_items = msgspec.json.Decoder(list[msgspec.Raw])


@dataclass(frozen=True, slots=True)
class DecodedPage:
    """What a list answer says."""

    items: list[msgspec.Raw]
    resource_version: str
    continue_token: str


async def decode_page(body: bytes) -> DecodedPage:
    """The encoded items and the metadata of a list answer.

    Raises:
        msgspec.DecodeError: the body is not the JSON of a list.
    """
    items: list[msgspec.Raw] = []
    start = end_of_head = body.find(_ITEMS) + len(_ITEMS)
    misses = 0
    for cut in _cuts(body, start) if start >= len(_ITEMS) else ():
        try:
            items += _items.decode(b"[%b]" % body[start:cut])
        except msgspec.DecodeError:
            misses += 1
            if misses == _MISSES:
                break
            continue
        start, misses = cut + 1, 0
        await anyio.lowlevel.checkpoint()
    page = _page.decode(body if start == end_of_head else body[:end_of_head] + body[start:])
    return DecodedPage(items + (page.items or []), page.metadata.resource_version, page.metadata.continue_token)


def _cuts(body: bytes, start: int) -> Iterator[int]:
    """Positions of commas before what looks like an item, each at least a piece behind the last."""
    opening = _OPENING.match(body, start)
    if opening is None:
        return
    boundary = b"}," + opening.group()
    position = start
    while (position := body.find(boundary, position + PIECE_BYTES)) >= 0:
        yield position + 1
