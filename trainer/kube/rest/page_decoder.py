"""Decoding the page of a list without holding up the event loop, and while it comes in.

A server that answers from its watch cache ignores `limit`, so one body may hold every object of a kind: 10,000 pods are
80 MB, and to put their chunks together or to scan them at once takes about 0.1 s each. The array of items is therefore
cut where one item seems to end, and each piece is decoded on its own. The decoder proves each cut: a piece that is cut
inside of an item is no valid JSON.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio.lowlevel
import msgspec

if TYPE_CHECKING:
    from collections.abc import AsyncIterable

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


async def decode_page(chunks: AsyncIterable[bytes]) -> DecodedPage:
    """The encoded items and the metadata of a list answer, whose chunks may end anywhere.

    Raises:
        msgspec.DecodeError: the body is not the JSON of a list.
    """
    decoder = _PageDecoder()
    async for chunk in chunks:
        decoder.feed(chunk)
        while decoder.decode_piece():
            await anyio.lowlevel.checkpoint()
    return decoder.close()


class _PageDecoder:
    def __init__(self) -> None:
        self._head = b""
        """What comes before the first item; b"" until all of it has come."""
        self._pending = bytearray()
        """What has come and is not decoded."""
        self._boundary = b""
        """What lies between two items; b"" as long as or because it is not known."""
        self._searched = 0
        """The next search for a place to cut starts here."""
        self._misses = 0
        self._items: list[msgspec.Raw] = []

    def feed(self, chunk: bytes) -> None:
        """Take the next part of the body."""
        if not self._head:
            self._find_head(chunk)
        else:
            self._pending += chunk

    def decode_piece(self) -> bool:
        """Decode the next piece if it is there; call it until it is not."""
        if not self._boundary and not self._find_boundary():
            return False
        position = self._pending.find(self._boundary, self._searched)
        if position < 0:
            self._searched = max(self._searched, len(self._pending) - len(self._boundary))
            return False
        cut = position + 1
        try:
            self._items += _items.decode(b"".join((b"[", self._pending[:cut], b"]")))
        except msgspec.DecodeError:
            self._misses += 1
            self._searched = position + PIECE_BYTES
            if self._misses == _MISSES:
                self._boundary = b""
        else:
            del self._pending[: cut + 1]
            self._misses = 0
            self._searched = PIECE_BYTES
        return True

    def close(self) -> DecodedPage:
        """What the answer says; there are no more chunks."""
        page = _page.decode(self._head + self._pending)
        return DecodedPage(
            self._items + (page.items or []), page.metadata.resource_version, page.metadata.continue_token
        )

    def _find_head(self, chunk: bytes) -> None:
        overlap = max(len(self._pending) - len(_ITEMS), 0)
        self._pending += chunk
        start = self._pending.find(_ITEMS, overlap)
        if start >= 0:
            start += len(_ITEMS)
            self._head = bytes(self._pending[:start])
            del self._pending[:start]

    def _find_boundary(self) -> bool:
        if not self._head or len(self._pending) < PIECE_BYTES or self._misses == _MISSES:
            return False
        opening = _OPENING.match(self._pending)
        if opening is None:
            self._misses = _MISSES
            return False
        self._boundary = b"}," + opening.group()
        self._searched = PIECE_BYTES
        return True
