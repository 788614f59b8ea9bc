"""What plugins watch: kinds that may be missing, kinds of the cluster, and parts of kinds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from tests.configurations import bare
from tests.controllers.conftest import Cluster
from tests.framework.samples import train_job_object
from trainer.api.trainjob import TrainJob
from trainer.framework.plugin_api.component import Component
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.plugin_api.extension_points import Watch
from trainer.framework.plugin_api.plugin_context import PluginContext
from trainer.framework.plugin_api.reports import StatusReport
from trainer.framework.plugin_api.runtime_info import RuntimeInfo
from trainer.framework.startup.discovery import EnabledPlugin, PluginsConfiguration, bundled_plugins, load_plugins
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.errors import CacheSyncError
from trainer.kube.field_errors import forbidden
from trainer.kube.objects import Object, ObjectKey, name_of
from trainer.kube.resource import Resource
from trainer.manager import build_manager
from trainer.plugins import BUILT_IN
from trainer_kube_testing import settle

GANGS = Resource("gang.example.com", "v1", "gangs", "Gang")
ZONES = Resource("zone.example.com", "v1", "zones", "Zone", namespaced=False)


class GangPlugin:
    """Builds a Gang for each TrainJob, and refuses TrainJobs while nobody has installed that kind."""

    name = "gang"

    def __init__(self, context: PluginContext) -> None:
        self.reader = context.reader

    def watches(self) -> list[Watch]:
        """See `WatchExtension`."""
        return [Watch(GANGS, optional=True, indexes={"gang-size": lambda gang: [str(gang["spec"]["size"])]})]

    def build(self, info: RuntimeInfo, train_job: TrainJob) -> Iterable[Component]:
        """See `ComponentBuilder`."""
        if not self.reader.serves(GANGS):
            raise BuildError(forbidden(info.runtime, "needs Gangs: install their CRD"))
        yield Component(GANGS, gang(info.job_name, info.trainer.count))


def gang(name: str = "demo", size: int = 1) -> Object:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "gang.example.com/v1", "kind": "Gang", "metadata": metadata, "spec": {"size": size}}


def plugins(factory: Any = GangPlugin) -> list[EnabledPlugin]:
    """The built-in plugins and one more."""
    every = [bundled_plugins(BUILT_IN), bundled_plugins({"gang": factory})]
    return [plugin for found in every for plugin in load_plugins(found, PluginsConfiguration())]


def watching(*watches: Watch) -> list[EnabledPlugin]:
    """The built-in plugins and one that only watches."""
    plugin = type("Watching", (), {"name": "gang", "watches": lambda _: list(watches)})()
    return plugins(lambda _: plugin)


async def test_kind_that_is_installed_while_the_manager_runs(cluster: Cluster) -> None:
    """What was refused for the lack of it is built as soon as it is served, and what changes of it is noticed."""
    async with cluster.managed(plugins()):
        await cluster.put(train_job_object())
        created = cluster.condition("Created")
        assert created is not None
        assert created[:2] == ("False", "JobsBuildFailed")
        assert "needs Gangs: install their CRD" in created[2]

        cluster.client.serve(GANGS)
        await cluster.clock.advance(40)
        assert [name_of(obj) for obj in cluster.client.objects(GANGS)] == ["demo"]
        assert cluster.condition("Created") == ("True", "JobsCreationSucceeded", "Succeeded to create Jobs")
        assert len(cluster.jobsets) == 1

        cluster.client.remove(GANGS, "demo", "default")
        await settle()
        assert [name_of(obj) for obj in cluster.client.objects(GANGS)] == ["demo"]


@pytest.mark.parametrize(
    "is_reported",
    [pytest.param(False, id="objects-vanish-with-it"), pytest.param(True, id="objects-are-deleted-before")],
)
async def test_kind_that_goes_away_and_comes_back(cluster: Cluster, is_reported: bool) -> None:
    """What runs goes on, and the condition tells; when the kind is back, so are its objects."""
    cluster.client.serve(GANGS)
    async with cluster.managed(plugins()):
        await cluster.put(train_job_object())
        before = cluster.jobset
        if not is_reported:
            cluster.client.faults.hold_watches(GANGS)
        with capture_logs() as logs:
            cluster.client.withdraw(GANGS)
            await cluster.clock.advance(40)
        reported = [entry for entry in logs if entry.get("resource") == "gangs.gang.example.com"]
        assert [entry["event"] for entry in reported] == ["kind is no longer served, waits for it"]
        created = cluster.condition("Created")
        assert created is not None
        assert created[:2] == ("True", "JobsCreationSucceeded")
        assert "later changes, except of suspend, are not applied: " in created[2]
        assert "needs Gangs: install their CRD" in created[2]
        assert cluster.jobset == before

        cluster.client.serve(GANGS)
        await cluster.clock.advance(40)
        assert [name_of(obj) for obj in cluster.client.objects(GANGS)] == ["demo"]
        assert cluster.condition("Created") == ("True", "JobsCreationSucceeded", "Succeeded to create Jobs")
        assert cluster.jobset == before


async def test_finished_train_jobs_are_not_looked_at_again(cluster: Cluster) -> None:
    """A kind that comes concerns what has not ended."""
    condition = {"type": "Complete", "status": "True", "reason": "JobsCompleted", "message": ""}
    done = condition | {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    cluster.client.add(train_job_object("done", status={"conditions": [done]}))
    cluster.client.add(train_job_object("open"))
    seen: list[str] = []

    class Counting(GangPlugin):
        condition_types: frozenset[str] = frozenset()

        def train_job_status(self, train_job: TrainJob) -> StatusReport:
            seen.append(train_job.metadata.name or "")
            return StatusReport()

        def terminal_condition(self, train_job: TrainJob) -> None:
            """Never: another plugin must be there otherwise."""

    found = bundled_plugins({"gang": Counting})
    async with cluster.managed(load_plugins(found, PluginsConfiguration())):
        assert set(seen) == {"done", "open"}
        seen.clear()
        cluster.client.serve(GANGS)
        await cluster.clock.advance(40)
    assert set(seen) == {"open"}


async def test_one_plugin_may_need_what_another_does_without(cluster: Cluster) -> None:
    """Then the manager does not start without it."""
    both = watching(Watch(GANGS), Watch(GANGS, optional=True))
    manager = build_manager(cluster.client, bare(), plugins=both, clock=cluster.clock)
    failure: list[Exception] = []

    async def run() -> None:
        try:
            await manager.run()
        except CacheSyncError as error:
            failure.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await cluster.clock.advance(121)
    assert [str(error) for error in failure] == [
        "gangs.gang.example.com is not served by the API server: install the Gang CRD"
    ]


@pytest.mark.parametrize("namespace", [pytest.param(None, id="everywhere"), pytest.param("default", id="one")])
async def test_kinds_of_the_cluster_are_watched_whole(cluster: Cluster, namespace: str | None) -> None:
    """Cluster-scoped kinds are watched without a namespace, also by a manager of one namespace."""
    zone = {"apiVersion": "zone.example.com/v1", "kind": "Zone", "metadata": {"name": "a"}}
    cluster.client.serve(ZONES)
    cluster.client.add(zone)
    seen: list[str] = []

    def train_jobs(obj: CachedObject) -> list[ObjectKey]:
        seen.append(obj.key.name)
        return []

    async with cluster.managed(watching(Watch(ZONES, train_jobs=train_jobs)), namespace=namespace or ""):
        assert seen == ["a"]
        await cluster.put(zone | {"metadata": {"name": "b"}})
        assert seen == ["a", "b"]
