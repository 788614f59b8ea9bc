"""Dry runs: what the API server refuses by a dry run, and who hears of it."""

from __future__ import annotations

from collections.abc import Iterable

import anyio
import pytest
from structlog.testing import capture_logs

from tests.configurations import bare
from tests.controllers.conftest import Cluster
from tests.controllers.test_watching import GANGS, gang, plugins
from tests.framework.samples import train_job_object
from trainer.api.trainjob import TrainJob
from trainer.framework.plugin_api.component import Component
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.plugin_api.extension_points import DryRun, Watch
from trainer.framework.plugin_api.plugin_context import PluginContext
from trainer.framework.plugin_api.runtime_info import RuntimeInfo
from trainer.framework.startup.discovery import PluginsConfiguration, bundled_plugins, load_plugins
from trainer.kube.errors import ConfigurationError
from trainer.kube.field_errors import forbidden
from trainer.kube.objects import Object
from trainer.kube.resource import LEASES
from trainer.manager import build_manager
from trainer_kube_testing import RecordedRequest, settle

DRY_RUNS = {
    "colour": DryRun({"spec": {"colour": "red"}}),
    "claims": DryRun({"spec": {"claims": ["x"]}}, "spec.claims"),
}
REFUSED = "spec.colour: Forbidden: field is disabled by its feature gate"


class Painter:
    """Builds a Gang with a colour, and with claims unless they are dropped; without the kind it builds nothing."""

    name = "gang"

    def __init__(self, context: PluginContext) -> None:
        self.reader = context.reader

    def watches(self) -> Iterable[Watch]:
        """See `WatchExtension`."""
        yield Watch(GANGS, optional=True, dry_runs=DRY_RUNS)

    def build(self, info: RuntimeInfo, train_job: TrainJob) -> Iterable[Component]:
        """See `ComponentBuilder`."""
        if not self.reader.serves(GANGS):
            return
        if refusal := self.reader.refusal(GANGS, "colour"):
            raise BuildError(forbidden(f"{info.runtime} colour", f"needs GangColours: {refusal}"))
        claims = {} if self.reader.refusal(GANGS, "claims") else {"claims": ["x"]}
        yield Component(GANGS, gang(train_job.metadata.name) | {"spec": {"size": 1, "colour": "red", **claims}})


def dry_runs(cluster: Cluster) -> list[RecordedRequest]:
    return [each for each in cluster.client.requests if each.dry_run and each.resource == GANGS]


def built(cluster: Cluster) -> Object | None:
    found = cluster.client.find(GANGS, "demo", "default")
    return None if found is None else found["spec"]


def problem(cluster: Cluster) -> str:
    created = cluster.condition("Created")
    return created[2] if created is not None and created[0] == "False" else ""


@pytest.mark.parametrize("namespace", [pytest.param("", id="everywhere"), pytest.param("team-a", id="one namespace")])
async def test_each_is_asked_once_where_nothing_is_refused(cluster: Cluster, namespace: str) -> None:
    """Where the manager may write, as a child of a TrainJob, which the admission policy asks for; nothing is stored."""
    cluster.client.serve(GANGS)
    async with cluster.managed(plugins(Painter), namespace=namespace):
        await cluster.clock.advance(700)
    asked = dry_runs(cluster)
    assert [request.body["spec"] for request in asked] == [dry_run.object["spec"] for dry_run in DRY_RUNS.values()]
    for request in asked:
        assert (request.verb, request.resource, request.namespace) == ("create", GANGS, namespace or "default")
        metadata = request.body["metadata"]
        assert (metadata["name"], metadata["namespace"]) == (request.name, request.namespace)
        [owner] = metadata["ownerReferences"]
        assert (owner["kind"], owner["apiVersion"]) == ("TrainJob", "trainer.kubeflow.org/v2alpha1")
        assert owner["controller"]
    assert len({request.name for request in asked}) == 2
    assert cluster.client.objects(GANGS) == []


async def test_what_is_refused_is_known_before_the_first_build(cluster: Cluster) -> None:
    """Nothing is built with it; once the gate is on, the TrainJob is built within five minutes."""
    cluster.client.serve(GANGS)
    cluster.client.close_gate(GANGS, "spec.colour")
    cluster.client.close_gate(GANGS, "spec.claims", drops=True)
    await cluster.put(train_job_object())
    with capture_logs() as logs:
        async with cluster.managed(plugins(Painter)):
            assert f"colour: Forbidden: needs GangColours: {REFUSED}" in problem(cluster)
            assert built(cluster) is None
            assert [each for each in cluster.client.requests_of("apply") if each.resource == GANGS] == []
            cluster.client.open_gate(GANGS, "spec.colour")
            await cluster.clock.advance(301)
            assert built(cluster) == {"size": 1, "colour": "red"}
            cluster.client.open_gate(GANGS, "spec.claims")
            await cluster.clock.advance(301)
            assert built(cluster) == {"size": 1, "colour": "red", "claims": ["x"]}
            count = len(dry_runs(cluster))
            await cluster.clock.advance(700)
            assert len(dry_runs(cluster)) == count
    assert [(each["event"], each["dry_run"], each.get("reason")) for each in logs if "dry run" in each["event"]] == [
        ("API server refuses in a dry run", "colour", REFUSED),
        ("API server refuses in a dry run", "claims", "spec.claims is dropped"),
        ("API server accepts in a dry run", "colour", None),
        ("API server accepts in a dry run", "claims", None),
    ]


async def test_a_kind_that_comes_and_goes(cluster: Cluster) -> None:
    """It is asked when it comes, and what was refused is forgotten when it goes."""
    cluster.client.close_gate(GANGS, "spec.colour")
    async with cluster.managed(plugins(Painter)):
        await cluster.put(train_job_object())
        assert dry_runs(cluster) == []
        assert problem(cluster) == ""
        cluster.client.serve(GANGS)
        await cluster.clock.advance(40)
        await cluster.put(train_job_object(name="second"))
        created = [obj for obj in cluster.client.objects(cluster.train_jobs) if obj["metadata"]["name"] == "second"]
        assert "needs GangColours" in str(created[0]["status"])
        cluster.client.withdraw(GANGS)
        await cluster.clock.advance(40)
        count = len(dry_runs(cluster))
        cluster.client.open_gate(GANGS, "spec.colour")
        cluster.client.serve(GANGS)
        await cluster.clock.advance(40)
        assert len(dry_runs(cluster)) == count + 2
        assert built(cluster) is not None


async def test_replicas_that_do_not_lead_ask_too(cluster: Cluster) -> None:
    """Their webhooks review TrainJobs; they are ready once the answers are there."""
    cluster.client.serve(GANGS)
    metadata = {"name": "trainer.kubeflow.org", "namespace": "default"}
    spec = {"holderIdentity": "another", "leaseDurationSeconds": 15}
    cluster.client.add({"apiVersion": LEASES.api_version, "kind": "Lease", "metadata": metadata, "spec": spec})
    held = cluster.client.faults.hold(verb="create", resource=GANGS)
    manager = build_manager(
        cluster.client, bare(leaderElection={"leaderElect": True}), plugins=plugins(Painter), clock=cluster.clock
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await settle()
        assert (held.waiting, manager.is_ready) == (1, False)
        held.release()
        await settle()
        assert (len(dry_runs(cluster)), manager.is_ready, manager.is_leader) == (2, True, False)
        tasks.cancel_scope.cancel()


async def test_an_api_server_that_does_not_answer(cluster: Cluster) -> None:
    """It holds up the start for ten seconds, no longer."""
    cluster.client.serve(GANGS)
    cluster.client.faults.hold(verb="create", resource=GANGS)
    manager = build_manager(cluster.client, bare(), plugins=plugins(Painter), clock=cluster.clock)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        readiness = []
        for seconds in (9, 2):
            await cluster.clock.advance(seconds)
            readiness.append(manager.is_ready)
        assert readiness == [False, True]
        tasks.cancel_scope.cancel()


async def test_a_trial_that_is_taken(cluster: Cluster) -> None:
    """Two plugins would get each other's answers; the manager says which."""
    other = type("Other", (), {"name": "other", "watches": lambda _: [Watch(GANGS, dry_runs=DRY_RUNS)]})()
    found = load_plugins(bundled_plugins({"other": lambda _: other}), PluginsConfiguration())
    both = [*plugins(Painter), *found]
    message = "plugins gang and other both have a dry run colour of gangs.gang.example.com; rename one of them"
    with pytest.raises(ConfigurationError, match=message):
        build_manager(cluster.client, bare(), plugins=both, clock=cluster.clock)
