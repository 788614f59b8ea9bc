"""Series of plugins: how long their hooks take, and how often they raise."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from prometheus_client import Counter

from trainer.framework.plugin_api.containment import contained
from trainer.framework.plugin_api.errors import PluginError
from trainer.framework.startup.hooks import hooks_of
from trainer.kube.metrics.quick_histogram import QuickHistogram

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from prometheus_client import CollectorRegistry

    from trainer.framework.startup.registry import Registry
    from trainer.kube.metrics.quick_histogram import BoundHistogram

_BUCKETS = (1e-05, 0.0001, 0.001, 0.01, 0.1, 1, 10)
"""Seconds: hooks only compute, and hold up everything else meanwhile. A few, for there are a dozen plugins."""

_LABELS = ("plugin", "phase")

_AT_START = frozenset({"watches"})
"""Hooks whose errors keep the manager from starting, so that nobody would scrape them."""


class PluginSeries:
    """Plugins by name; label `phase` is the hook, such as `enforce_ml_policy`, as error messages name it."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = QuickHistogram(
            "trainer_plugin_build_seconds",
            "Time of one call of a hook that builds a TrainJob, in reconciles and on trial in admission.",
            _LABELS,
            buckets=_BUCKETS,
            registry=registry,
        )
        self._errors = Counter(
            "trainer_plugin_errors_total",
            "Times that a hook of a plugin raised what is no complaint about a TrainJob: mistakes in its code.",
            _LABELS,
            registry=registry,
        )
        self._timed: dict[tuple[str, str], PluginCall] = {}
        self._counted: dict[tuple[str, str], PluginCall] = {}

    def prepare(self, plugins: Registry) -> None:
        """Show errors of all hooks of these plugins, 0 so far, so that `rate()` sees the first."""
        for plugin in plugins:
            for hook in hooks_of(plugin):
                if hook.name not in _AT_START:
                    self._errors.labels(plugin.name, hook.name)

    def timed(self, plugin: str, hook: str) -> AbstractContextManager[None]:
        """Measure a call of a hook, which must not await, and contain and count what it raises.

        Raises:
            BuildError: see `containment.contained`.
        """
        key = (plugin, hook)
        call = self._timed.get(key)
        if call is None:
            call = self._timed[key] = PluginCall(plugin, hook, self._errors.labels(*key), self._seconds.labels(*key))
        return call

    def counted(self, plugin: str, hook: str) -> AbstractContextManager[None]:
        """The same without measuring, for what builds nothing."""
        key = (plugin, hook)
        call = self._counted.get(key)
        if call is None:
            call = self._counted[key] = PluginCall(plugin, hook, self._errors.labels(*key))
        return call


class PluginCall:
    """Calls of one hook of one plugin, one after the other: made once, as hooks may take less time than making it."""

    __slots__ = ("_contained", "_errors", "_seconds", "_started")

    def __init__(self, plugin: str, hook: str, errors: Counter, seconds: BoundHistogram | None = None) -> None:
        self._contained = contained(plugin, hook)
        self._errors = errors
        self._seconds = seconds
        self._started = 0.0

    def __enter__(self) -> None:
        """The call begins."""
        if self._seconds is not None:
            self._started = perf_counter()

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """The call has ended.

        Raises:
            PluginError: with something else than a complaint about the TrainJob.
        """
        if self._seconds is not None:
            self._seconds.observe(perf_counter() - self._started)
        if error is None:
            return
        try:
            self._contained.__exit__(kind, error, traceback)
        except PluginError:
            self._errors.inc()
            raise
