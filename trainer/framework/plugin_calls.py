"""Calls of plugins' hooks: what a hook raises becomes an error with the name of the plugin, and is counted."""

from __future__ import annotations

from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from prometheus_client import Counter

from trainer.framework.plugin_api.errors import BuildError, PluginError, UnexpectedError
from trainer.framework.startup.registry import hooks_of
from trainer.kube.metrics.quick_histogram import QuickHistogram

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client import CollectorRegistry

    from trainer.framework.startup.registry import Registry
    from trainer.kube.metrics.quick_histogram import BoundHistogram

_T = TypeVar("_T")

_BUCKETS = (1e-05, 0.0001, 0.001, 0.01, 0.1, 1, 10)
"""Seconds: hooks only compute, and block the event loop meanwhile. A few buckets, for there are a dozen plugins."""

_LABELS = ("plugin", "phase")

_AT_START = frozenset({"watches"})
"""Hooks whose errors keep the manager from starting, so that they are never scraped."""


class PluginCall:
    """Context of the calls of one hook, which must not await; it is reused, as hooks may take less time than making it.

    A BuildError about the TrainJob passes; anything else that the hook raises becomes a PluginError.
    """

    __slots__ = ("_errors", "_hook", "_plugin", "_seconds", "_started")

    def __init__(
        self, plugin: str, hook: str, errors: Counter | None = None, seconds: BoundHistogram | None = None
    ) -> None:
        self._plugin = plugin
        self._hook = hook
        self._errors = errors
        self._seconds = seconds
        self._started = 0.0

    def __enter__(self) -> None:
        if self._seconds is not None:
            self._started = perf_counter()

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if self._seconds is not None:
            self._seconds.observe(perf_counter() - self._started)
        if isinstance(error, BuildError) and error.errors:
            return
        # SystemExit: a library that a plugin uses may end the program, and all TrainJobs with it.
        if isinstance(error, Exception | SystemExit):
            if self._errors is not None:
                self._errors.inc()
            raise PluginError(self._plugin, self._hook, error) from error


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
                if hook.name not in _AT_START:
                    self._errors.labels(plugin.name, hook.name)

    def timed(self, plugin: str, hook: str) -> PluginCall:
        """The context of a call that builds: its time is measured, and its errors are counted."""
        return self._calls.get((plugin, hook, True)) or self._new(plugin, hook, is_timed=True)

    def counted(self, plugin: str, hook: str) -> PluginCall:
        """The same without measuring, for calls that build nothing."""
        return self._calls.get((plugin, hook, False)) or self._new(plugin, hook, is_timed=False)

    def _new(self, plugin: str, hook: str, *, is_timed: bool) -> PluginCall:
        seconds = self._seconds.labels(plugin, hook) if is_timed else None
        call = PluginCall(plugin, hook, self._errors.labels(plugin, hook), seconds)
        self._calls[plugin, hook, is_timed] = call
        return call


@contextmanager
def build_contained() -> Iterator[None]:
    """Let only BuildErrors out of a build, so that a defect shows in its TrainJob and holds up no other."""
    try:
        yield
    except BuildError:
        raise
    except Exception as error:
        raise UnexpectedError(error) from error


def results(found: Iterable[_T], wanted: type | tuple[type, ...]) -> list[_T]:
    """What a hook returns."""
    checked = list(found)
    for each in checked:
        if not isinstance(each, wanted):
            first = wanted[0] if isinstance(wanted, tuple) else wanted
            raise TypeError(f"gave {type(each).__name__} instead of {first.__name__}")
    return checked
