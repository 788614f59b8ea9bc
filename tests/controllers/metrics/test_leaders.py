"""Metrics of two replicas, of which one leads at a time."""

from __future__ import annotations

import anyio
from anyio.abc import TaskGroup

from tests.configurations import bare
from tests.controllers.conftest import Cluster
from tests.controllers.metrics.test_trainjobs import counter, end, labelled, population, submit, times
from trainer.kube.manager.manager import Manager
from trainer.manager import build_manager
from trainer_kube_testing import settle


async def start_replica(cluster: Cluster, tasks: TaskGroup) -> Manager:
    """A manager that works while it leads; the first that comes does."""
    manager = build_manager(cluster.client, bare(leaderElection={"leaderElect": True}), clock=cluster.clock)
    tasks.start_soon(manager.run)
    await settle()
    return manager


async def test_a_new_leader_goes_on_where_the_old_one_was(cluster: Cluster) -> None:
    """The replica that takes over knows since when a training runs, and both together have counted everything once."""
    cluster.client.add(labelled())
    async with anyio.create_task_group() as tasks:
        leader, standby = [await start_replica(cluster, tasks) for _ in range(2)]
        await submit(cluster)
        await cluster.clock.advance(20)
        await cluster.run_jobset(ready=1)
        cluster.metrics = standby.metrics
        assert population(cluster) == {("default", "blueprint", "torch", "Running"): 1}
        assert (counter(cluster, "created"), times(cluster, "queue")) == (0, (0, 0))
        cluster.metrics = leader.metrics
        assert (counter(cluster, "created"), times(cluster, "queue")) == (1, (1, 20))
        assert (leader.is_leader, standby.is_leader) == (True, False)
        leader.stop()
        await cluster.clock.advance(100)
        assert standby.is_leader
        await end(cluster, "Complete")
        cluster.metrics = standby.metrics
        assert (counter(cluster, "created"), counter(cluster, "completed")) == (0, 1)
        assert times(cluster, "run", result="Complete") == (1, 100)
        assert times(cluster, "time_to_jobset") == (0, 0)
        tasks.cancel_scope.cancel()
