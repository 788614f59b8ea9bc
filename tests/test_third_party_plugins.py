"""Plugins of installed packages in a running manager."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.configurations import bare
from tests.controllers.conftest import RESOURCES, Cluster
from tests.framework.plugin_package import FAULTY, GREETING, installed
from tests.framework.samples import env_of, runtime_object, train_job_object
from trainer.api.trainjob import TRAIN_JOBS
from trainer.framework.startup.discovery import EnabledPlugin, PluginsConfiguration
from trainer.kube.errors import ConfigurationError
from trainer.kube.objects import Object, find_condition, name_of
from trainer.manager import enabled_plugins, run_manager
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient, settle

CALLING_FOR_HELP = """\
from trainer.framework import StatusReport


class Calling:
    name = "calling"
    condition_types = frozenset()

    def __init__(self, context):
        pass

    def HOOK(self, *arguments):
        if arguments[-1].metadata.name.startswith("doomed"):
            raise KeyError("lost")
        return []
"""
"""A plugin with one hook, which fails for some TrainJobs."""


def env(jobset: Object) -> dict[str, Any]:
    """The variables of the training container."""
    return env_of(jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0])


def condition(cluster: Cluster, job: str, condition_type: str) -> tuple[str, str, str] | None:
    """Status, reason and message of a condition of one of several TrainJobs."""
    (obj,) = [obj for obj in cluster.client.objects(TRAIN_JOBS) if name_of(obj) == job]
    found = find_condition(obj, condition_type)
    return (found["status"], found["reason"], found["message"]) if found else None


async def test_the_manager_uses_what_is_installed(tmp_path: Path) -> None:
    """The manager finds the plugin of a package by itself, configures it, and lets it take part."""
    client = FakeClient(runtime_object(), train_job_object(), resources=RESOURCES)
    configuration = bare(plugins={"configuration": {"greeting": {"text": "hi"}}})
    with installed(tmp_path, greeting=(GREETING, "Greeting")):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_manager, client, configuration)
            with anyio.fail_after(5):
                while not client.objects(JOBSETS):
                    await settle()
            tasks.cancel_scope.cancel()
    assert env(client.objects(JOBSETS)[0]) == {"GREETING": "hi"}


async def test_a_broken_package_keeps_the_manager_from_starting(tmp_path: Path) -> None:
    """A manager that would silently lack a plugin does not start, and sends nothing."""
    client = FakeClient(resources=RESOURCES)
    with (
        installed(tmp_path, greeting=("import no_such_library", "Greeting")),
        pytest.raises(ConfigurationError, match=r"plugin greeting \(acme-trainer 1.2.0\) cannot be imported"),
    ):
        await run_manager(client, bare())
    assert not client.requests


async def plugins_with(site: Path, name: str, source: str) -> list[EnabledPlugin]:
    """What is enabled once a package with a plugin, whose class has its name, is installed."""
    plugin: Any = {name: (source, name.title())}
    with installed(site, **plugin):
        return await anyio.to_thread.run_sync(partial(enabled_plugins, PluginsConfiguration()))


async def test_a_plugin_that_raises_harms_one_train_job(tmp_path: Path) -> None:
    """The TrainJob learns which plugin failed, where and why, and is built once that is over; others do not notice."""
    cluster = Cluster()
    async with cluster.managed(await plugins_with(tmp_path, "faulty", FAULTY)):
        await cluster.put(train_job_object("doomed"))
        await cluster.put(train_job_object("lucky"))

        message = (
            "Failed to build Jobs: Internal error: plugin faulty failed in enforce_ml_policy: "
            "ZeroDivisionError: no luck today"
        )
        assert condition(cluster, "doomed", "Created") == ("False", "JobsBuildFailed", message)
        assert ("Warning", "JobsBuildFailed", message) in cluster.events
        created = ("True", "JobsCreationSucceeded", "Succeeded to create Jobs")
        assert condition(cluster, "lucky", "Created") == created
        assert [name_of(jobset) for jobset in cluster.jobsets] == ["lucky"]

        await cluster.run_jobset("Completed", {"type": "Completed", "status": "True", "reason": "r", "message": "m"})
        assert condition(cluster, "lucky", "Complete") == ("True", "r", "m")


@pytest.mark.parametrize("hook", ["validate", "build", "identify_pod_network"])
async def test_whichever_hook_of_the_build_raises(tmp_path: Path, hook: str) -> None:
    """Every hook of a build is contained in the same way."""
    cluster = Cluster()
    source = CALLING_FOR_HELP.replace("HOOK", hook)
    async with cluster.managed(await plugins_with(tmp_path, "calling", source)):
        await cluster.put(train_job_object("doomed"))
        await cluster.put(train_job_object("lucky"))

        message = f"Failed to build Jobs: Internal error: plugin calling failed in {hook}: KeyError: 'lost'"
        assert condition(cluster, "doomed", "Created") == ("False", "JobsBuildFailed", message)
        assert [name_of(jobset) for jobset in cluster.jobsets] == ["lucky"]


@pytest.mark.parametrize(("hook", "answer"), [("terminal_condition", "None"), ("train_job_status", "StatusReport()")])
async def test_whichever_hook_of_the_status_raises(tmp_path: Path, hook: str, answer: str) -> None:
    """A plugin that cannot say how a TrainJob is doing is named, but keeps neither it nor others from running."""
    cluster = Cluster()
    source = CALLING_FOR_HELP.replace("HOOK", hook).replace("return []", f"return {answer}")
    async with cluster.managed(await plugins_with(tmp_path, "calling", source)):
        await cluster.put(train_job_object("doomed"))
        await cluster.put(train_job_object("lucky"))

        assert sorted(name_of(jobset) for jobset in cluster.jobsets) == ["doomed", "lucky"]
        problem = f"; Internal error: plugin calling failed in {hook}: KeyError: 'lost'"
        for job, note in (("doomed", problem), ("lucky", "")):
            message = f"Succeeded to create Jobs{note}"
            assert condition(cluster, job, "Created") == ("True", "JobsCreationSucceeded", message)


async def test_a_plugin_that_raises_at_startup(tmp_path: Path) -> None:
    """The manager does not start, and the message names the plugin."""
    source = CALLING_FOR_HELP.replace("HOOK", "watches")
    source = source.replace('if arguments[-1].metadata.name.startswith("doomed"):', "if True:")
    plugins = await plugins_with(tmp_path, "calling", source)
    with pytest.raises(ConfigurationError, match="plugin calling failed in watches: KeyError: 'lost'"):
        async with Cluster().managed(plugins):
            pass
