from __future__ import annotations

from collections import Counter as Tally

import pytest
from prometheus_client import CollectorRegistry, Counter

from trainer.kube.metrics.cardinality import LIMIT, LONGEST, BoundedCounter, Shares, bounded_counts


def bounded(registry: CollectorRegistry, limit: int = LIMIT) -> BoundedCounter:
    counter = Counter("things_total", "Things.", ["namespace", "shape", "color"], registry=registry)
    return BoundedCounter(counter, (True, True, False), limit)


def values(registry: CollectorRegistry) -> dict[tuple[str, str, str], float]:
    """Those of all series, by labels."""
    return {
        (sample.labels["namespace"], sample.labels["shape"], sample.labels["color"]): sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "things_total"
    }


@pytest.mark.parametrize(
    ("greedy", "each"),
    [pytest.param(1, 100, id="one"), pytest.param(10, 69, id="ten"), pytest.param(100, 17, id="hundred")],
)
def test_greedy_namespaces_leave_room(greedy: int, each: int) -> None:
    """Namespaces that take all they get have about as much as each other, and leave some for who comes later."""
    shares, taken = Shares(2000), Tally[str]()
    for _ in range(200):
        for number in range(greedy):
            taken[f"greedy-{number}"] += shares.take(f"greedy-{number}")
    assert max(taken.values()) - min(taken.values()) <= 1
    assert max(taken.values()) == each
    assert [shares.take("late") for _ in range(5)] == [True] * 5


def test_a_namespace_beyond_its_share_is_alone_in_it() -> None:
    """Its own name stays; other namespaces, whether they came before or later, lose nothing."""
    registry = CollectorRegistry()
    things = bounded(registry)
    things.labels("first", "cube", "red").inc()
    for number in range(5000):
        things.labels("greedy", f"shape-{number}", "red").inc()
    for number in range(50):
        things.labels("late", f"shape-{number}", "red").inc()
    found = values(registry)
    of_greedy = {labels: value for labels, value in found.items() if labels[0] == "greedy"}
    assert found["first", "cube", "red"] == 1
    assert [found["late", f"shape-{number}", "red"] for number in range(50)] == [1] * 50
    assert len(of_greedy) == 101
    assert of_greedy["greedy", "other", "red"] == 4900
    assert not [labels for labels in found if labels[0] == "other"]


def test_label_sets_beyond_the_limit_share_one_and_lose_nothing() -> None:
    """A metric has no more label sets of its own than its limit, and what is beyond it is summed up under `other`."""
    registry = CollectorRegistry()
    things = bounded(registry, limit=3)
    for _ in range(2):
        for number in range(100):
            things.labels(f"ns-{number}", "cube", "red").inc()
    assert {namespace: value for (namespace, *_), value in values(registry).items()} == {
        "ns-0": 2,
        "ns-1": 2,
        "ns-2": 2,
        "other": 194,
    }


def test_labels_with_few_values_stay_beyond_the_limit() -> None:
    """Only the labels that users choose freely become `other`."""
    registry = CollectorRegistry()
    things = bounded(registry, limit=1)
    things.labels("first", "cube", "red").inc()
    things.labels("second", "cube", "red").inc()
    things.labels("second", "cube", "blue").inc()
    assert values(registry) == {
        ("first", "cube", "red"): 1,
        ("other", "other", "red"): 1,
        ("other", "other", "blue"): 1,
    }


def test_long_label_values_are_cut() -> None:
    """No value is longer than the name of an object with its namespace may be; it can be given back all the same."""
    registry = CollectorRegistry()
    things = bounded(registry)
    things.labels("x" * 5000, "cube", "red").inc()
    assert values(registry) == {("x" * LONGEST, "cube", "red"): 1}
    for _ in range(2):
        things.remove_stale(lambda _: False)
    assert values(registry) == {}


def test_room_comes_back() -> None:
    """Series of namespaces that are gone make room for others, without a restart."""
    registry = CollectorRegistry()
    things = bounded(registry, limit=100)
    for number in range(200):
        things.labels(f"old-{number}", "cube", "red").inc()
    for _ in range(2):
        things.remove_stale(lambda labels: labels[0] == "old-7")
    for number in range(99):
        things.labels(f"new-{number}", "cube", "red").inc()
    found = values(registry)
    assert len(found) == 101
    assert (found["old-7", "cube", "red"], found["new-98", "cube", "red"]) == (1, 1)
    assert found["other", "other", "red"] == 100


def test_gauges_are_bounded_like_counters() -> None:
    """Whatever the order of what they show, so that replicas agree."""
    counts: dict[tuple[str, ...], int] = {("late", "cube", "red"): 2}
    counts.update({("greedy", f"shape-{number}", "red"): 1 for number in range(5000)})
    shown = bounded_counts(counts, (True, True, False))
    assert shown == bounded_counts(dict(reversed(counts.items())), (True, True, False))
    assert (len(shown), shown["greedy", "other", "red"], shown["late", "cube", "red"]) == (102, 4900, 2)
    assert bounded_counts({("x" * 5000, "cube"): 1}, (True, True)) == {("x" * LONGEST, "cube"): 1}
