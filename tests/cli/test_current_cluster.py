"""Which cluster a command talks to."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.cli.conftest import ConnectedClient
from trainer.cli import current_cluster as current_cluster_module
from trainer.cli.current_cluster import (
    ConnectedCluster,
    current_cluster,
    explained_warning,
    identity_of_current,
    run_on,
)
from trainer.cli.errors import BadInputError, CommandError
from trainer.cli.processes.contexts import Contexts
from trainer.cli.processes.state_directory import StateDirectory
from trainer.cli.processes.supervisor import ProcessIdentity, RunRecord
from trainer.kube.errors import TransportError
from trainer.kube.rest.connection import ConnectionOptions
from trainer_devcluster.apiserver.server import kubeconfig


@pytest.fixture
def up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StateDirectory:
    """The state of a cluster that runs in the background, and no other cluster in the environment."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return running("dev")


def running(name: str) -> StateDirectory:
    """A cluster that `trainer up` has started, after all others."""
    state = StateDirectory.of_user(name)
    state.data.mkdir(parents=True)
    this = ProcessIdentity.of(os.getpid())
    assert this is not None
    RunRecord(this, datetime.now(UTC)).write(state.record("cluster"))
    state.kubeconfig.write_text(kubeconfig("https://127.0.0.1:1234", "secret", "authority"))
    Contexts.of_user().add(state)
    return state


def of_up(context: str) -> ConnectionOptions:
    """The options that lead to a context of `trainer up`."""
    return ConnectionOptions(kubeconfig=Contexts.of_user().path, context=context)


@pytest.mark.usefixtures("up")
def test_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--kubeconfig comes before $KUBECONFIG, that before `trainer up`, that before kubectl's default."""
    given = tmp_path / "given"
    given.touch()

    assert current_cluster(None, None) == of_up("trainer-dev")
    monkeypatch.setenv("KUBECONFIG", "/other")
    assert current_cluster(given, "c") == ConnectionOptions(kubeconfig=given, context="c")
    assert current_cluster(None, "c") == ConnectionOptions(context="c")
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "nothing"))
    assert current_cluster(None, "c") == ConnectionOptions(context="c")


@pytest.mark.usefixtures("up")
def test_contexts() -> None:
    """Of several clusters the one that was started last is meant, or the one of --context.

    A context that is none of theirs is looked for in kubectl's default.
    """
    running("b")
    assert current_cluster(None, None) == of_up("trainer-b")
    assert current_cluster(None, "trainer-dev") == of_up("trainer-dev")
    assert current_cluster(None, "production") == ConnectionOptions(context="production")
    Contexts.of_user().use("trainer-dev")
    assert current_cluster(None, None) == of_up("trainer-dev")


def test_stopped_cluster(up: StateDirectory) -> None:
    """A cluster that is stopped is replaced by kubectl's default, unless it was named or another one runs."""
    up.record("cluster").unlink()
    assert current_cluster(None, None) == ConnectionOptions()
    with pytest.raises(CommandError, match=r"`trainer up` is not running: start it \(trainer up\), or name another"):
        current_cluster(None, "trainer-dev")
    b = running("b")
    Contexts.of_user().use("trainer-dev")
    with pytest.raises(CommandError, match="or with --context trainer-b"):
        current_cluster(None, None)
    b.record("cluster").unlink()
    with pytest.raises(CommandError, match="`trainer up --name b` is not running"):
        current_cluster(None, "trainer-b")


def test_crashed_cluster(up: StateDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster that has crashed is not silently replaced by another one that happens to be configured."""
    run = RunRecord.read(up.record("cluster"))
    assert run is not None
    replace(run, process=replace(run.process, start_time=1), exit_status=1).write(up.record("cluster"))

    with pytest.raises(CommandError, match="the cluster of `trainer up` exited with code 1: start it again"):
        current_cluster(None, None)
    monkeypatch.setenv("KUBECONFIG", "/other")
    assert current_cluster(None, None) == ConnectionOptions()


def test_starting_cluster(up: StateDirectory) -> None:
    """A cluster whose first start was interrupted is not replaced by another one, nor said to have no kubeconfig."""
    Contexts.of_user().remove(up)

    with pytest.raises(CommandError, match="is starting: trainer up waits for it"):
        current_cluster(None, None)


def test_pod(up: StateDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What pods run works on their own cluster, whether that of `trainer up` runs or seems to have crashed."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    assert current_cluster(None, "c", pod_first=True) == ConnectionOptions(context="c")
    assert current_cluster(None, None) == of_up("trainer-dev")

    run = RunRecord.read(up.record("cluster"))
    assert run is not None
    replace(run, process=replace(run.process, start_time=1)).write(up.record("cluster"))
    assert current_cluster(None, None, pod_first=True) == ConnectionOptions()


@pytest.mark.parametrize(
    ("running_one", "context", "kubeconfig", "answer", "identity"),
    [
        pytest.param(True, None, "", "", "of-dev", id="it runs"),
        pytest.param(False, None, "", "", "of-dev", id="nobody else answers"),
        pytest.param(False, None, "", "of-default", "of-default", id="stopped, and the default answers"),
        pytest.param(False, "trainer-dev", "", "of-default", "of-dev", id="stopped, and named"),
        pytest.param(False, None, "contexts", "of-default", "of-dev", id="stopped, and in KUBECONFIG"),
        pytest.param(True, "production", "", "of-default", "of-default", id="another context"),
        pytest.param(True, None, "/other", "of-other", "of-other", id="another kubeconfig"),
        pytest.param(True, None, "/other", "", "", id="another kubeconfig, and no answer"),
    ],
)
def test_identity(
    up: StateDirectory,
    running_one: bool,
    context: str | None,
    kubeconfig: str,
    answer: str,
    identity: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A cluster of `trainer up` is known without being asked; another one says which it is, if it answers."""
    up.identity_file.write_text("of-dev\n")
    if not running_one:
        up.record("cluster").unlink()
    if kubeconfig:
        monkeypatch.setenv("KUBECONFIG", str(Contexts.of_user().path) if kubeconfig == "contexts" else kubeconfig)

    @asynccontextmanager
    async def connect(_: ConnectionOptions) -> AsyncIterator[ConnectedClient]:
        if not answer:
            raise TransportError("nobody is there")
        client = ConnectedClient()
        client.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": answer}})
        yield client

    monkeypatch.setattr(current_cluster_module, "connect", connect)
    assert identity_of_current(None, context) == identity


def test_missing_kubeconfig(tmp_path: Path) -> None:
    """A kubeconfig that does not exist is reported by the name of the option."""
    with pytest.raises(BadInputError, match="--kubeconfig: there is no file"):
        current_cluster(tmp_path / "missing", None)


def test_warnings_of_the_api_server(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command prints them as lines for people."""

    @asynccontextmanager
    async def connect(options: ConnectionOptions) -> AsyncIterator[ConnectedClient]:
        options.warn("/apis/x", "it is deprecated")
        yield ConnectedClient()

    async def command(_: ConnectedCluster) -> None:
        pass

    monkeypatch.setattr(current_cluster_module, "connect", connect)
    assert run_on(ConnectionOptions(), command) == 0
    assert capsys.readouterr().err == "warning: it is deprecated\n"


@pytest.mark.parametrize(
    ("warning", "shown"),
    [
        pytest.param("v1 X is deprecated", "v1 X is deprecated", id="other"),
        pytest.param(
            'unknown field "spec.maxRestarts"',
            'unknown field "spec.maxRestarts", which is dropped: the CRDs of this cluster do not have it; '
            "if they are older than this command, apply those of this version (trainer crds)",
            id="dropped",
        ),
    ],
)
def test_warnings_say_what_to_do(warning: str, shown: str) -> None:
    """A field that the CRDs lack is dropped with a warning that says what to do."""
    assert explained_warning(warning) == shown
