"""What peers do wrong, in the log."""

from __future__ import annotations

from structlog.testing import capture_logs

from tests.kube.serving.peers import connected, serving
from trainer.kube.serving.peer_log import PeerLog
from trainer.kube.testing import ManualClock


async def test_peers_do_not_fill_the_log() -> None:
    """What they do wrong is told once in a while, with how often."""
    with capture_logs() as logs:
        async with serving() as served:
            for advance in (0, 0, 0, 10):
                await served.clock.advance(advance)
                async with connected(served, b"GET / HTTP/9.9\r\n\r\n") as peer:
                    assert await peer.status() == 400
            assert served.dropped == {"malformed": 4}
    told = [entry for entry in logs if entry["event"] == "trouble with connections"]
    assert [(entry["server"], entry["times"]) for entry in told] == [("test", 1), ("test", 3)]


def test_what_they_sent_is_not_told_at_length() -> None:
    """A parser quotes it."""
    with capture_logs() as logs:
        PeerLog("test", clock=ManualClock(), malformed=lambda: None).exception(
            "from %s", "x", exc_info=ValueError("y" * 9999)
        )
    assert logs[0]["problem"] == f"from x: {'y' * 192}"


def test_what_is_usual_is_not_told() -> None:
    """aiohttp logs peers that go away, too."""
    with capture_logs() as logs:
        PeerLog("test", clock=ManualClock(), malformed=lambda: None).debug("Ignored premature client disconnection")
    assert not logs
