"""Which runtimes there are, and which framework each of them is for: two labels of most series of TrainJobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.metrics.cardinality import BoundedValues

if TYPE_CHECKING:
    from trainer.kube.cache.cached_object import CachedObject

FRAMEWORK_LABEL = "trainer.kubeflow.org/framework"
"""Label of runtimes, as in Kubeflow Trainer."""

NONE = "none"
"""Label `runtime` of TrainJobs whose runtime does not exist, and label `framework` of those and of runtimes that name
no framework. Names that people mistype or invent make no series."""

_LIMIT = 50
"""Values of the metrics' label `framework`; people name a dozen."""


class Frameworks:
    """Learns them from the informers of both kinds of runtime, as their handler.

    Frameworks are those that ClusterTrainingRuntimes name. Other names in TrainingRuntimes, which tenants write, are
    `other`: series by framework are shared by all namespaces.
    """

    def __init__(self) -> None:
        self._values = BoundedValues(_LIMIT)
        self._by_runtime: dict[str, str] = {}

    def labels_of(self, runtime: str) -> tuple[str, str]:
        """What the labels `runtime` and `framework` say for the key of a runtime as text; for any thread."""
        framework = self._by_runtime.get(runtime)
        if framework is None:
            return NONE, NONE
        return runtime, self._values.of(framework) if framework else NONE

    def on_add(self, obj: CachedObject, *, initial: bool) -> None:  # noqa: ARG002 - a handler is called so
        """A runtime is there."""
        framework = self._by_runtime[str(obj.key)] = obj.labels.get(FRAMEWORK_LABEL) or ""
        if framework and not obj.key.namespace:
            self._values.add(framework)

    def on_update(self, old: CachedObject, new: CachedObject) -> None:  # noqa: ARG002 - a handler is called so
        """A runtime has changed."""
        self.on_add(new, initial=False)

    def on_delete(self, obj: CachedObject, *, stale: bool) -> None:  # noqa: ARG002 - a handler is called so
        """A runtime is gone."""
        self._by_runtime.pop(str(obj.key), None)
