"""`trainer manager` before it asks any cluster."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from tests.configurations import write
from trainer.cli.app import app
from trainer.configuration.configuration import Configuration, load_configuration
from trainer.configuration.feature_gates import described
from trainer.kube.errors import ConfigurationError
from trainer.kube.rest.connection import ConnectionOptions

DOCUMENTS = Path(__file__).parents[3] / "docs"


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No kubeconfig is to be found."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)


def test_print_config(tmp_path: Path) -> None:
    """What holds is printed: the command line before the file before the defaults; no cluster is needed."""
    write(tmp_path / "manager.yaml", "leaderElection: {leaseDuration: 1m}\nfeatureGates: {TrainJobProgress: false}")
    arguments = ["--config", "manager.yaml", "--feature-gates", "TrainJobProgress=true", "--print-config"]

    result = CliRunner().invoke(app, ["manager", *arguments])

    assert (result.exit_code, result.stderr) == (0, "")
    printed = yaml.safe_load(result.stdout)
    assert printed["leaderElection"] | {"leaseDuration": "1m", "retryPeriod": "2s"} == printed["leaderElection"]
    assert printed["featureGates"] == {"TrainJobProgress": True, "TrainJobStatus": False}


def test_what_is_printed_is_a_file(tmp_path: Path) -> None:
    """Fed back, it is printed again, letter for letter."""
    first = CliRunner().invoke(app, ["manager", "--print-config"])
    (tmp_path / "printed.yaml").write_text(first.stdout)

    second = CliRunner().invoke(app, ["manager", "--print-config", "--config", "printed.yaml"])

    assert second.stdout == first.stdout
    assert load_configuration(tmp_path / "printed.yaml") == Configuration().effective()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        pytest.param(
            "--config wrong.yaml", "wrong.yaml: webhook.port: Invalid value: 0: must be at least 1", id="file"
        ),
        pytest.param("--config none.yaml", "--config: there is no file none.yaml", id="no-file"),
        pytest.param(
            "--feature-gates X=true", '--feature-gates: Unsupported value: "X": supported values: ', id="gate"
        ),
        pytest.param("--feature-gates TrainJobProgress", "must be a list such as A=true,B=false", id="no-value"),
    ],
)
@pytest.mark.parametrize("mode", ["", "--print-config "])
def test_wrong_input(tmp_path: Path, mode: str, options: str, complaint: str) -> None:
    """It is one line on standard error and exit code 2, whether the configuration is to be printed or used."""
    write(tmp_path / "wrong.yaml", "webhook: {port: 0}")

    result = CliRunner().invoke(app, f"manager {mode}{options}")

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert complaint in result.stderr


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        pytest.param("plugins: {disabled: [torhc]}", "plugins.disabled[0]: ", id="unknown"),
        pytest.param("plugins: {configuration: {torch: {x: 1}}}", "plugins.configuration[torch]: ", id="no settings"),
        pytest.param(
            "plugins: {configuration: {progress-reporter: {imag: x}}}",
            "plugins.configuration[progress-reporter].imag: ",
            id="unknown setting",
        ),
    ],
)
@pytest.mark.parametrize("version", ["v1alpha1", "v2alpha1"])
def test_wrong_plugins(tmp_path: Path, version: str, settings: str, complaint: str) -> None:
    """What the manager would refuse at its start about plugins is refused before anything is printed."""
    write(tmp_path / "wrong.yaml", f"controller: {{apiVersion: {version}}}\n{settings}")

    result = CliRunner().invoke(app, "manager --print-config --config wrong.yaml")

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {complaint}")


def test_help_lists_the_feature_gates() -> None:
    """Every gate is there with its stage and default."""
    result = CliRunner().invoke(app, ["manager", "--help"], env={"COLUMNS": "500"})

    assert [gate for gate in described() if gate not in result.stdout] == []


@pytest.mark.parametrize(
    ("settings", "qps", "burst"),
    [
        pytest.param("", None, None, id="no-limit"),
        pytest.param("clientConnection: {qps: 50, burst: 100}", 50.0, 100, id="limit"),
        pytest.param("clientConnection: {qps: 2.5}", 2.5, None, id="burst-of-the-client"),
    ],
)
def test_the_limit_on_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str, qps: float | None, burst: int | None
) -> None:
    """The client of the manager has that of the configuration."""
    seen: list[ConnectionOptions] = []

    def refuse(options: ConnectionOptions, *, metrics: object) -> None:
        seen.append(options)
        raise ConfigurationError("there is no cluster")

    monkeypatch.setattr("trainer.cli.operate.manager.connect", refuse)
    monkeypatch.setattr("trainer.cli.operate.manager.configure_logging", lambda **_: None)
    write(tmp_path / "manager.yaml", settings)

    result = CliRunner().invoke(app, "manager --config manager.yaml")

    assert result.stderr == "error: there is no cluster\n"
    assert [(options.qps, options.burst) for options in seen] == [(qps, burst)]


def test_logging_is_as_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Level and format of the log are those of the configuration."""
    seen: list[dict[str, object]] = []
    monkeypatch.setattr("trainer.cli.operate.manager.configure_logging", lambda **options: seen.append(options))
    write(tmp_path / "manager.yaml", "logging: {level: debug, format: json}")

    CliRunner().invoke(app, "manager --config manager.yaml")

    assert seen == [{"json": True, "level": "debug"}]


def test_modules_of_a_manager() -> None:
    """A manager loads neither another command nor what draws tables."""
    program = """
import sys
from trainer.cli.main import main
try:
    main()
finally:
    print(*sys.modules, sep="\\n")
"""
    command = [sys.executable, "-c", program, "manager", "--print-config"]
    loaded = set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines())

    assert "trainer.manager" in loaded
    assert not loaded & {"cryptography", "kubernetes_asyncio", "rich"}
    rooms = {name.split(".")[2] for name in loaded if name.startswith("trainer.cli.")}
    assert rooms == {"app", "commands", "completion", "errors", "main", "operate", "options"}
    assert "trainer.cli.operate.install" not in loaded
