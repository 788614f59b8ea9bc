"""`trainer manager` before it asks any cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from typer.testing import CliRunner

from tests.configurations import write
from trainer.cli.app import app
from trainer.cli.operate.manager import require_own_version
from trainer.configuration.configuration import Configuration, load_configuration
from trainer.configuration.feature_gates import described
from trainer.kube.errors import ConfigurationError, KubeError, NotFoundError, TransportError

if TYPE_CHECKING:
    from trainer.kube.objects import Object
    from trainer.kube.rest.connection import ConnectionOptions


DOCUMENTS = Path(__file__).parents[3] / "docs"


@dataclass
class Discovery:
    """An API server that is asked for a group."""

    answer: list[str] | KubeError
    asked: list[str] = field(default_factory=list)

    async def request(self, method: str, path: str) -> Object:
        """The group, or why it is not to be had."""
        self.asked.append(f"{method} {path}")
        if isinstance(self.answer, KubeError):
            raise self.answer
        group = path.removeprefix("/apis/")
        versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in self.answer]
        return {"kind": "APIGroup", "apiVersion": "v1", "name": group, "versions": versions}


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(["v2alpha1"], id="ours"),
        pytest.param(["v1alpha1", "v2alpha1"], id="ours among others"),
        pytest.param([], id="none"),
        pytest.param(NotFoundError(404, "not found"), id="nothing is installed yet"),
        pytest.param(TransportError("connection refused"), id="no answer"),
    ],
)
async def test_start(answer: list[str] | KubeError) -> None:
    """The manager starts with its own version, and where it has to wait; it has asked once."""
    discovery = Discovery(answer)
    await require_own_version(discovery)
    assert discovery.asked == ["GET /apis/trainer.kubeflow.org"]


@pytest.mark.parametrize(
    ("versions", "named"),
    [
        pytest.param(["v1alpha1"], "as v1alpha1, and", id="the released Trainer"),
        pytest.param(["v1beta1", "v1alpha1"], "as v1alpha1, v1beta1, and", id="a later one"),
    ],
)
async def test_foreign_definitions(versions: list[str], named: str) -> None:
    """Another Trainer's CRDs stop the start with one line, which names what is served, the remedy and the page."""
    with pytest.raises(ConfigurationError, match=named) as raised:
        await require_own_version(Discovery(versions))
    message = str(raised.value)
    assert "\n" not in message
    assert "remove that Trainer and its CRDs" in message
    section = message.rpartition('under "')[2].removesuffix('"')
    assert f"### {section}\n" in (DOCUMENTS / "install.md").read_text()


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
    assert printed["leaderElection"] | {"leaseDuration": "1m0s", "retryPeriod": "2s"} == printed["leaderElection"]
    assert printed["featureGates"] == {"ProgressHistory": False, "TrainJobProgress": True, "TrainJobStatus": False}


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
        pytest.param(
            "--feature-gates TrainJobProgress=false,ProgressHistory=true",
            "featureGates[ProgressHistory]: Invalid value: true: does nothing without TrainJobProgress",
            id="gates-that-do-not-fit",
        ),
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
