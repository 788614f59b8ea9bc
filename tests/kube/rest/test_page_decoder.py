"""Decoding list answers piece by piece."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from trainer.kube.rest import page_decoder
from trainer.kube.rest.page_decoder import decode_page

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

METADATA = {"resourceVersion": "7", "continue": "c"}


def built_in(items: list[Any]) -> dict[str, Any]:
    return {
        "kind": "PodList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "7", "continue": "c"},
        "items": items,
    }


def custom(items: list[Any]) -> dict[str, Any]:
    return {
        "apiVersion": "x/v1",
        "items": items,
        "kind": "XList",
        "metadata": {"continue": "c", "resourceVersion": "7"},
    }


def plain(number: int) -> dict[str, Any]:
    return {"metadata": {"name": f"p{number}"}, "spec": {"text": 'quoted ","items":[ and },{"metadata":{ inside'}}


def nested(number: int) -> dict[str, Any]:
    """Arrays inside of the item begin as the items do."""
    return {"metadata": {"name": f"p{number}"}, "spec": {"claims": [{"metadata": {"name": f"c{i}"}} for i in range(5)]}}


def deep(number: int) -> dict[str, Any]:
    """An item so large that most cuts fall inside of it."""
    return {"metadata": {"name": f"p{number}"}, "claims": [{"metadata": {"name": f"c{i}"}} for i in range(100)]}


async def chunked(body: bytes, size: int = 1 << 30) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


@pytest.mark.parametrize("envelope", [built_in, custom])
@pytest.mark.parametrize("item", [plain, nested, deep])
@pytest.mark.parametrize("count", [0, 1, 2, 100])
@pytest.mark.parametrize("piece", [1, 50, 700, 1 << 20])
@pytest.mark.parametrize("chunk", [1, 7, 1000, 1 << 20])
async def test_pieces_make_up_the_whole(
    monkeypatch: pytest.MonkeyPatch, envelope: Any, item: Any, count: int, piece: int, chunk: int
) -> None:
    """Any split of the body into chunks yields the same items and metadata."""
    monkeypatch.setattr(page_decoder, "PIECE_BYTES", piece)
    items = [item(number) for number in range(count)]
    page = await decode_page(chunked(msgspec.json.encode(envelope(items)), chunk))
    assert [msgspec.json.decode(raw) for raw in page.items] == items
    assert (page.resource_version, page.continue_token) == ("7", "c")


async def test_white_space_is_no_obstacle() -> None:
    """Pretty-printed answers are read as well."""
    body = msgspec.json.format(msgspec.json.encode(built_in([plain(1), plain(2)])))
    page = await decode_page(chunked(body))
    assert len(page.items) == 2
    assert page.resource_version == "7"


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"items":[{"a":1}', b'{"items":[{"a":1},', b'{"items":{}}', b"[]"])
async def test_what_is_no_list_is_refused(body: bytes) -> None:
    """A broken or foreign answer is an error, never an empty list."""
    with pytest.raises(msgspec.DecodeError):
        await decode_page(chunked(body))


@pytest.mark.parametrize("items", [None, []], ids=["null", "empty"])
async def test_no_items(items: list[Any] | None) -> None:
    """An empty collection has no items, as null or as an empty array."""
    page = await decode_page(chunked(msgspec.json.encode({"metadata": {"resourceVersion": "7"}, "items": items})))
    assert page.items == []


async def test_pieces_are_decoded_while_the_rest_is_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has come is decoded before the next chunk is asked for, so that the body is never there as a whole."""
    monkeypatch.setattr(page_decoder, "PIECE_BYTES", 50)
    body = msgspec.json.encode(built_in([plain(number) for number in range(100)]))
    decoded: list[int] = []
    decoder = page_decoder._PageDecoder()
    async for chunk in chunked(body, 500):
        decoder.feed(chunk)
        while decoder.decode_piece():
            pass
        decoded.append(len(decoder._pending))
    assert max(decoded) < 700
    assert len(decoder.close().items) == 100
