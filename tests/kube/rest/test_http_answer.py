"""HTTP/1.1 answers from bytes in any pieces."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.kube.rest.http_answer import (
    HEAD_LIMIT,
    LINE_LIMIT,
    ChunkedBody,
    Head,
    MalformedAnswerError,
    SizedBody,
    parse_head,
)


def head(text: bytes) -> Head:
    parsed = parse_head(text)
    assert parsed is not None
    return parsed[0]


def test_head_and_what_follows_it() -> None:
    """Names of headers have no case, and may come several times; interim answers are left out."""
    parsed = parse_head(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nA: 1\r\na:2 \r\nB:\r\n\r\nbody")
    assert parsed is not None
    found, rest = parsed
    assert found.status == 200
    assert found.headers.getall("A") == ["1", "2"]
    assert found.headers["b"] == ""
    assert rest == b"body"


def test_head_is_complete_with_its_empty_line_only() -> None:
    """Any beginning of a head is no answer yet."""
    text = b"HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    assert [parse_head(text[:length]) for length in range(len(text))] == [None] * len(text)
    assert head(text).status == 404


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"SSH-2.0-OpenSSH\r\n", id="another-protocol"),
        pytest.param(b"HTTP/2 200\r\n\r\n", id="another-version"),
        pytest.param(b"HTTP/1.1 abc\r\n\r\n", id="no-status"),
        pytest.param(b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", id="no-colon"),
        pytest.param(b"HTTP/1.1 200 OK\r\nA: 1\r\n folded\r\n\r\n", id="folded"),
        pytest.param(b"HTTP/1.1 200 OK\r\nA: " + b"x" * HEAD_LIMIT + b"\r\n\r\n", id="too-long"),
    ],
)
def test_what_is_no_head(text: bytes) -> None:
    """It is refused, in one line."""
    with pytest.raises(MalformedAnswerError) as raised:
        parse_head(text)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("headers", "pieces", "body", "is_complete"),
    [
        pytest.param(b"Content-Length: 5\r\n", [b"ab", b"cdefg"], b"abcde", True, id="length"),
        pytest.param(b"Content-Length: 0\r\n", [], b"", True, id="empty"),
        pytest.param(b"", [b"ab", b"cd"], b"abcd", False, id="until-the-end"),
        pytest.param(b"Transfer-Encoding: Chunked\r\n", [b"2\r\nab\r\n", b"0\r\n\r\n"], b"ab", True, id="chunked"),
    ],
)
def test_bodies(headers: bytes, pieces: list[bytes], body: bytes, is_complete: bool) -> None:
    """The headers say where the body ends."""
    found = head(b"HTTP/1.1 200 OK\r\n" + headers + b"\r\n").body()
    assert b"".join(found.feed(piece) for piece in pieces) == body
    assert found.is_complete == is_complete
    found.end()


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param(b"Content-Length: -5\r\n", id="negative"),
        pytest.param(b"Content-Length: " + b"9" * 5000 + b"\r\n", id="astronomic"),
        pytest.param(b"Content-Length: 5\r\nContent-Length: 6\r\n", id="two-lengths"),
        pytest.param(b"Transfer-Encoding: gzip, chunked\r\n", id="coding"),
    ],
)
def test_unclear_ends_are_refused(headers: bytes) -> None:
    """A body whose end is not known cannot be told from the next answer."""
    with pytest.raises(MalformedAnswerError, match=r"Content-Length|Transfer-Encoding"):
        head(b"HTTP/1.1 200 OK\r\n" + headers + b"\r\n").body()


@pytest.mark.parametrize("body", [pytest.param(SizedBody(5), id="length"), pytest.param(ChunkedBody(), id="chunked")])
def test_early_ends_are_told(body: SizedBody | ChunkedBody) -> None:
    """A connection that ends before the body does has broken."""
    body.feed(b"3\r\n")
    with pytest.raises(MalformedAnswerError, match="the connection ended"):
        body.end()


@given(
    st.lists(st.binary(min_size=1, max_size=40), max_size=20),
    st.sets(st.integers(0, 1000)),
    st.sampled_from([b"", b";name=value", b" "]),
    st.sampled_from([b"", b"Trailer: 1\r\n"]),
)
def test_chunks_in_any_pieces(chunks: list[bytes], cuts: set[int], extension: bytes, trailer: bytes) -> None:
    """Wherever the network cuts, each byte of the body comes once, and what follows the answer is left alone."""
    text = b"".join(b"%x%b\r\n%b\r\n" % (len(chunk), extension, chunk) for chunk in chunks)
    text += b"0\r\n" + trailer + b"\r\nHTTP/1.1"
    edges = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    body = ChunkedBody()
    found = b"".join(body.feed(memoryview(text)[start:end]) for start, end in pairwise(edges))
    assert found == b"".join(chunks)
    assert body.is_complete
    body.end()


@pytest.mark.parametrize(
    ("pieces", "problem"),
    [
        pytest.param([b"xyz\r\n"], "b'xyz", id="no-size"),
        pytest.param([b"-2\r\n"], "b'-2", id="negative"),
        pytest.param([b"\r\n"], "size of a chunk", id="empty"),
        pytest.param([b"2\r\nabcd\r\n"], "longer than its size", id="longer"),
        pytest.param([b"2\r\nab", b"\r", b"x"], "longer than its size", id="longer-in-pieces"),
        pytest.param([b"1" * LINE_LIMIT, b"1"], "line between chunks", id="endless-line"),
    ],
)
def test_what_are_no_chunks(pieces: list[bytes], problem: str) -> None:
    """It is refused at the first byte that does not fit."""
    body = ChunkedBody()
    with pytest.raises(MalformedAnswerError, match=problem):
        [body.feed(piece) for piece in pieces]
