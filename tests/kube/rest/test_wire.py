"""Where the records of TLS end; the connection itself is tested in test_paced_answer."""

from __future__ import annotations

import pytest

from trainer.kube.rest.wire import whole_records

SHORT = b"\x17\x03\x03\x00\x02ab"
LONG = b"\x16\x03\x01\x40\x00" + bytes(0x4000)


@pytest.mark.parametrize(
    ("received", "size"),
    [
        pytest.param(b"", 0, id="nothing"),
        pytest.param(SHORT[:4], 0, id="part-of-header"),
        pytest.param(SHORT[:5], 0, id="header"),
        pytest.param(SHORT[:-1], 0, id="all-but-one-byte"),
        pytest.param(SHORT, 7, id="one"),
        pytest.param(SHORT + SHORT + SHORT[:6], 14, id="two-and-a-part"),
        pytest.param(LONG + SHORT[:1], 0x4005, id="as-long-as-may-be"),
        pytest.param(b"HTTP/1.1 400 Bad Request", 24, id="no-tls"),
        pytest.param(SHORT + b"\x17\x03\x03\xff\xff", 12, id="longer-than-may-be"),
    ],
)
def test_whole_records(received: bytes, size: int) -> None:
    """OpenSSL is given records that are complete, and anything that it has to object to."""
    assert whole_records(memoryview(received)) == size
