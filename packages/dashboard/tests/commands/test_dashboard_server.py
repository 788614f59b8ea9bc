"""`trainer dashboard-server` before it asks any cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from packages.dashboard.tests.members import ClusterClient
from trainer.cli.app import app
from trainer.kube.rest.connection import ConnectionOptions
from trainer_dashboard.access.cluster_authenticator import Proxy
from trainer_dashboard.cluster_server import ClusterServer, ClusterServerOptions

SECRET = "s" * 32


@pytest.fixture(autouse=True)
def directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Files that options name, and no kubeconfig."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    files = {"ca.crt": "authority", "secret": f"{SECRET}\n", "short": "secret", "binary": "\xff" * 40}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="latin-1")
    return tmp_path


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        pytest.param(["--proxy-client-ca", "none"], "--proxy-client-ca: there is no file none", id="no-authority"),
        pytest.param(["--proxy-secret-file", "none"], "--proxy-secret-file: there is no file none", id="no-secret"),
        pytest.param(["--proxy-secret-file", "short"], "must hold 32 printable ASCII characters", id="short-secret"),
        pytest.param(["--proxy-secret-file", "binary"], "must hold 32 printable ASCII characters", id="binary-secret"),
        pytest.param(["--proxy-name", "front"], "it needs --proxy-client-ca", id="name-without-authority"),
        pytest.param(["--plain-http", "--proxy-client-ca", "ca.crt"], "without TLS there is no use", id="plain-http"),
        pytest.param(["--record"], "--record: it needs --database or $TRAINER_HISTORY_DATABASE", id="record"),
        pytest.param(["--database", "mysql://a:secret@b/c"], "must be sqlite:////absolute/path/FILE", id="database"),
        pytest.param(["--port", "70000"], "less than or equal to 65535", id="port"),
    ],
)
def test_wrong_options(options: list[str], complaint: str) -> None:
    """They are refused with the option and the remedy."""
    result = CliRunner().invoke(app, ["dashboard-server", *options])
    assert result.exit_code == 2
    assert complaint in " ".join(result.stderr.split())
    assert "secret@" not in result.output


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param([], ClusterServerOptions(), id="defaults"),
        pytest.param(
            ["--plain-http", "--host", "127.0.0.1", "--namespace", "team", "--cluster-name", "production"],
            ClusterServerOptions("127.0.0.1", namespace="team", cluster="production", is_secure=False),
            id="plain-http",
        ),
        pytest.param(
            ["--proxy-secret-file", "secret", "--proxy-group-separator", ","],
            ClusterServerOptions(proxy=Proxy(secret=SECRET, group_separator=",")),
            id="secret",
        ),
    ],
)
def test_options(options: list[str], expected: ClusterServerOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the command line says is what is served."""
    served: list[ClusterServerOptions] = []

    @asynccontextmanager
    async def connect(options: ConnectionOptions) -> AsyncIterator[ClusterClient]:
        yield ClusterClient()

    async def run(self: ClusterServer, *, started: Callable[[], Awaitable[None]]) -> None:
        served.append(self._options)

    monkeypatch.setattr("trainer_dashboard.commands.dashboard_server.connect", connect)
    monkeypatch.setattr(ClusterServer, "run", run)
    result = CliRunner().invoke(app, ["dashboard-server", *options])
    assert result.exit_code == 0, result.output
    assert served == [expected]


@pytest.mark.parametrize("is_named", [True, False])
def test_history(is_named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database is that of the option, else of the variable."""
    served: list[ClusterServer] = []

    @asynccontextmanager
    async def connect(options: ConnectionOptions) -> AsyncIterator[ClusterClient]:
        yield ClusterClient()

    async def run(self: ClusterServer, *, started: Callable[[], Awaitable[None]]) -> None:
        served.append(self)

    monkeypatch.setattr("trainer_dashboard.commands.dashboard_server.connect", connect)
    monkeypatch.setattr(ClusterServer, "run", run)
    url = f"sqlite:///{tmp_path}/history.db"
    if not is_named:
        monkeypatch.setenv("TRAINER_HISTORY_DATABASE", url)
    options = ["--database", url] if is_named else []
    result = CliRunner().invoke(app, ["dashboard-server", *options, "--record"])
    assert result.exit_code == 0, result.output
    (server,) = served
    assert server._database is not None
    assert server._database.name == url
    assert server._records
