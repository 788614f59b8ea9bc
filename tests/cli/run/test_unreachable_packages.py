"""Warnings of packages that pods of the dev cluster cannot install, by the command line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import trainer
from tests.cli.conftest import ConnectedClient
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.app import app
from trainer.cli.manifests import runtimes
from trainer.kube.objects import Object
from trainer.kube.resource import NODES
from trainer_kube_testing import FakeClient

pytestmark = pytest.mark.usefixtures("cluster")
ISOLATED = "netns: each pod has its own network; pods do not reach the Internet"


def node(python: str, network: str = ISOLATED) -> Object:
    annotations = {"devcluster.trainer/pod-network": network, "devcluster.trainer/python": python}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "laptop", "annotations": annotations}}


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The interpreter of a virtual environment with pip and a package."""
    packages = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    for name in ("pip-26.dist-info", "Ruamel.Yaml_Clib-1.0.dist-info", "old-1.egg-info"):
        (packages / name).mkdir(parents=True)
    return tmp_path / "env" / "bin" / "python"


@pytest.fixture
def served(tmp_path: Path, python: Path, monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    """A dev cluster whose pods run that interpreter, and a script."""
    client = ConnectedClient(resources=[TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES, NODES])
    client.server = "https://127.0.0.1:6443"
    client.add(node(str(python)))
    for runtime in runtimes():
        client.add(runtime)
    (tmp_path / "code").mkdir()
    monkeypatch.chdir(tmp_path / "code")
    monkeypatch.setenv("HOME", str(tmp_path))
    Path("train.py").write_text("import torch")
    Path("requirements.txt").write_text("lacks-this>=1\nold\nruamel_yaml-clib\nlacks.that\n")
    return client


def said(arguments: str = "") -> str:
    """What `trainer run` says on standard error."""
    result = CliRunner().invoke(app, f"run train.py --no-follow {arguments}")
    assert result.exit_code == 0, result.stderr
    return result.stderr


def warning(python: Path, lacking: str, command: str) -> str:
    return (
        f"warning: pods of the dev cluster reach no package index, and their environment lacks {lacking}: install it "
        f"there before ({command.format(python=python)})\n"
    )


def test_packages_that_are_not_there(python: Path) -> None:
    """What the environment of the pods lacks is said, with the command that installs it there."""
    lacking = "lacks-this, lacks-that"
    assert said() == warning(python, lacking, "{python} -m pip install -r requirements.txt")

    Path("requirements.txt").unlink()
    Path("pyproject.toml").write_text('[project]\ndependencies = ["lacks-this>=1"]')
    assert said() == warning(python, "lacks-this", "{python} -m pip install lacks-this")

    (python.parents[1] / "lib/python3.11/site-packages/pip-26.dist-info").rmdir()
    assert said() == warning(python, "lacks-this", "uv pip install --python {python} lacks-this")


def learn() -> None:
    """A training."""


def test_packages_of_a_function(python: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of a function in Python are looked at as well."""
    trainer.train(learn, packages=["lacks-this>=1", "old"])
    assert capsys.readouterr().err == warning(python, "lacks-this", "{python} -m pip install lacks-this")


def test_packages_at_hand(python: Path, tmp_path: Path) -> None:
    """What a folder of pip's configuration has can be installed; an index elsewhere does not help."""
    settings = tmp_path / ".config" / "pip"
    settings.mkdir(parents=True)
    (settings / "pip.conf").write_text(
        f"[global]\nfind-links = https://example.com {tmp_path}/wheels\nextra-index-url = file://{tmp_path}/simple\n"
    )
    assert "lacks-this, lacks-that" in said()
    (tmp_path / "simple" / "lacks-this").mkdir(parents=True)
    assert "lacks lacks-that" in said()
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / "Lacks_That-1-py3-none-any.whl").touch()
    assert said() == ""


@pytest.mark.parametrize("line", ["lacks @ file:///data/lacks", "lacks-1-py3-none-any.whl", "lacks-1.tar.gz # ours"])
def test_files(line: str) -> None:
    """Nothing is said of what is in a file, which no index has to have."""
    Path("requirements.txt").write_text(line)
    Path(line.partition(" ")[0]).touch()
    assert said() == ""


def test_folders_that_cannot_be_read(tmp_path: Path) -> None:
    """A folder of pip's configuration that cannot be looked at keeps no TrainJob from being submitted."""
    (tmp_path / ".pip").mkdir()
    (tmp_path / ".pip" / "pip.conf").write_text(f"[global]\nfind-links = /{'x' * 300}\n")
    assert "lacks-this" in said()


@pytest.mark.parametrize("line", ["--find-links wheels", "torch"])
def test_a_folder_of_the_user(line: str) -> None:
    """Where requirements or variables say where packages are, nothing is said."""
    Path("requirements.txt").write_text(f"lacks-this\n{line}")
    assert said("--env PIP_FIND_LINKS=/wheels" if line == "torch" else "") == ""


@pytest.mark.parametrize(
    ("there", "server"),
    [
        pytest.param(node("/nowhere/bin/python"), "https://127.0.0.1:1", id="another machine's environment"),
        pytest.param(node("{python}", "hosts: pods share the network"), "https://127.0.0.1:1", id="they reach it"),
        pytest.param(node("{python}"), "https://example.com", id="not here"),
        pytest.param(None, "https://127.0.0.1:1", id="another cluster"),
    ],
)
def test_other_clusters(served: ConnectedClient, python: Path, there: Object | None, server: str) -> None:
    """Nothing is said where pods may reach an index, or it is not known what they have."""
    served.remove(NODES, "laptop")
    served.server = server
    if there is not None:
        annotations = there["metadata"]["annotations"]
        annotations["devcluster.trainer/python"] = annotations["devcluster.trainer/python"].format(python=python)
        served.add(there)
    assert said() == ""


def test_the_environment_of_the_command(served: FakeClient) -> None:
    """The usual one is that of the command itself, with the packages that it inherits."""
    served.remove(NODES, "laptop")
    served.add(node(sys.executable))
    Path("requirements.txt").write_text("pytest\nlacks-this\n")
    assert "lacks lacks-this: " in said()
