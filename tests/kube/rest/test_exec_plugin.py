"""Exec credential plugins."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from trainer.kube.errors import ConfigurationError
from trainer.kube.rest.credentials import Identity
from trainer.kube.rest.exec_plugin import ExecPlugin
from trainer.kube.rest.tls import ClientCertificate

V1 = "client.authentication.k8s.io/v1"


def script(text: str, **fields: Any) -> ExecPlugin:
    """A plugin that runs this Python code."""
    return plugin(sys.executable, args=["-c", text], **fields)


def plugin(command: str, **fields: Any) -> ExecPlugin:
    stanza = {"command": command, "apiVersion": V1, **fields}
    return ExecPlugin.parse(stanza, directory=Path(), origin="user 'me'", cluster={"server": "https://host"})


def printing(status: Mapping[str, Any], version: str = V1) -> ExecPlugin:
    return script(
        f"print({json.dumps(json.dumps({'apiVersion': version, 'kind': 'ExecCredential', 'status': status}))})"
    )


@pytest.mark.parametrize(
    ("status", "identity", "expiry"),
    [
        pytest.param({"token": "t"}, Identity("Bearer t"), None, id="token"),
        pytest.param(
            {"token": "t", "expirationTimestamp": "2026-01-02T03:04:05Z"},
            Identity("Bearer t"), datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), id="expiry",
        ),
        pytest.param(
            {"clientCertificateData": "chain", "clientKeyData": "key", "token": None},
            Identity(None, ClientCertificate(b"chain", b"key")), None, id="certificate",
        ),
        pytest.param(
            {"clientCertificateData": "chain", "clientKeyData": "key", "token": "t"},
            Identity("Bearer t", ClientCertificate(b"chain", b"key")), None, id="both",
        ),
    ],
)  # fmt: skip
async def test_credentials(status: dict[str, Any], identity: Identity, expiry: datetime | None) -> None:
    """A plugin may give a token, a client certificate, or both, and say when they end."""
    given = await printing(status).run()
    assert given == identity
    assert given.expiry == expiry


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        pytest.param(script("print('no')"), "did not print an ExecCredential", id="not-json"),
        pytest.param(printing({"token": 5}), "did not print an ExecCredential: .*token", id="wrong-type"),
        pytest.param(printing({}), "neither status.token nor status.clientCertificateData", id="nothing"),
        pytest.param(printing({"clientKeyData": "key"}), "only one of status.clientCertificateData", id="half"),
        pytest.param(printing({"token": "t"}, f"{V1}beta1"), "printed .*/v1beta1 ExecCredential", id="other-version"),
        pytest.param(
            script("import sys; sys.exit('token\\nexpired, run login')"), "exit code 1: token expired, run login",
            id="fails",
        ),
        pytest.param(
            plugin("no-such-plugin", installHint="get it\nfrom us"),
            "exec plugin no-such-plugin: No such file or directory; get it from us", id="missing",
        ),
        pytest.param(
            plugin("no-such-plugin"), "install it or correct exec.command", id="missing-no-hint"
        ),
        pytest.param(script("", interactiveMode="Always"), "needs a terminal", id="no-terminal"),
    ],
)  # fmt: skip
async def test_plugins_that_fail(plugin: ExecPlugin, message: str) -> None:
    """One line names the user and the plugin, and says what is wrong."""
    with pytest.raises(ConfigurationError, match=message) as raised:
        await plugin.run()
    assert str(raised.value).startswith(f"user 'me': exec plugin {plugin.command}: ")
    assert "\n" not in str(raised.value)


async def test_environment_and_cluster_information() -> None:
    """The plugin sees our environment, its own variables and, if it asked, the cluster."""
    text = (
        "import json, os, sys; info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "assert os.environ['PATH'] and sys.stdin.read() == ''\n"
        "token = [os.environ['STAGE'], info['apiVersion'], info['kind'], info['spec']]\n"
        "status = {'token': json.dumps(token)}\n"
        "print(json.dumps({'apiVersion': info['apiVersion'], 'kind': info['kind'], 'status': status}))"
    )
    identity = await script(text, env=[{"name": "STAGE", "value": "test"}], provideClusterInfo=True).run()
    assert json.loads((identity.authorization or "").removeprefix("Bearer ")) == [
        "test",
        V1,
        "ExecCredential",
        {"interactive": False, "cluster": {"server": "https://host"}},
    ]


async def test_what_a_plugin_says_reaches_the_log() -> None:
    """It may be the address at which a person has to log in, while the plugin waits."""
    with capture_logs() as logs, pytest.raises(ConfigurationError):
        await script("import sys; sys.stderr.write('open https://login\\n')").run()
    assert [entry["text"] for entry in logs] == ["open https://login"]


async def test_cancelled_plugin_is_ended() -> None:
    """Nobody waits for a login that nobody needs any more."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)
        text = f"import socket; socket.create_connection({listener.getsockname()}).recv(1)"
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(script(text).run)
                connection, _ = await anyio.to_thread.run_sync(listener.accept)
                tasks.cancel_scope.cancel()
            with connection:
                assert await anyio.to_thread.run_sync(connection.recv, 1) == b""


STANZA = {"apiVersion": V1, "command": "plugin"}


@pytest.mark.parametrize(
    ("fields", "command"),
    [
        pytest.param({}, "plugin", id="name"),
        pytest.param({"command": "bin/plugin"}, "/etc/kube/bin/plugin", id="relative-path"),
        pytest.param({"command": "/bin/plugin"}, "/bin/plugin", id="absolute-path"),
        pytest.param({"args": None, "env": None, "installHint": None}, "plugin", id="nulls"),
    ],
)
def test_commands(fields: dict[str, Any], command: str) -> None:
    """Paths are relative to the kubeconfig; names are looked for in $PATH."""
    found = ExecPlugin.parse(STANZA | fields, directory=Path("/etc/kube"), origin="user 'me'", cluster={})
    assert found.command == command


async def test_the_cluster_is_for_those_who_ask() -> None:
    """A plugin that does not ask for the cluster does not get it."""
    text = "import os; assert 'cluster' not in os.environ['KUBERNETES_EXEC_INFO'], 'provided'"
    with pytest.raises(ConfigurationError, match="did not print an ExecCredential"):
        await script(text).run()


@pytest.mark.parametrize(
    ("stanza", "message"),
    [
        pytest.param({"apiVersion": V1}, "exec: .*command", id="no-command"),
        pytest.param(STANZA | {"args": "a"}, r"exec: .*\$.args", id="args"),
        pytest.param(STANZA | {"apiVersion": f"{V1}alpha1"}, "v1alpha1' is not supported: use", id="version"),
        pytest.param(STANZA | {"interactiveMode": "Often"}, "interactiveMode 'Often' is unknown", id="mode"),
        pytest.param("plugin", "exec: Expected `object`", id="text"),
    ],
)
def test_wrong_stanzas(stanza: object, message: str) -> None:
    """The message names the user and the field."""
    with pytest.raises(ConfigurationError, match=message) as raised:
        ExecPlugin.parse(stanza, directory=Path("/"), origin="user 'me'", cluster={})
    assert str(raised.value).startswith("user 'me': exec")
