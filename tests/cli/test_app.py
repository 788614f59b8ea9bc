"""The command as its users type it."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

import trainer
from trainer.cli.app import app
from trainer.cli.commands import COMMANDS
from trainer.cli.operate.install import crds as print_crds
from trainer.cli.processes.state_directory import StateDirectory
from trainer.cli.processes.supervisor import ProcessIdentity, RunRecord
from trainer.v1alpha1.crds import crds
from trainer.v1alpha1.discovery import Version
from trainer_sweeps.api.definitions import definition
from trainer_v1_jobs.api.definitions import served_definitions

JOB = """\
apiVersion: trainer.kubeflow.org/v2alpha1
kind: TrainJob
metadata: {name: demo}
spec: {runtimeRef: {name: torch-distributed}}
"""
UNREACHABLE = """\
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a few files, as the working directory of a user without any cluster."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "typo.yaml").write_text(JOB.replace("spec: {", "spec: {traner: {}, "))
    (tmp_path / "not.yaml").write_text("a: [")
    (tmp_path / "unreachable").write_text(UNREACHABLE)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param("no-such-command", "No such command 'no-such-command'", id="unknown command"),
        pytest.param("lnit", "No such command 'lnit'. Did you mean 'lint'", id="mistyped command"),
        pytest.param(
            "run", "name a script to train with (trainer run train.py), or a file with TrainJobs", id="missing option"
        ),
        pytest.param("run -f job.yaml --colour", "No such option", id="unknown option"),
        pytest.param(
            "run train.py --ndoes 2",
            "No such option: --ndoes: did you mean --nodes? Options of the script follow after --: trainer run",
            id="mistyped option",
        ),
        pytest.param("run x.py --epochs 2", "No such option: --epochs; options of the script", id="not alike"),
        pytest.param("get --namespcae x", "No such option: --namespcae: did you mean --namespace?\n", id="of get"),
        pytest.param(
            "run -f jbo.yaml",
            "cannot read jbo.yaml: No such file or directory: did you mean job.yaml?",
            id="mistyped file",
        ),
        pytest.param(
            "get --kubeconfig unreachabel",
            "there is no file unreachabel: did you mean unreachable?",
            id="of a kubeconfig",
        ),
        pytest.param("run -f job.yaml --timeout soon", "'--timeout'", id="timeout is no number"),
        pytest.param("run -f typo.yaml", "spec.traner: Unknown field: did you mean trainer?", id="unknown field"),
        pytest.param("run -f job.yaml", "no kubeconfig", id="no cluster"),
        pytest.param("run -f job.yaml --kubeconfig nope", "--kubeconfig: there is no file nope", id="no kubeconfig"),
        pytest.param("run -f job.yaml --kubeconfig not.yaml", "not.yaml", id="damaged kubeconfig"),
        pytest.param("run -f job.yaml --kubeconfig unreachable --context x", "x", id="no such context"),
        pytest.param("demo missing", "there is no file missing", id="no such example"),
        pytest.param("demo typo.yaml", "spec.traner: Unknown field", id="example with a typo"),
        pytest.param("get -o xml", "'-o': 'xml' is not one of 'table', 'wide', 'json'", id="unknown output"),
        pytest.param("cluster --port 70000", "'--port'", id="port too large"),
        pytest.param("cluster --pod-network pigeon", "'--pod-network'", id="unknown pod network"),
        pytest.param("cluster --kubeconfig nowhere/kc", "there is no directory nowhere", id="no directory"),
        pytest.param("manager --kubeconfig nope", "--kubeconfig: there is no file nope", id="manager: no kubeconfig"),
        pytest.param("manager --config not.yaml", "not.yaml", id="manager: not YAML"),
    ],
)
def test_bad_input(home: Path, arguments: str, complaint: str) -> None:
    """Bad input gets one clear line on standard error and exit code 2."""
    result = CliRunner().invoke(app, arguments)

    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert complaint in result.stderr
    assert not result.stdout


@pytest.mark.parametrize("options", ["--no-follow", "--timeout 5"])
def test_unreachable_cluster(home: Path, options: str) -> None:
    """A cluster that does not answer is reported in one line, with exit code 1."""
    result = CliRunner().invoke(app, f"run -f job.yaml --kubeconfig unreachable {options}")

    assert result.exit_code == 1
    assert result.stderr.startswith("error: cannot reach the cluster: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", ["", "--help", "-h"])
def test_help_lists_the_commands(arguments: str) -> None:
    """The command alone and with --help tells what there is."""
    result = CliRunner().invoke(app, arguments)

    assert result.exit_code == 0
    for command in COMMANDS:
        assert f"│ {command} " in result.stdout


def test_help_of_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines end where the terminal does, not where those of the docstring did."""
    monkeypatch.setenv("COLUMNS", "60")

    lines = [line.strip() for line in CliRunner().invoke(app, "down --help").stdout.splitlines()]

    assert "Objects, volumes and logs are kept, and `trainer up`" in lines
    assert "starts with them again, at the same address. Does nothing" in lines


def test_version() -> None:
    """The version is that of the package."""
    result = CliRunner().invoke(app, "--version")

    assert (result.exit_code, result.stdout) == (0, f"trainer {trainer.__version__}\n")


@pytest.mark.parametrize("version", ["v1alpha1", "v2alpha1"])
def test_crds(version: Version) -> None:
    """The CustomResourceDefinitions come as YAML documents."""
    result = CliRunner().invoke(app, f"crds --api-version {version}")

    assert result.exit_code == 0
    assert list(yaml.load_all(result.stdout, yaml.CSafeLoader)) == [*crds(version), definition(version)]


def test_crds_of_v1_jobs() -> None:
    """Those of PyTorchJob and JAXJob are printed in place of ours."""
    result = CliRunner().invoke(app, "crds --v1-jobs")

    assert list(yaml.load_all(result.stdout, yaml.CSafeLoader)) == served_definitions()


def test_crds_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that was started without a standard output (`>&-`) works all the same."""
    monkeypatch.setattr("sys.stdout", None)

    print_crds()


def test_status_of_nothing(home: Path) -> None:
    """When nothing was started, status says so with exit code 1, and writes nothing."""
    result = CliRunner().invoke(app, "status")

    assert result.exit_code == 1
    assert [line.split(maxsplit=1) for line in result.stdout.splitlines()] == [
        ["cluster", "not running; trainer up starts it"],
        ["manager", "not running; trainer up starts it"],
    ]
    assert not (home / "state").exists()


def test_down_twice(home: Path) -> None:
    """Stopping nothing is harmless."""
    assert CliRunner().invoke(app, "down").stdout == "nothing to stop\n"
    StateDirectory(home / "state" / "trainer").create()
    result = CliRunner().invoke(app, "down")
    assert (result.exit_code, result.stdout) == (0, "manager was not running\ncluster was not running\n")


def test_crash_is_reported(home: Path) -> None:
    """A half that has ended by itself is reported with the way it ended and its log; `down` forgets it."""
    state = StateDirectory(home / "state" / "trainer")
    state.create()
    this = ProcessIdentity.of(os.getpid())
    assert this is not None
    gone = replace(this, start_time=this.start_time - 1)
    RunRecord(gone, datetime.now(UTC), exit_status=3).write(state.record("manager"))
    RunRecord(gone, datetime.now(UTC), exit_status=-signal.SIGKILL).write(state.record("cluster"))

    reported = CliRunner().invoke(app, "status")
    CliRunner().invoke(app, "down")
    forgotten = CliRunner().invoke(app, "status")

    assert reported.exit_code == 1
    assert f"was ended by SIGKILL; its log is {state.log('cluster')}" in reported.stdout
    assert f"exited with code 3; its log is {state.log('manager')}" in reported.stdout
    assert "exited" not in forgotten.stdout
