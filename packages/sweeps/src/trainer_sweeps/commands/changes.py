"""Deleting, suspending and resuming a sweep."""

from __future__ import annotations

from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.cli.current_cluster import ConnectedCluster
from trainer.cli.errors import CommandError
from trainer.cli.manifests import FIELD_MANAGER
from trainer.kube.client import DeleteOptions, Propagation
from trainer.kube.objects import Object, mapping_at, name_of, namespace_of, uid_of
from trainer.view.row import ENDS
from trainer_sweeps.commands.view import word_of


async def delete_sweep(cluster: ConnectedCluster, sweep: Object) -> None:
    """Delete a sweep and no other of its name; the garbage collector deletes its trials."""
    resource = cluster.served.resource(OPTIMIZATION_JOBS)
    options = DeleteOptions(propagation=Propagation.BACKGROUND, uid=uid_of(sweep))
    await cluster.client.delete(resource, name_of(sweep), namespace_of(sweep), options)


async def set_suspend(cluster: ConnectedCluster, sweep: Object, *, suspend: bool) -> bool:
    """Suspend or resume a sweep; returns whether that was not so already.

    Raises:
        CommandError: it has ended.
    """
    if (state := word_of(sweep)) in ENDS:
        verb = "suspended" if suspend else "resumed"
        raise CommandError(f"sweep {name_of(sweep)} cannot be {verb}: it has ended, and is {state}")
    if bool(mapping_at(sweep, "spec").get("suspend")) == suspend:
        return False
    patch = {"metadata": {"uid": uid_of(sweep)}, "spec": {"suspend": suspend}}
    resource = cluster.served.resource(OPTIMIZATION_JOBS)
    await cluster.client.patch(resource, name_of(sweep), patch, namespace_of(sweep), field_manager=FIELD_MANAGER)
    return True
