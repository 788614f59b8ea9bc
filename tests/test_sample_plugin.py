"""The sample distribution of `examples/plugin`, built and installed by pip as its users would."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from tests.configurations import write
from trainer.cli.app import app

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "examples" / "plugin"
OFFLINE = ["--no-index", "--no-build-isolation", "--no-deps", "--disable-pip-version-check", "--quiet"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory into which the sample is installed; it is built from a copy, where building may leave files."""
    directory = tmp_path_factory.mktemp("sample")
    source, target = directory / "source", directory / "site"
    shutil.copytree(SAMPLE, source)
    command = [sys.executable, "-m", "pip", "install", *OFFLINE, "--target", str(target), str(source)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return target


@pytest.fixture
def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The sample is installed, and its code is not imported yet."""
    monkeypatch.syspath_prepend(site)
    monkeypatch.chdir(ROOT)
    yield
    for module in [name for name in sys.modules if name.split(".")[0] == "shared_memory_plugin"]:
        del sys.modules[module]


def session() -> Iterator[tuple[str, list[str]]]:
    """The commands that docs/write-a-plugin.md shows, each with the lines of output that follow it."""
    [block] = re.findall(
        r"^```console\n(.*?)^```$", (ROOT / "docs" / "write-a-plugin.md").read_text(), re.DOTALL | re.MULTILINE
    )
    for part in block.split("$ ")[1:]:
        command, *output = part.splitlines()
        yield command, output


@pytest.mark.usefixtures("installed")
def test_what_the_page_shows() -> None:
    """After the installation the commands of the page print all lines that it shows, in this order."""
    (install, nothing), *commands = session()
    assert (shlex.split(install), nothing) == (["pip", "install", "./examples/plugin"], [])
    assert len(commands) == 2
    for command, shown in commands:
        program, *arguments = shlex.split(command)
        result = CliRunner().invoke(app, arguments)
        assert (program, result.exit_code) == ("trainer", 0), result.stderr
        printed = iter(result.stdout.splitlines())
        assert [line for line in shown if line not in printed] == []


@pytest.mark.usefixtures("installed")
def test_all_that_trains_gets_shared_memory() -> None:
    """Also the launcher of MPI, which may be the first node."""
    result = CliRunner().invoke(app, ["render", "-f", "examples/deepspeed-digits/trainjob.yaml"])
    [jobset] = [document for document in yaml.load_all(result.stdout, yaml.CSafeLoader) if document["kind"] == "JobSet"]
    pods = {job["name"]: job["template"]["spec"]["template"]["spec"] for job in jobset["spec"]["replicatedJobs"]}
    mounted = {name: [mount["name"] for mount in pod["containers"][0]["volumeMounts"]] for name, pod in pods.items()}
    volumes = {name: [volume["name"] for volume in pod["volumes"]] for name, pod in pods.items()}
    assert pods.keys() == {"node", "launcher"}
    assert [name for name in pods if "shared-memory" in mounted[name] and "shared-memory" in volumes[name]] == [*pods]


@pytest.mark.usefixtures("installed")
def test_configured(tmp_path: Path) -> None:
    """The configuration of the manager reaches the plugin, which refuses what is wrong in it."""
    configuration = tmp_path / "manager.yaml"
    arguments = ["render", "-f", "examples/torch-digits/trainjob.yaml", "--config", str(configuration)]

    write(configuration, "plugins: {configuration: {shared-memory: {size: 16Gi}}}")
    assert "sizeLimit: 16Gi" in CliRunner().invoke(app, arguments).stdout

    write(configuration, "plugins: {configuration: {shared-memory: {size: lots}}}")
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: plugins.configuration[shared-memory].size: Invalid value:")


def test_its_own_tests_pass(site: Path) -> None:
    """They need nothing but the installed packages."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", str(SAMPLE / "tests")]
    environment = os.environ | {"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    result = subprocess.run(command, cwd=SAMPLE, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    assert re.search(r"^\d+ passed", result.stdout, re.MULTILINE)
