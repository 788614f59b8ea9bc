"""What a user writes is data: it becomes a word of a command or a value, never a part of a program."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from tests.framework.samples import train_job, train_job_object
from tests.security.admission import review
from trainer.api.trainingruntime import ClusterTrainingRuntime
from trainer.cli.manifests import runtimes
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.testing import StaticReader
from trainer.framework.startup.discovery import PluginsConfiguration, bundled_plugins, load_plugins, make_registry
from trainer.kube.objects import Object, name_of
from trainer.plugins import BUILT_IN

HOSTILE = "x'; touch /tmp/owned; $(touch /tmp/owned) `touch /tmp/owned` \"\n{host} %s $$(HOME) \x1b[2J && :"
RUNTIMES = {name_of(obj): ClusterTrainingRuntime.from_object(obj) for obj in runtimes()}


def built(runtime: ClusterTrainingRuntime, text: str) -> list[Object]:
    """What a TrainJob becomes that says this wherever it can say anything."""
    variables = [{"name": "THEIRS", "value": text}]
    spec: dict[str, Any] = {
        "runtimeRef": {"name": runtime.metadata.name},
        "trainer": {"command": ["python", text], "args": [f"--say={text}"], "env": variables, "numNodes": 2},
        "annotations": {"theirs": text},
    }
    containers = {
        container["name"]
        for job in runtime.spec.template.spec.replicated_jobs or []
        for container in job.template.spec.template["spec"]["containers"]
    }
    storage = {"storageUri": "hf://user/set", "env": variables}
    if "dataset-initializer" in containers:
        spec["datasetConfig"] = storage
    if "model-initializer" in containers:
        spec["modelConfig"] = {"input": storage}
    registry = make_registry(load_plugins(bundled_plugins(BUILT_IN), PluginsConfiguration()), StaticReader())
    return [each.object for each in Pipeline(registry).build(train_job(**spec), runtime)]


def strings(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """All strings in an object, with their paths."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, member in value.items():
            yield from strings(key, f"{path}.keys")
            yield from strings(member, f"{path}.{key}")
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from strings(member, f"{path}[{index}]")


@pytest.mark.parametrize("name", sorted(RUNTIMES))
def test_no_program_contains_what_a_user_says(name: str) -> None:
    """With every runtime that comes with the manager, it is a word or a value of its own, wherever it ends up.

    A text that is part of something longer would be: shell scripts, hostfiles, arguments of ssh.
    """
    whole = {HOSTILE, f"--say={HOSTILE}"}
    found = [
        (path, text)
        for obj in built(RUNTIMES[name], HOSTILE)
        for path, text in strings(obj)
        if "/tmp/owned" in text or "\x1b" in text
    ]
    assert found, "the user says something"
    assert [(path, text) for path, text in found if text not in whole] == []


@pytest.mark.parametrize("name", sorted(RUNTIMES))
def test_programs_are_those_of_the_runtime(name: str) -> None:
    """What a shell runs is the same whatever the user says."""

    def scripts(text: str) -> list[str]:
        words = [
            (container.get("command") or []) + (container.get("args") or [])
            for obj in built(RUNTIMES[name], text)
            for container in containers(obj)
        ]
        return [found for each in words for shell, found in itertools.pairwise(each) if shell == "-c"]

    assert scripts(HOSTILE) == scripts("harmless")


def containers(obj: Object) -> Iterator[Object]:
    """The containers of a JobSet."""
    for job in obj.get("spec", {}).get("replicatedJobs") or []:
        pod = job["template"]["spec"]["template"]["spec"]
        yield from [*pod["containers"], *(pod.get("initContainers") or [])]


@pytest.mark.parametrize("name", ["a b", "a;b", "a$(b)", "a\nb", "../a", "a.b", "-a", "A"])
async def test_names(name: str) -> None:
    """They become host names and lines of hostfiles, so nothing else is accepted."""
    errors, _ = await review(train_job_object(name))
    assert [error for error in errors if error.startswith("metadata.name: ")], errors
