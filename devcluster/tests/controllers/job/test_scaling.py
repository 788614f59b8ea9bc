from __future__ import annotations

from typing import Any

import pytest

from devcluster.tests.controllers.job.samples import make_job, make_pod, make_state
from trainer.kube.objects import Object, name_of
from trainer_devcluster.controllers.job.accounts import settle
from trainer_devcluster.controllers.job.scaling import Scaling, scale

QUEUE: dict[str, Any] = {"completionMode": "NonIndexed", "completions": None}


def scaled(job: Object, *pods: Object) -> Scaling:
    state = make_state(job, *pods)
    return scale(state, settle(state))


@pytest.mark.parametrize(
    ("job", "pods", "missing"),
    [
        pytest.param(make_job(), [], (0, 1), id="new job"),
        pytest.param(make_job(), [make_pod("a", index=1)], (0,), id="one index is taken"),
        pytest.param(make_job(parallelism=1), [], (0,), id="parallelism limits"),
        pytest.param(make_job(), [make_pod("a", "Failed", index=0)], (0, 1), id="a failed index is pending again"),
        pytest.param(
            make_job({"completedIndexes": "0"}),
            [make_pod("a", "Succeeded", index=0, tracked=False)],
            (1,),
            id="done index",
        ),
        pytest.param(
            make_job(), [make_pod("a", deleting=True, index=0)], (0, 1), id="terminating pod is replaced at once"
        ),
        pytest.param(
            make_job(podReplacementPolicy="Failed"),
            [make_pod("a", deleting=True, index=0)],
            (1,),
            id="terminating pod keeps its place until it has failed",
        ),
        pytest.param(make_job(completionMode="NonIndexed"), [make_pod("a")], (None,), id="pods without index"),
        pytest.param(make_job(**QUEUE), [], (None, None), id="work queue"),
        pytest.param(
            make_job({"succeeded": 1}, **QUEUE),
            [make_pod("a", "Succeeded", tracked=False)],
            (),
            id="work queue after a success",
        ),
        pytest.param(
            make_job(parallelism=4, completions=4),
            [make_pod("a", index=0), make_pod("b", index=1)],
            (2, 3),
            id="scaled up",
        ),
        pytest.param(
            make_job({"completedIndexes": "0", "succeeded": 1}),
            [make_pod("c", "Succeeded", index=1, tracked=False), make_pod("d", deleting=True, index=1)],
            (1,),
            id="scaled down and up: an index is done again",
        ),
    ],
)
def test_missing_pods(job: Object, pods: list[Object], missing: tuple[int | None, ...]) -> None:
    """The lowest pending indexes come first, as many as parallelism and completions allow."""
    assert scaled(job, *pods) == Scaling(missing=missing)


@pytest.mark.parametrize(
    ("job", "pods", "surplus"),
    [
        pytest.param(
            make_job(parallelism=1),
            [make_pod("running", "Running", index=0, ready=True), make_pod("pending", index=1)],
            ["pending"],
            id="the least valuable pod goes",
        ),
        pytest.param(
            make_job(),
            [make_pod("a", index=0), make_pod("b", "Running", index=0)],
            ["a"],
            id="two pods of one index",
        ),
        pytest.param(make_job(), [make_pod("a", index=2), make_pod("b", index=0)], ["a"], id="index out of range"),
        pytest.param(make_job({"completedIndexes": "0"}), [make_pod("a", index=0)], ["a"], id="index already done"),
        pytest.param(
            make_job(parallelism=1, completions=1),
            [make_pod("a", index=0), make_pod("d", "Running", index=3, ready=True), make_pod("b", index=1)],
            ["d", "b"],
            id="scaled down: the highest index first, whatever it has achieved",
        ),
    ],
)
def test_surplus_pods(job: Object, pods: list[Object], surplus: list[str]) -> None:
    """Pods that work on nothing, or are too many, are removed before any is made."""
    scaling = scaled(job, *pods)
    assert [name_of(pod) for pod in scaling.surplus] == surplus
    assert scaling.missing == ()


def test_a_round_makes_at_most_500_pods() -> None:
    """A huge Job does not flood the API server."""
    assert len(scaled(make_job(parallelism=2000, completions=2000)).missing) == 500
