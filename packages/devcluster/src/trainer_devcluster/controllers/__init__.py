"""The controllers of the dev cluster: Jobs, JobSets, garbage collection, namespaces, lost nodes, aggregated roles."""

from __future__ import annotations

from trainer.kube.client import RawClient
from trainer.kube.events.recorder import EventRecorder
from trainer.kube.manager.manager import Manager
from trainer_devcluster.controllers import (
    cluster_role_aggregation,
    namespace,
    node_lifecycle,
    pod_garbage_collector,
    pod_group_protection,
)
from trainer_devcluster.controllers.garbage_collector import monitor
from trainer_devcluster.controllers.horizontal_pod_autoscaler import controller as horizontal_pod_autoscaler
from trainer_devcluster.controllers.job import cleanup
from trainer_devcluster.controllers.job import controller as job
from trainer_devcluster.controllers.jobset import controller as jobset
from trainer_devcluster.controllers.options import ControllerOptions as ControllerOptions


def register_all(manager: Manager, options: ControllerOptions | None = None) -> None:
    """Have the manager run all controllers.

    Raises:
        TypeError: the manager's client cannot send raw requests, which discovery needs.
    """
    options = options or ControllerOptions()
    client = manager.api_reader
    if not isinstance(client, RawClient):
        raise TypeError(f"the controllers need a client with a request() method, got {type(client).__name__}")

    job.register(manager, EventRecorder(manager.events, "job-controller"), options)
    cleanup.register(manager)
    jobset.register(manager, EventRecorder(manager.events, "jobset"), options)
    monitor.register(manager, client, options)
    namespace.register(manager, client, options)
    horizontal_pod_autoscaler.register(manager, client)
    cluster_role_aggregation.register(manager)
    node_lifecycle.register(manager)
    pod_garbage_collector.register(manager)
    if options.feature_gates.generic_workload:
        pod_group_protection.register(manager)
