"""Prometheus metrics of the machinery, with the names and buckets of controller-runtime so that its dashboards work.

A group of series is a class that takes the registry; `Metrics.series` makes one instance of it per registry, since
Prometheus refuses a name that is registered twice.

Of controller-runtime's series these are missing: `controller_runtime_conversion_*`, as there are no conversion webhooks
here, `controller_runtime_reconcile_timeouts_total`, as no reconcile has a timeout, and `go_*`. `certwatcher_*` is about
the files of a webhook server; the certificates with which this process shows itself to the API server are in
`trainer_kube_tls_reloads_total`. Names of our own begin with `trainer_kube_`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from prometheus_client import CollectorRegistry

_S = TypeVar("_S")


class Metrics:
    """All series of one process or manager, in a registry of its own (never the process-wide default)."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._groups: dict[object, object] = {}

    def series(self, group: Callable[[CollectorRegistry], _S]) -> _S:
        """The instance of this group of series; made and registered at the first call."""
        if group not in self._groups:
            self._groups[group] = group(self.registry)
        return cast("_S", self._groups[group])
