from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from trainer.framework.plugin_api.errors import BuildDefectError, BuildError
from trainer.framework.plugin_calls import PluginSeries
from trainer.framework.startup.registry import Registry
from trainer.kube.field_errors import required


class Broken:
    """A plugin with hooks of two phases."""

    name = "broken"

    def build(self, info: object, train_job: object) -> list[object]:
        raise ZeroDivisionError

    def watches(self) -> list[object]:
        return []

    def terminal_condition(self, train_job: object) -> None:
        return None


def errors(registry: CollectorRegistry, phase: str) -> float | None:
    return registry.get_sample_value("trainer_plugin_errors_total", {"plugin": "broken", "phase": phase})


def calls(registry: CollectorRegistry, phase: str) -> float | None:
    return registry.get_sample_value("trainer_plugin_build_seconds_count", {"plugin": "broken", "phase": phase})


def test_all_hooks_of_a_plugin_show_no_errors_at_first() -> None:
    """The series of every hook of a running manager begin with 0, so that the first error is an increase."""
    registry = CollectorRegistry()
    PluginSeries(registry).prepare(Registry([Broken()]))
    assert (errors(registry, "build"), errors(registry, "terminal_condition")) == (0, 0)
    assert errors(registry, "watches") is None


def test_what_a_hook_raises_by_mistake_is_counted_and_contained() -> None:
    """Each such call is one error, and takes part in the times all the same."""
    registry = CollectorRegistry()
    series = PluginSeries(registry)
    for _ in range(3):
        with (
            pytest.raises(BuildDefectError, match="plugin broken failed in build: ZeroDivisionError"),
            series.call("broken", "build", is_timed=True),
        ):
            raise ZeroDivisionError
    assert (errors(registry, "build"), calls(registry, "build")) == (3, 3)


def test_complaints_about_a_trainjob_are_no_errors_of_the_plugin() -> None:
    """A BuildError passes as it is, and counts as a call only."""
    registry = CollectorRegistry()
    series = PluginSeries(registry)
    complaint = BuildError(required("spec.trainer.image", "needed"))
    with pytest.raises(BuildError) as raised, series.call("broken", "build", is_timed=True):
        raise complaint
    assert raised.value is complaint
    assert (errors(registry, "build"), calls(registry, "build")) == (0, 1)


def test_what_builds_nothing_is_not_timed() -> None:
    """Hooks that look at what has become of a TrainJob count errors only."""
    registry = CollectorRegistry()
    with pytest.raises(BuildDefectError), PluginSeries(registry).call("broken", "terminal_condition"):
        raise KeyError("status")
    assert (errors(registry, "terminal_condition"), calls(registry, "terminal_condition")) == (1, None)
