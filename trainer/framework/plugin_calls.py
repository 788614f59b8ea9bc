"""Calls of plugins' hooks: what a hook raises becomes an error with the name of the plugin, and is counted."""

from __future__ import annotations

from time import perf_counter

from prometheus_client import CollectorRegistry, Counter

from trainer.framework.plugin_api.errors import BuildDefectError, BuildError
from trainer.framework.startup.registry import Registry, hooks_of
from trainer.kube.errors import KubeError
from trainer.kube.metrics.histograms import BoundHistogram, QuickHistogram

_BUCKETS = (1e-05, 0.0001, 0.001, 0.01, 0.1, 1, 10)
"""Seconds: hooks only compute, and block the event loop meanwhile. A few buckets, for there are a dozen plugins."""

_LABELS = ("plugin", "phase")


class PluginCall:
    """Context of the calls of one hook; it is reused, since many hooks take less time than making it.

    What the author of a TrainJob can fix and errors of the API server pass; anything else becomes a BuildDefectError.

    Args:
        failure: what an error means, such as `plugin torch failed in validate`.
        errors: counts them. Defaults to none.
        seconds: gets the time of each call, which must not await. Defaults to none.
    """

    __slots__ = ("_errors", "_seconds", "_started", "failure")

    def __init__(self, failure: str, errors: Counter | None = None, seconds: BoundHistogram | None = None) -> None:
        self.failure = failure
        self._errors = errors
        self._seconds = seconds
        self._started = 0.0

    def __enter__(self) -> None:
        self._started = perf_counter()

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if self._seconds is not None:
            self._seconds.observe(perf_counter() - self._started)
        if error is None:
            return
        # SystemExit: a library that a plugin uses may end the program, and all TrainJobs with it.
        if isinstance(error, Exception | SystemExit) and not isinstance(error, BuildError | KubeError):
            if self._errors is not None:
                self._errors.inc()
            raise BuildDefectError(self.failure, error) from error


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
        self._calls: dict[tuple[str, str, bool], PluginCall] = {}

    def prepare(self, plugins: Registry) -> None:
        """Show errors of all hooks of these plugins, 0 so far, so that `rate()` sees the first."""
        for plugin in plugins:
            for hook in hooks_of(plugin):
                if hook != "watches":  # its errors keep the manager from starting
                    self._errors.labels(plugin.name, hook)

    def call(self, plugin: str, hook: str, *, is_timed: bool = False) -> PluginCall:
        """The context of the calls of a hook; those that build are timed."""
        call = self._calls.get((plugin, hook, is_timed))
        if call is None:
            seconds = self._seconds.labels(plugin, hook) if is_timed else None
            call = PluginCall(f"plugin {plugin} failed in {hook}", self._errors.labels(plugin, hook), seconds)
            self._calls[plugin, hook, is_timed] = call
        return call
