"""The page for authors of plugins: everything that it shows is so."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controllers.conftest import Cluster
from tests.framework.samples import replicated_job, runtime_object, train_job_object
from trainer.configuration.configuration import Configuration
from trainer.framework.plugin_api.extension_points import EXTENSION_POINTS
from trainer.framework.plugin_api.runtime_info import RuntimeInfo
from trainer.framework.startup.discovery import PluginsConfiguration, available_plugins, bundled_plugins, load_plugins
from trainer.framework.startup.registry import HOOKS
from trainer.kube.objects import name_of
from trainer.kube.resource import SECRETS
from trainer.plugins import BUILT_IN
from trainer.workloads import JOBSETS
from trainer_kube_testing import settle

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "write-a-plugin.md").read_text()
SAMPLE = ROOT / "examples" / "plugin"


def blocks(language: str) -> list[str]:
    """The code blocks of a language, in their order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def shown() -> dict[str, Any]:
    """The names of the plugin that the page shows, and of its test."""
    names: dict[str, Any] = {}
    for source in blocks("python")[3:]:
        exec(compile(source, "docs/write-a-plugin.md", "exec"), names)
    return names


def test_every_block_is_looked_at() -> None:
    """A block that these tests do not know would be one that nobody has tried."""
    languages = re.findall(r"^```(\w*)\n.*?^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert sorted(languages) == ["console", "dockerfile", *["python"] * 5, "sh", "toml", "yaml", "yaml"]


def test_page_shows_the_sample_as_it_is() -> None:
    """What readers copy is what is tested."""
    assert blocks("python")[2] == (SAMPLE / "src" / "shared_memory_plugin" / "plugin.py").read_text()
    assert blocks("toml") == [(SAMPLE / "pyproject.toml").read_text()]


def test_plugins_enter_by_the_front_door() -> None:
    """The page and the sample import nothing from inside the framework, as a contract has it for built-in plugins."""
    sources = [PAGE, *(file.read_text() for file in SAMPLE.rglob("*.py"))]
    assert not [found for source in sources for found in re.findall(r"trainer\.framework\.\w+", source)]


def test_table_of_extension_points() -> None:
    """It names all of them and their hooks, in the order in which a TrainJob meets them."""
    rows = re.findall(r"^\| (\w+) \| `(\w+)` \| (.*?) \|", PAGE, re.MULTILINE)
    expected = [
        (protocol.__name__, [name for name, member in vars(protocol).items()
                             if name in HOOKS or isinstance(member, property)])
        for protocol in EXTENSION_POINTS
    ]  # fmt: skip
    assert [(name, re.findall(r"`(\w+)`", hooks)) for _, name, hooks in rows] == expected
    phases = list(dict.fromkeys(phase for phase, _, _ in rows))
    assert phases == ["Startup", "PreExecution", "Build", "PostExecution"]


def test_names_of_runtime_info() -> None:
    """What the page says plugins use is there."""
    names = set(re.findall(r"`info\.(\w+)", PAGE))
    assert {"trainer", "main_container", "head_address", "job_of"} <= names
    assert {name for name in names if not hasattr(RuntimeInfo, name)} == set()


def test_configuration() -> None:
    """The manager accepts it, and so does the plugin."""
    document = yaml.safe_load(blocks("yaml")[0])
    plugins = Configuration.from_object(document, strict=True).plugins
    known = [plugin.name for plugin in available_plugins(BUILT_IN)]
    assert list(plugins.errors([*known, "shared-memory"])) == []
    assert plugins.configuration == {"shared-memory": {"size": "8Gi"}}


def test_image() -> None:
    """It builds on the images of the manager and of its Python, and installs the sample as it is called."""
    [dockerfile] = blocks("dockerfile")
    [image] = yaml.safe_load((ROOT / "config" / "default" / "kustomization.yaml").read_text())["images"]
    project = tomllib.loads((SAMPLE / "pyproject.toml").read_text())["project"]
    [base] = re.findall(r"^ARG BASE=.*/(\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert dockerfile.split("\n") == [
        f"FROM {base} AS build",
        f"RUN pip install --no-cache-dir --no-deps --target /plugins {project['name']}=={project['version']}",
        "",
        f"FROM {image['newName']}:{image['newTag']}",
        "COPY --from=build /plugins /plugins",
        "",
    ]


def test_the_test_that_the_page_shows() -> None:
    """It passes as it stands."""
    names = shown()
    [test] = [value for name, value in names.items() if name.startswith("test_")]
    test()


@pytest.fixture
def monitored() -> tuple[Cluster, Any]:
    """A cluster with the plugin of the page, for a runtime whose nodes have metrics."""
    names = shown()
    cluster = Cluster()
    port = {"name": "metrics", "containerPort": 9090}
    cluster.client.add(runtime_object(replicated_job("node", {"name": "trainer", "image": "i", "ports": [port]})))
    return cluster, names


async def test_the_manager_does_what_the_page_says(monitored: tuple[Cluster, Any]) -> None:
    """Without PodMonitors the password is made; once they are installed one is built, and the password stays."""
    cluster, names = monitored
    monitors = names["POD_MONITORS"]
    found = [*bundled_plugins(BUILT_IN), *bundled_plugins({"pod-monitors": names["PodMonitors"]})]
    async with cluster.managed(load_plugins(found, PluginsConfiguration())):
        await cluster.put(train_job_object())
        assert [name_of(jobset) for jobset in cluster.client.objects(JOBSETS)] == ["demo"]
        [secret] = cluster.client.objects(SECRETS)
        assert (cluster.condition(names["MONITORED"]) or ())[:2] == ("False", "NoPrometheus")

        cluster.client.serve(monitors)
        await cluster.clock.advance(120)
        await settle()

        [monitor] = cluster.client.objects(monitors)
        assert monitor["metadata"]["ownerReferences"][0]["name"] == "demo"
        assert (cluster.condition(names["MONITORED"]) or ())[:2] == ("True", "PodMonitorExists")
        assert cluster.client.objects(SECRETS) == [secret]
        requests = {(r.resource, r.verb) for r in cluster.client.requests if r.resource in {SECRETS, monitors}}

    [role] = [yaml.safe_load(blocks("yaml")[1])]
    allowed = {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    verbs = {"apply": "patch"}
    used = {(resource.group, resource.plural, verbs.get(verb, verb)) for resource, verb in requests}
    assert (monitors.group, monitors.plural, "patch") in used
    assert used - allowed == set()
