"""Curves in bounded memory."""

from __future__ import annotations

import pytest

from trainer.progress.curves import SAMPLES_LIMIT, SERIES_LIMIT, Curves
from trainer.progress.samples import MetricId

LOSS, RATE = MetricId(is_eval=False, name="loss"), MetricId(is_eval=False, name="rate")


def test_many_metrics() -> None:
    """A training that invents a metric with each message has some of them."""
    curves = Curves()
    for number in range(SERIES_LIMIT + 10):
        curves.add(MetricId(is_eval=False, name=f"m{number}"), 0, number, 1)
    assert len(curves.by_metric) == SERIES_LIMIT
    assert curves.total == SERIES_LIMIT


def test_many_samples_of_all_metrics() -> None:
    """When all metrics have too many samples together, each loses every second one, and never the last."""
    curves = Curves(total_limit=100)
    for step in range(51):
        curves.add(LOSS, step, step, 1)
        curves.add(RATE, step, step, 2)
    assert curves.total == sum(len(curve.times) for curve in curves.by_metric.values()) <= 100
    assert curves.by_metric[LOSS].steps[-1] == curves.by_metric[RATE].steps[-1] == 50
    assert curves.generation


def test_drained_and_put_together() -> None:
    """What was handed over and what came later are one curve again, in order."""
    curves, whole = Curves(), Curves()
    for start in (0, 3):
        for step in range(start, start + 3):
            curves.add(LOSS, step, step, step / 2)
        whole.extend(curves.drain())
        assert not curves.by_metric
        assert not curves.total
    assert list(whole.by_metric[LOSS].steps) == [0, 1, 2, 3, 4, 5]
    assert whole.total == 6 < SAMPLES_LIMIT


EPOCHS, STEPS, BOTH, NEITHER = ([(-1, 1), (-1, 2)], [(5, -1), (6, -1)], [(7, 3)], [(-1, -1)])


@pytest.mark.parametrize(
    ("parts", "counts", "has_steps", "is_reset"),
    [
        pytest.param([EPOCHS], [1, 2], False, False, id="epochs"),
        pytest.param([BOTH, STEPS], [7, 5, 6], True, False, id="steps"),
        pytest.param([NEITHER, EPOCHS], [-1, 1, 2], False, False, id="epochs at last"),
        pytest.param([EPOCHS, STEPS], [-1, -1, 5, 6], True, True, id="steps at last"),
        pytest.param([STEPS, EPOCHS], [5, 6, -1, -1], True, False, id="epochs after steps"),
    ],
)
def test_epochs(parts: list[list[tuple[int, int]]], counts: list[int], *, has_steps: bool, is_reset: bool) -> None:
    """A metric without steps has its epochs in their place, sample by sample, in parts, and above the limit of all."""
    curves, whole, crowded = Curves(), Curves(), Curves(total_limit=1)
    for part in parts:
        later = Curves()
        for each in (curves, later):
            for step, epoch in part:
                each.add(LOSS, 0, step, 1, epoch)
        whole.extend(later.by_metric)
        crowded.extend(later.by_metric)
    for each in (curves, whole):
        curve = each.by_metric[LOSS]
        assert (list(curve.steps), curve.has_steps, each.generation > 0) == (counts, has_steps, is_reset)
    last = crowded.by_metric[LOSS]
    assert (last.steps[-1], last.has_steps) == (counts[-1], has_steps)


@pytest.mark.parametrize(
    ("limit", "lengths"),
    [
        pytest.param(100, [9, 8, 1], id="enough room"),
        pytest.param(9, [3, 4, 1], id="several"),
        pytest.param(0, [1, 1, 1], id="none"),
    ],
)
def test_thin_to(limit: int, lengths: list[int]) -> None:
    """The longest curves lose every second sample until few enough are left, and none loses its last."""
    curves = Curves()
    metrics = [MetricId(is_eval=False, name=name) for name in "abc"]
    for metric, count in zip(metrics, (9, 8, 1), strict=True):
        for step in range(count):
            curves.add(metric, step, step, step)
    curves.thin_to(limit)
    assert [len(curves.by_metric[metric].values) for metric in metrics] == lengths
    assert [curves.by_metric[metric].values[-1] for metric in metrics] == [8, 7, 0]
    assert curves.total == sum(lengths)
