from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter

from trainer.kube.metrics.cardinality import LONGEST, BoundedCounter, BoundedValues


def bounded(registry: CollectorRegistry, limit: int) -> BoundedCounter:
    counter = Counter("things_total", "Things.", ["namespace", "color"], registry=registry)
    return BoundedCounter(counter, (True, False), limit)


def test_label_sets_beyond_the_limit_share_one_and_lose_nothing() -> None:
    """A metric has no more label sets of its own than its limit; the rest is summed up under `other`."""
    registry = CollectorRegistry()
    things = bounded(registry, limit=3)
    for _ in range(2):
        for number in range(100):
            things.labels(f"ns-{number}", "red").inc()
    values = {
        sample.labels["namespace"]: sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "things_total"
    }
    assert values == {"ns-0": 2, "ns-1": 2, "ns-2": 2, "other": 194}


def test_labels_with_few_values_stay_beyond_the_limit() -> None:
    """Only the labels that users choose freely become `other`."""
    registry = CollectorRegistry()
    things = bounded(registry, limit=1)
    things.labels("first", "red").inc()
    things.labels("second", "red").inc()
    things.labels("second", "blue").inc()
    assert registry.get_sample_value("things_total", {"namespace": "other", "color": "red"}) == 1
    assert registry.get_sample_value("things_total", {"namespace": "other", "color": "blue"}) == 1


def test_long_label_values_are_cut() -> None:
    """No value is longer than the name of an object with its namespace may be."""
    registry = CollectorRegistry()
    bounded(registry, limit=1).labels("x" * 5000, "red").inc()
    assert registry.get_sample_value("things_total", {"namespace": "x" * LONGEST, "color": "red"}) == 1


def test_the_first_values_of_a_label_stay() -> None:
    """What came first is told apart for ever, what comes later is not."""
    values = BoundedValues(2)
    assert [values.of(each) for each in ("a", "b", "c", "a", "c")] == ["a", "b", "other", "a", "other"]
