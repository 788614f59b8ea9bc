"""Warnings that peers cause."""

from __future__ import annotations

from structlog.testing import capture_logs

from tests.kube.serving.peers import connected, serving
from trainer.kube.serving.sparse_log import PeerLog, SparseLog
from trainer_kube_testing import ManualClock


async def test_one_line_in_a_while() -> None:
    """It has the fields of the newest warning, and says how many there were since the line before."""
    clock = ManualClock()
    log = SparseLog("refused", clock=clock, server="a")
    with capture_logs() as logs:
        for number in range(1000):
            log.warning(number=number)
        await clock.advance(10)
        log.warning(number=1000)
    assert logs == [
        {"event": "refused", "log_level": "warning", "server": "a", "number": 0, "times": 1},
        {"event": "refused", "log_level": "warning", "server": "a", "number": 1000, "times": 1000},
    ]


def test_texts_are_cut() -> None:
    """They may quote what was sent."""
    with capture_logs() as logs:
        SparseLog("refused", clock=ManualClock()).warning(problem="y" * 9999)
    assert logs[0]["problem"] == "y" * 200


async def test_peers_do_not_fill_the_log() -> None:
    """What they do wrong is logged once in a while, with how often."""
    with capture_logs() as logs:
        async with serving() as served:
            for advance in (0, 0, 0, 10):
                await served.clock.advance(advance)
                async with connected(served, b"GET / HTTP/9.9\r\n\r\n") as peer:
                    assert await peer.status() == 400
            assert served.dropped == {"malformed": 4}
    reported = [entry for entry in logs if entry["event"] == "trouble with connections"]
    assert [(entry["server"], entry["times"]) for entry in reported] == [("test", 1), ("test", 3)]


def test_what_they_sent_is_not_reported_at_length() -> None:
    """A parser quotes it."""
    with capture_logs() as logs:
        PeerLog("test", clock=ManualClock(), malformed=lambda: None).exception(
            "from %s", "x", exc_info=ValueError("y" * 9999)
        )
    assert logs[0]["problem"] == f"from x: {'y' * 192}"


def test_what_is_usual_is_not_reported() -> None:
    """aiohttp logs peers that go away, too."""
    with capture_logs() as logs:
        PeerLog("test", clock=ManualClock(), malformed=lambda: None).debug("Ignored premature client disconnection")
    assert not logs
