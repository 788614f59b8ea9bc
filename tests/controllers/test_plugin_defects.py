"""Plugins that give what no hook promises: their TrainJob says which plugin it was, and all else goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.controllers.conftest import Cluster
from tests.framework.samples import train_job_object
from trainer.api.trainjob import TrainJob
from trainer.api.trainjob_status import JobStatus
from trainer.framework.building.extraction import extract
from trainer.framework.plugin_api.component import Component
from trainer.framework.plugin_api.extension_points import Watch
from trainer.framework.plugin_api.reports import Outcome, StatusReport
from trainer.framework.plugin_api.runtime_info import RuntimeInfo
from trainer.framework.startup.discovery import EnabledPlugin, PluginsConfiguration, bundled_plugins, load_plugins
from trainer.kube.errors import ConfigurationError
from trainer.kube.objects import Object
from trainer.kube.resource import CONFIG_MAPS, PODS, SECRETS
from trainer.kube.selection import Selection
from trainer.plugins import BUILT_IN

FAILED = {"type": "Failed", "status": "True", "reason": "FailedJobs", "message": "a job failed"}


class Acme:
    """A plugin; tests give it a hook."""

    name = "acme"

    def watches(self) -> list[Watch]:
        """See `WatchExtension`."""
        return [Watch(CONFIG_MAPS)]


def plugins(**members: Any) -> list[EnabledPlugin]:
    """The built-in plugins and one with these members."""
    acme = type("Acme", (Acme,), members)()
    every = [bundled_plugins(BUILT_IN), bundled_plugins({"acme": lambda _: acme})]
    return [plugin for found in every for plugin in load_plugins(found, PluginsConfiguration())]


def config_map(name: str = "demo-x", **changes: Any) -> Object:
    """A ConfigMap of the TrainJob."""
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}} | changes


NODE = JobStatus(name="node", ready=0, succeeded=0, failed=0, active=1, suspended=0)


def errors(cluster: Cluster, phase: str) -> float:
    """How many errors of the plugin in this hook were counted."""
    labels = {"plugin": "acme", "phase": phase}
    return cluster.metrics.registry.get_sample_value("trainer_plugin_errors_total", labels) or 0


@pytest.mark.parametrize(
    ("objects", "problem"),
    [
        pytest.param([config_map()], "AttributeError: 'dict' object has no attribute 'resource'", id="no-component"),
        pytest.param([Component(CONFIG_MAPS, {})], "ValueError: a ConfigMap has no metadata.name", id="no-name"),
        pytest.param(
            [Component(SECRETS, config_map(kind="Secret"))],
            "LookupError: secrets are not cached: a plugin that reads or builds them must watch them",
            id="not-watched",
        ),
        pytest.param(
            [Component(CONFIG_MAPS, config_map(metadata={"name": "x", "namespace": "other"}))],
            "ValueError: ConfigMap x must be in namespace default, not other",
            id="another-namespace",
        ),
        pytest.param(
            [Component(CONFIG_MAPS, config_map()), Component(CONFIG_MAPS, config_map(data={}))],
            "ValueError: ConfigMap default/demo-x is built by plugin acme already",
            id="twice",
        ),
        pytest.param(
            [Component(SECRETS, config_map("demo-keys", kind="Secret"), generated=dict)],
            "ValueError: Secret demo-keys is generated; its name must be one that unique_name gives",
            id="generated-under-a-name-of-anybody",
        ),
    ],
)
async def test_what_cannot_be_deployed(cluster: Cluster, objects: list[object], problem: str) -> None:
    """Nothing is created, and the condition names the plugin."""
    async with cluster.managed(plugins(build=lambda *_: objects)):
        await cluster.put(train_job_object())
        message = f"Failed to build Jobs: Internal error: plugin acme failed in build: {problem}"
        assert cluster.condition("Created") == ("False", "JobsBuildFailed", message)
        assert cluster.events == [("Warning", "JobsBuildFailed", message)]
        assert cluster.jobsets == []
        assert errors(cluster, "build") == 1


async def test_an_object_that_is_no_json(cluster: Cluster) -> None:
    """It is found out before it is sent."""
    async with cluster.managed(plugins(build=lambda *_: [Component(CONFIG_MAPS, config_map(data={"a": object()}))])):
        await cluster.put(train_job_object())
        created = cluster.condition("Created")
        assert created is not None
        assert "plugin acme failed in build: TypeError: Object of type object is not JSON" in created[2]
        assert cluster.jobsets == []


@pytest.mark.parametrize(
    ("hook", "answer", "problem"),
    [
        pytest.param(
            "terminal_condition", lambda: True, "AttributeError: 'bool' object has no attribute 'type'", id="no-outcome"
        ),
        pytest.param(
            "terminal_condition",
            lambda: Outcome("Done", "Fine", "m"),  # type: ignore[arg-type]
            "ValueError: type 'Done' must be Complete or Failed",
            id="outcome-type",
        ),
        pytest.param(
            "train_job_status", lambda: None, "AttributeError: 'NoneType' object has no attribute 'jobs'", id="nothing"
        ),
        pytest.param(
            "train_job_status",
            lambda: StatusReport(jobs=[]),
            "ValueError: another plugin counts the child Jobs already; disable one of the two",
            id="counted-twice",
        ),
    ],
)
async def test_what_cannot_be_reported(cluster: Cluster, hook: str, answer: Callable[[], object], problem: str) -> None:
    """The rest of the status is written up to the end, and names plugin and hook."""
    members: dict[str, Any] = {hook: lambda *_: answer()}
    if hook == "train_job_status":
        members["condition_types"] = frozenset({"acme.com/Fine"})
    async with cluster.managed(plugins(**members)):
        await cluster.put(train_job_object())
        created = cluster.condition("Created")
        assert created is not None
        assert created[:2] == ("True", "JobsCreationSucceeded")
        if problem.startswith("ValueError: another"):
            await cluster.run_jobset(ready=1)
            created = cluster.condition("Created")
            assert created is not None
        assert f"Internal error: plugin acme failed in {hook}: " in created[2]
        assert problem in created[2]
        assert errors(cluster, hook) >= 1
        await cluster.run_jobset("Failed", FAILED, failed=1)
        await cluster.clock.advance(60)
        assert cluster.train_job["status"]["state"] == "Failed"


async def test_a_watch_that_is_none(cluster: Cluster) -> None:
    """The manager does not start, and says why in one line."""
    with pytest.raises(
        ConfigurationError, match="plugin acme failed in watches: AttributeError: 'Resource' object has no"
    ):
        async with cluster.managed(plugins(watches=lambda _: [CONFIG_MAPS])):
            pass


async def test_an_object_that_its_watch_does_not_show(cluster: Cluster) -> None:
    """It would be made again and again, and never be deleted: nothing is created, and the plugin is named."""
    watch = Watch(SECRETS, Selection(label_selector="acme.com/ours"))
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "demo-x", "namespace": "default"}}
    members: dict[str, Any] = {"watches": lambda _: [watch], "build": lambda *_: [Component(SECRETS, secret)]}
    async with cluster.managed(plugins(**members)):
        await cluster.put(train_job_object())
        problem = "LookupError: Secret default/demo-x lacks the labels or fields that the watches of its kind select"
        message = f"Failed to build Jobs: Internal error: plugin acme failed in build: {problem}"
        assert cluster.condition("Created") == ("False", "JobsBuildFailed", message)
        assert cluster.client.objects(SECRETS) == []


async def test_an_index_that_is_taken(cluster: Cluster) -> None:
    """Two plugins would answer each other's questions; the manager says which."""
    selection = Selection(label_selector="jobset.sigs.k8s.io/jobset-name")
    watch = Watch(PODS, selection, indexes={"jobset-pod-problems": lambda _: ()})
    message = "plugins jobset and acme both have an index jobset-pod-problems of pods; rename one of them"
    with pytest.raises(ConfigurationError, match=message):
        async with cluster.managed(plugins(watches=lambda _: [watch])):
            pass


async def test_a_defect_of_the_build(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect of the build shows in the condition, backs off, and holds up no other TrainJob."""
    build = extract

    def fail(train_job: TrainJob, *arguments: Any, **options: Any) -> RuntimeInfo:
        if train_job.metadata.name == "demo":
            raise RecursionError("maximum recursion depth exceeded")
        return build(train_job, *arguments, **options)

    monkeypatch.setattr("trainer.framework.pipeline.extract", fail)
    async with cluster.managed():
        await cluster.put(train_job_object())
        message = (
            "Failed to build Jobs: Internal error: the build failed, please report it: "
            "RecursionError: maximum recursion depth exceeded"
        )
        assert cluster.condition("Created") == ("False", "JobsBuildFailed", message)
        assert cluster.jobsets == []
        await cluster.put(train_job_object("other"))
        assert [jobset["metadata"]["name"] for jobset in cluster.jobsets] == ["other"]
