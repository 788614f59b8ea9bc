from __future__ import annotations

from prometheus_client import CollectorRegistry

from trainer.controllers.metrics.series import Group, TrainJobSeries


def test_counters_of_more_groups_than_the_limit() -> None:
    """Thousands of namespaces and runtimes are 2,000 series and one for the rest, whose sum is right."""
    registry = CollectorRegistry()
    series = TrainJobSeries(registry)
    for number in range(2500):
        series.created.labels(*Group(f"ns-{number}", "torch", "torch")).inc()
        series.failed.labels(*Group(f"ns-{number}", "torch", "torch"), "FailedJobs").inc()
    for name in ("created", "failed"):
        values = {
            sample.labels["namespace"]: sample.value
            for family in registry.collect()
            for sample in family.samples
            if sample.name == f"trainer_trainjobs_{name}_total"
        }
        assert (len(values), values["other"], sum(values.values())) == (2001, 500, 2500)


def test_reasons_that_a_plugin_makes_up() -> None:
    """A condition with a new reason for each TrainJob does not make a series for each."""
    registry = CollectorRegistry()
    series = TrainJobSeries(registry, limit=1)
    for number in range(3):
        series.failed.labels(*Group("team-a", "torch", "torch"), f"Reason{number}").inc()
    rest = {"namespace": "other", "runtime": "other", "framework": "torch", "reason": "other"}
    assert registry.get_sample_value("trainer_trainjobs_failed_total", rest) == 2


def test_the_population_of_more_groups_than_the_limit() -> None:
    """The gauge has no more series either; states and frameworks are told apart to the end."""
    registry = CollectorRegistry()
    series = TrainJobSeries(registry, limit=10)
    groups = [(Group(f"ns-{number}", "torch", "torch"), state) for number in range(50) for state in ("Created", "Done")]
    series.population.observe(lambda: dict.fromkeys(groups, 2))
    values = {
        (sample.labels["namespace"], sample.labels["state"]): sample.value
        for family in registry.collect()
        if family.name == "trainer_trainjobs" and family.type == "gauge"
        for sample in family.samples
    }
    assert len(values) == 12
    assert (values["other", "Created"], values["other", "Done"], sum(values.values())) == (90, 90, 200)
