from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.devcluster.controllers.job.samples import ago, make_job, make_pod, make_state
from trainer.devcluster.controllers.job.backoff import replacement_delay
from trainer.devcluster.controllers.options import ControllerOptions

if TYPE_CHECKING:
    from trainer.kube.objects import Object


def failed(seconds_ago: float, name: str = "p") -> Object:
    return make_pod(f"{name}{seconds_ago}", "Failed", index=0, tracked=False, finished=ago(seconds_ago))


@pytest.mark.parametrize(
    ("pods", "delay"),
    [
        pytest.param([], 0, id="no failure"),
        pytest.param([failed(4)], 6, id="ten seconds after the first failure"),
        pytest.param([failed(60), failed(4)], 16, id="doubled after the second"),
        pytest.param([failed(90), failed(60), failed(45)], -5, id="already over"),
        pytest.param([failed(n) for n in range(1, 12)], 599, id="capped"),
        pytest.param(
            [failed(60), make_pod("s", "Succeeded", index=1, finished=ago(30)), failed(4)],
            6,
            id="a success starts anew",
        ),
        pytest.param([make_pod("d", deleting=True, finished=ago(1))], 9, id="a deleted pod counts from its deletion"),
    ],
)
def test_pause_doubles_with_every_failure_in_a_row(pods: list[Object], delay: float) -> None:
    """The pause is derived from the failed pods alone, so a restarted controller comes to the same answer."""
    assert replacement_delay(make_state(make_job(), *pods), ControllerOptions()) == pytest.approx(delay)


def test_ignored_failures_cause_no_pause() -> None:
    """A failure policy that ignores a pod has it replaced at once."""
    rules = [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1]}}]
    state = make_state(make_job(podFailurePolicy={"rules": rules}), failed(1))
    assert replacement_delay(state, ControllerOptions()) == 0


def test_base_and_cap_are_options() -> None:
    """Tests and impatient people shorten the pause."""
    options = ControllerOptions(pod_backoff_base=0.5, pod_backoff_cap=1.5)
    assert replacement_delay(make_state(make_job(), failed(0)), options) == 0.5
    assert replacement_delay(make_state(make_job(), *[failed(0, str(n)) for n in range(4)]), options) == 1.5
