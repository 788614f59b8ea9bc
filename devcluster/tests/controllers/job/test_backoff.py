from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from devcluster.tests.controllers.job.samples import ago, make_job, make_pod, make_state
from trainer_devcluster.controllers.job.accounts import settle
from trainer_devcluster.controllers.job.backoff import replacement_delay
from trainer_devcluster.controllers.options import ControllerOptions

if TYPE_CHECKING:
    from trainer.kube.objects import Object

DEFAULTS = ControllerOptions()


def delay_of(job: Object, *pods: Object, options: ControllerOptions = DEFAULTS) -> float:
    state = make_state(job, *pods)
    return replacement_delay(state, settle(state), options)


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
        pytest.param(
            [make_pod("d", index=0, deleting=True, finished=ago(1))], 9, id="a deleted pod counts from its deletion"
        ),
    ],
)
def test_pause_doubles_with_every_failure_in_a_row(pods: list[Object], delay: float) -> None:
    """The pause is derived from what is stored, so a restarted controller comes to the same answer."""
    assert delay_of(make_job({"failed": len(pods)}), *pods) == pytest.approx(delay)


IGNORING = {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1]}}]}


@pytest.mark.parametrize(
    ("pod", "delay"),
    [
        pytest.param(failed(1), 9, id="ended by itself"),
        pytest.param(
            make_pod("w", "Failed", index=0, tracked=False, deleting=True, finished=ago(1)), 0, id="was withdrawn"
        ),
    ],
)
def test_ignored_failures_are_replaced_after_a_pause(pod: Object, delay: float) -> None:
    """A failure policy that ignores them keeps them from the back-off limit, not from the back-off."""
    assert delay_of(make_job({}, podFailurePolicy=IGNORING), pod) == delay


@pytest.mark.parametrize(
    ("status", "pod"),
    [
        pytest.param({}, make_pod("d", "Running", index=0, tracked=False, deleting=True, finished=ago(1)), id="going"),
        pytest.param({}, failed(1), id="ended by the signal that told it to go"),
        pytest.param({"failed": 1}, make_pod("d", "Failed", index=2, tracked=False), id="index that is gone"),
    ],
)
def test_pods_that_were_withdrawn_cause_no_pause(status: Object, pod: Object) -> None:
    """A Job that was suspended or scaled down and is wanted again starts at once, though its old pods still end."""
    assert delay_of(make_job(status), pod) == 0


def test_base_and_cap_are_options() -> None:
    """Tests and impatient people shorten the pause."""
    options = ControllerOptions(pod_backoff_base=0.5, pod_backoff_cap=1.5)
    assert delay_of(make_job({"failed": 1}), failed(0), options=options) == 0.5
    assert delay_of(make_job({"failed": 4}), *[failed(0, str(n)) for n in range(4)], options=options) == 1.5
