"""Work that holds up its own object alone."""

from __future__ import annotations

import anyio
import pytest
from structlog.testing import capture_logs

from trainer.kube.barrier import Barrier
from trainer.kube.errors import ForbiddenError, LeadershipLostError
from trainer.kube.objects import ObjectKey

REFUSED = ForbiddenError(403, "no")
MISTAKE = ValueError("no name of an object")


@pytest.mark.parametrize(
    ("error", "level"),
    [
        pytest.param(REFUSED, "warning", id="refused"),
        pytest.param(ExceptionGroup("g", [REFUSED]), "warning", id="refused-in-a-task"),
        pytest.param(MISTAKE, "error", id="mistake"),
        pytest.param(ExceptionGroup("g", [REFUSED, MISTAKE]), "error", id="mistake-in-a-task"),
    ],
)
def test_failures(error: Exception, level: str) -> None:
    """A failure is logged with its object, counted, and known to the caller, who goes on."""
    barrier = Barrier("could not look")
    done = []
    with capture_logs() as logs:
        for name in ("a", "b"):
            with barrier.around(ObjectKey("ns", name)) as attempt:
                if name == "a":
                    raise error
                done.append(name)
            assert attempt.error is (error if name == "a" else None)
    assert (done, barrier.failures) == (["b"], 1)
    (entry,) = logs
    assert (entry["event"], entry["log_level"], entry["object"]) == ("could not look", level, "ns/a")
    assert (entry["failures"], "exc_info" in entry) == (1, level == "error")


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(LeadershipLostError("lost"), id="alone"),
        pytest.param(ExceptionGroup("g", [MISTAKE, LeadershipLostError("lost")]), id="in-a-task"),
    ],
)
def test_passing(error: Exception) -> None:
    """What is not about one object passes."""
    barrier = Barrier("could not look", passing=(LeadershipLostError,))
    with pytest.raises(type(error)), barrier.around("a"):
        raise error
    assert barrier.failures == 0


async def test_cancellation() -> None:
    """Cancelled work is not a failure."""
    barrier = Barrier("could not look")
    with anyio.CancelScope() as scope, barrier.around("a"):
        scope.cancel()
        await anyio.sleep_forever()
    assert (scope.cancelled_caught, barrier.failures) == (True, 0)
