"""Which framework each runtime is for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.metrics.cardinality import BoundedValues

if TYPE_CHECKING:
    from trainer.kube.cache.cached_object import CachedObject

FRAMEWORK_LABEL = "trainer.kubeflow.org/framework"
"""Label of runtimes, as in Kubeflow Trainer."""

NO_FRAMEWORK = "none"
"""Of a runtime without the label, or that is gone."""

_LIMIT = 50
"""Values of the metrics' label `framework`; people name a dozen."""


class Frameworks:
    """Learns them from the informers of both kinds of runtime, as their handler."""

    def __init__(self) -> None:
        self._values = BoundedValues(_LIMIT)
        self._by_runtime: dict[str, str] = {}

    def of(self, runtime: str) -> str:
        """The framework of a runtime, by its key as text."""
        return self._by_runtime.get(runtime, NO_FRAMEWORK)

    def on_add(self, obj: CachedObject, *, initial: bool) -> None:  # noqa: ARG002 - a handler is called so
        """A runtime is there."""
        framework = obj.labels.get(FRAMEWORK_LABEL)
        if framework:
            self._by_runtime[str(obj.key)] = self._values.of(framework)
        else:
            self._by_runtime.pop(str(obj.key), None)

    def on_update(self, old: CachedObject, new: CachedObject) -> None:  # noqa: ARG002 - a handler is called so
        """A runtime has changed."""
        self.on_add(new, initial=False)

    def on_delete(self, obj: CachedObject, *, stale: bool) -> None:  # noqa: ARG002 - a handler is called so
        """A runtime is gone."""
        self._by_runtime.pop(str(obj.key), None)
