from __future__ import annotations

from prometheus_client import CollectorRegistry

from trainer.controllers.metrics.series import JobLabels, TrainJobSeries


def counted(registry: CollectorRegistry, name: str) -> dict[tuple[str, str], float]:
    """Values by namespace and runtime."""
    return {
        (sample.labels["namespace"], sample.labels["runtime"]): sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == name
    }


def test_counters_of_more_groups_than_the_limit() -> None:
    """Thousands of namespaces are 2,000 series and one for the rest, whose sum is right."""
    registry = CollectorRegistry()
    series = TrainJobSeries(registry)
    for number in range(2500):
        series.created.labels(*JobLabels(f"ns-{number}", "torch", "torch")).inc()
        series.failed.labels(*JobLabels(f"ns-{number}", "torch", "torch"), "FailedJobs").inc()
    for name in ("created", "failed"):
        values = counted(registry, f"trainer_trainjobs_{name}_total")
        assert (len(values), values["other", "other"], sum(values.values())) == (2001, 500, 2500)


def test_reasons_that_a_plugin_makes_up() -> None:
    """A condition with a new reason for each TrainJob does not make a series for each."""
    registry = CollectorRegistry()
    series = TrainJobSeries(registry, limit=20)
    for number in range(9):
        series.failed.labels(*JobLabels("team-a", "torch", "torch"), f"Reason{number}").inc()
    rest = {"namespace": "team-a", "runtime": "other", "framework": "torch", "reason": "other"}
    assert registry.get_sample_value("trainer_trainjobs_failed_total", rest) == 8


def test_the_population_of_more_groups_than_the_limit() -> None:
    """The gauge has no more series either; states and frameworks are never folded."""
    registry = CollectorRegistry()
    series = TrainJobSeries(registry, limit=10)
    groups = [(f"ns-{number}", "torch", "torch", state) for number in range(50) for state in ("Created", "Done")]
    series.population.observe(lambda: dict.fromkeys(groups, 2))
    values = {
        (sample.labels["namespace"], sample.labels["state"]): sample.value
        for family in registry.collect()
        if family.name == "trainer_trainjobs" and family.type == "gauge"
        for sample in family.samples
    }
    assert len(values) == 12
    assert sum(values.values()) == 200
    assert {("other", "Created"), ("other", "Done")} <= set(values)


def test_what_is_gone_gives_its_series_back() -> None:
    """A series goes when nothing has asked for it between two looks and its group has no TrainJob, and begins anew."""
    registry = CollectorRegistry()
    series = TrainJobSeries(registry)
    for namespace in ("gone", "kept", "busy"):
        series.completed.labels(*JobLabels(namespace, "torch", "torch")).inc(3)
    series.remove_stale({("kept", "torch")})
    assert len(counted(registry, "trainer_trainjobs_completed_total")) == 3
    series.completed.labels(*JobLabels("busy", "torch", "torch")).inc()
    series.remove_stale({("kept", "torch")})
    assert counted(registry, "trainer_trainjobs_completed_total") == {("kept", "torch"): 3, ("busy", "torch"): 4}
    series.completed.labels(*JobLabels("gone", "torch", "torch")).inc()
    assert counted(registry, "trainer_trainjobs_completed_total")["gone", "torch"] == 1
