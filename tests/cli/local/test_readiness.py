"""Whether cluster and manager are ready, as they themselves say."""

from __future__ import annotations

from pathlib import Path

import anyio

from trainer.cli.local.manager import write_configuration
from trainer.cli.local.readiness import cluster_answers, manager_answers
from trainer.configuration.configuration import Configuration, render_configuration
from trainer.kube.clock import SystemClock
from trainer.kube.errors import KubeError
from trainer.kube.manager.health import HealthChecks
from trainer.kube.manager.health_server import HealthServer
from trainer_devcluster.apiserver.server import ServerOptions, serve


async def test_cluster(tmp_path: Path) -> None:
    """It is ready when its /readyz says so; nothing that listens, or has no kubeconfig yet, is."""
    kubeconfig, is_started = tmp_path / "kubeconfig", anyio.Event()
    is_ready = cluster_answers(kubeconfig)
    assert not await is_ready()
    async with serve(ServerOptions(tmp_path / "data", is_ready=is_started.is_set)) as server:
        kubeconfig.write_text(server.kubeconfig())
        assert not await is_ready()
        is_started.set()
        assert await is_ready()
    assert not await is_ready()


async def test_manager(tmp_path: Path) -> None:
    """It is ready when its /readyz says so."""
    is_started, clock = anyio.Event(), SystemClock()

    async def check() -> None:
        if not is_started.is_set():
            raise KubeError("not yet")

    checks = HealthChecks("readyz", clock=clock)
    checks.add("manager", check)
    server = HealthServer("127.0.0.1", 0, checks=[checks], clock=clock)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.run)
        await server.wait_for_start()
        write_configuration(tmp_path / "manager.yaml", 4711, server.address[1])
        is_ready = await manager_answers(tmp_path / "manager.yaml")
        assert not await is_ready()
        is_started.set()
        assert await is_ready()
        tasks.cancel_scope.cancel()


async def test_manager_that_does_not_listen(tmp_path: Path) -> None:
    """One that does not listen yet is not ready; one of an earlier version, which has no probes, counts as ready."""
    configuration = tmp_path / "manager.yaml"
    write_configuration(configuration, 4711, 1)
    assert not await (await manager_answers(configuration))()
    configuration.write_text(render_configuration(Configuration().without_servers()))
    assert await (await manager_answers(configuration))()
