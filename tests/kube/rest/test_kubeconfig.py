"""What a kubeconfig says."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import anyio
import pytest
import yaml
from aiohttp import web

from trainer.kube.errors import ConfigurationError
from trainer.kube.rest import kubeconfig
from trainer.kube.rest.credentials import Credentials, Identity
from trainer.kube.rest.tls import ClientTls
from trainer.kube.rest.transport import Endpoint

V1 = "client.authentication.k8s.io/v1"


def document(server: str = "https://127.0.0.1:6443", **parts: Any) -> dict[str, Any]:
    """A kubeconfig with one context; `user`, `cluster` and `context` add to its parts."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "clusters": [{"name": "here", "cluster": {"server": server} | parts.get("cluster", {})}],
        "users": [{"name": "me", "user": parts.get("user", {"token": "secret"})}],
        "contexts": [{"name": "one", "context": {"cluster": "here", "user": "me"} | parts.get("context", {})}],
    }


def write(path: Path, content: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content))
    return path


async def read(path: Path, context: str | None = None) -> tuple[Endpoint, Credentials]:
    return await kubeconfig.load([path], context)


async def test_context_gives_server_and_namespace(tmp_path: Path) -> None:
    """The namespace of the context is for callers that name none."""
    endpoint, _ = await read(write(tmp_path / "config", document(context={"namespace": "team"})), "one")
    assert (endpoint.server, endpoint.namespace) == ("https://127.0.0.1:6443", "team")
    endpoint, _ = await read(write(tmp_path / "config", document()))
    assert (endpoint.namespace, endpoint.context) == ("default", "one")


def test_contexts(tmp_path: Path) -> None:
    """The contexts of all files are known, with the current one of the first file that has one."""
    first = write(tmp_path / "first", {"contexts": [{"name": "two"}, {"name": "three"}]})
    second = write(tmp_path / "second", document() | {"contexts": [{"name": "one"}, {"name": "two"}]})
    assert kubeconfig.contexts([first, second]) == ("one", ("two", "three", "one"))
    assert kubeconfig.contexts([first]).current == ""
    with pytest.raises(ConfigurationError, match="there is no file"):
        kubeconfig.contexts([tmp_path / "none"])


async def test_files_are_merged_as_kubectl_does(tmp_path: Path) -> None:
    """Missing and empty files are skipped; the first value of a name and the first current-context count."""
    first = document("https://first")
    second = document("https://second") | {"current-context": "two"}
    second["contexts"].append({"name": "two", "context": {"cluster": "there", "user": "you"}})
    second["clusters"].append({"name": "there", "cluster": {"server": "https://there"}})
    second["users"].append({"name": "you", "user": {"tokenFile": "token"}})
    empty = tmp_path / "empty"
    await anyio.Path(empty).write_text("")
    files = [tmp_path / "missing", empty, write(tmp_path / "a/config", first), write(tmp_path / "b/config", second)]
    await anyio.Path(tmp_path / "b/token").write_text("from b")
    endpoint, _ = await kubeconfig.load(files, None)
    assert endpoint.server == "https://first"
    endpoint, credentials = await kubeconfig.load(files, "two")
    assert endpoint.server == "https://there"
    assert await credentials.current() == Identity("Bearer from b")


@pytest.mark.parametrize(
    ("user", "authorization"),
    [
        pytest.param({"token": "t"}, "Bearer t", id="token"),
        pytest.param({"token": "t", "tokenFile": "token"}, "Bearer from the file", id="token-file-outranks-token"),
        pytest.param(
            {"username": "me", "password": "p"}, "Basic " + base64.b64encode(b"me:p").decode(), id="basic",
        ),
        pytest.param({}, None, id="none"),
    ],
)  # fmt: skip
async def test_authorization(tmp_path: Path, user: dict[str, Any], authorization: str | None) -> None:
    """A user becomes the value of the Authorization header."""
    await anyio.Path(tmp_path / "token").write_text("from the file\n")
    _, credentials = await read(write(tmp_path / "config", document(user=user)))
    assert await credentials.current() == Identity(authorization)


@pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")  # of the library's request to the issuer
async def test_a_refreshed_token_is_written_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The issuer accepts a refresh token once; certificates and keys of the file do not reach other files."""
    made = Mock(side_effect=AssertionError("a temporary file would hold the key"))
    monkeypatch.setattr(tempfile, "mkstemp", made)

    async def answer(request: web.BaseRequest) -> web.Response:
        if request.path.endswith("openid-configuration"):
            return web.json_response({"token_endpoint": f"{issuer}/token"})
        assert (await request.post())["refresh_token"] == "first"
        return web.json_response({"id_token": "new.id.token", "refresh_token": "second"})

    async with running(answer) as issuer:
        settings = {"client-id": "us", "client-secret": "s", "idp-issuer-url": issuer, "refresh-token": "first"}
        provider: dict[str, Any] = {"name": "oidc", "config": settings}
        user = {"auth-provider": provider, "client-certificate-data": PEM, "client-key-data": PEM}
        file = write(tmp_path / "config", document(user=user, cluster={"certificate-authority-data": PEM}))
        _, credentials = await read(file)
        assert await credentials.current() == Identity("Bearer new.id.token")
    provider["config"] = settings | {"id-token": "new.id.token", "refresh-token": "second"}
    written = yaml.safe_load(await anyio.Path(file).read_text())
    assert written == document(user=user, cluster={"certificate-authority-data": PEM})
    assert not made.called


@asynccontextmanager
async def running(answer: Callable[[web.BaseRequest], Awaitable[web.Response]]) -> AsyncIterator[str]:
    server = await asyncio.get_running_loop().create_server(web.Server(answer), "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def test_failing_auth_provider_does_not_show_what_the_file_holds(tmp_path: Path) -> None:
    """The library's messages quote whole entries."""
    user = {"auth-provider": {"name": "oidc", "config": {"client-secret": "top-secret"}}}
    _, credentials = await read(write(tmp_path / "config", document(user=user)))
    with pytest.raises(ConfigurationError, match="oidc") as raised:
        await credentials.current()
    assert "top-secret" not in str(raised.value)


PEM = base64.b64encode(b"pem").decode()


@pytest.mark.parametrize(
    ("cluster", "user", "expected"),
    [
        pytest.param({}, {}, ClientTls(), id="nothing"),
        pytest.param({"certificate-authority-data": PEM}, {}, ClientTls(ca=b"pem"), id="inline-ca"),
        pytest.param({"certificate-authority": "ca.crt"}, {}, ClientTls(ca=Path("ca.crt")), id="ca-file"),
        pytest.param(
            {"certificate-authority": "ca.crt", "certificate-authority-data": PEM}, {}, ClientTls(ca=b"pem"),
            id="inline-outranks-file",
        ),
        pytest.param(
            {}, {"client-certificate": "tls.crt", "client-key-data": PEM},
            ClientTls(certificate=Path("tls.crt"), key=b"pem"), id="client-certificate",
        ),
        pytest.param({"insecure-skip-tls-verify": True}, {}, ClientTls(verify=False), id="insecure"),
    ],
)  # fmt: skip
async def test_tls(tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any], expected: ClientTls) -> None:
    """Files are followed, inline data is taken as it is; names are relative to the kubeconfig."""
    for name in ("ca.crt", "tls.crt"):
        await anyio.Path(tmp_path / name).write_text("")
    endpoint, _ = await read(write(tmp_path / "config", document(cluster=cluster, user=user | {"token": "t"})))
    assert endpoint.tls is not None
    for name in ("ca", "certificate", "key"):
        wanted = getattr(expected, name)
        assert getattr(endpoint.tls, name) == (tmp_path / wanted if isinstance(wanted, Path) else wanted)
    assert endpoint.tls.verify is expected.verify
    assert str(tmp_path / "config") in endpoint.tls.origin


async def test_plain_http_has_no_tls(tmp_path: Path) -> None:
    """There is nothing to check."""
    endpoint, _ = await read(write(tmp_path / "config", document("http://127.0.0.1:8001/")))
    assert (endpoint.server, endpoint.tls) == ("http://127.0.0.1:8001", None)


async def test_exec_plugin_learns_about_the_cluster(tmp_path: Path) -> None:
    """`provideClusterInfo` tells it what the kubeconfig says, with the CA inline and its own configuration."""
    await anyio.Path(tmp_path / "ca.crt").write_text("pem")
    plugin = tmp_path / "plugin"
    await anyio.Path(plugin).write_text(
        "#!/bin/sh\n"
        f'echo "$KUBERNETES_EXEC_INFO" > {tmp_path}/info\n'
        f'echo \'{{"apiVersion": "{V1}", "kind": "ExecCredential", "status": {{"token": "t"}}}}\'\n'
    )
    await anyio.Path(plugin).chmod(0o700)
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}
    cluster = {"certificate-authority": "ca.crt", "tls-server-name": "name", "extensions": [extension]}
    user = {"exec": {"apiVersion": V1, "command": "./plugin", "provideClusterInfo": True}}
    _, credentials = await read(write(tmp_path / "config", document(cluster=cluster, user=user)))
    assert await credentials.current() == Identity("Bearer t")
    info = json.loads(await anyio.Path(tmp_path / "info").read_text())
    assert info["spec"]["cluster"] == {
        "server": "https://127.0.0.1:6443",
        "tls-server-name": "name",
        "certificate-authority-data": PEM,
        "config": {"audience": "a"},
    }


@pytest.mark.parametrize(
    ("content", "context", "message"),
    [
        pytest.param(None, None, "no kubeconfig: there is no file .*config; name one with --kubeconfig", id="missing"),
        pytest.param("{: bad", None, "line 1, column 2", id="not-yaml"),
        pytest.param("- a", None, "config: it must be a YAML mapping with lists of clusters", id="list"),
        pytest.param("# nothing", None, "has no current-context; set one", id="empty"),
        pytest.param("\x00", None, "config: unacceptable character", id="binary"),
        *[pytest.param(document() | {part: value}, None, "each entry a mapping with a name", id=f"{part}-{value}")
          for part in ("clusters", "users", "contexts") for value in (5, ["text"], [None])],
        pytest.param({"clusters": [{}, {}]}, None, "an entry lacks its field 'name'$", id="no-name"),
        pytest.param(document(), "two", "there is no context 'two'; it has: 'one'", id="unknown-context"),
        pytest.param(document(context={"user": "you"}), None, "no user 'you'; it has: 'me'", id="no-such-user"),
        pytest.param(document(context={"user": ""}), None, "the context 'one' names no user", id="no-user"),
        pytest.param(document(user=None), None, "user 'me' is empty", id="empty-user"),
        pytest.param(document(""), None, "the cluster has no server; set its URL", id="no-server"),
        pytest.param(document("host:6443"), None, "server 'host:6443' of cluster 'here' .* is not a URL", id="no-url"),
        pytest.param(
            document(cluster={"insecure-skip-tls-verify": "false"}), None,
            "insecure-skip-tls-verify of cluster 'here' .* must be true or false, not 'false'", id="text-for-a-flag",
        ),
        pytest.param(
            document(cluster={"certificate-authority": "missing.crt"}), None,
            "certificate-authority of cluster 'here' .*: there is no file .*missing.crt; restore", id="missing-ca",
        ),
        pytest.param(
            document(cluster={"certificate-authority-data": "§"}), None,
            "certificate-authority-data of cluster 'here' .* is not base64", id="ca-not-base64",
        ),
        pytest.param(document(user={"token": 5}), None, "token of user 'me' .* must be a string, not int", id="type"),
        pytest.param(
            document(user={"token": "t", "as": "admin"}), None, "impersonation .* is not supported", id="impersonation"
        ),
        pytest.param(
            document(user={"auth-provider": {"name": "azure"}}), None, "'azure' .* is not supported: use an exec",
            id="auth-provider",
        ),
    ],
)  # fmt: skip
async def test_unusable_kubeconfig_is_one_clear_line(
    tmp_path: Path, content: dict[str, Any] | str | None, context: str | None, message: str
) -> None:
    """The error names the file, the entry, the field and the remedy; it shows no secret."""
    path = tmp_path / "config"
    if isinstance(content, str):
        await anyio.Path(path).write_text(content)
    elif content is not None:
        write(path, content)
    with pytest.raises(ConfigurationError, match=message) as raised:
        await read(path, context)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("user", "description"),
    [
        pytest.param({"token": "t"}, "the token or password of user 'me' in .*: put a new one there", id="token"),
        pytest.param({"tokenFile": "config"}, "the token in .*/config; check that something", id="token-file"),
        pytest.param(
            {"exec": {"apiVersion": V1, "command": "aws"}}, "exec plugin aws gave for user 'me' .*; log in", id="exec"
        ),
        pytest.param({"client-certificate": "config"}, "the client certificate of user 'me'", id="certificate"),
        pytest.param({}, "none: user 'me' in .* has no token", id="none"),
    ],
)
async def test_credentials_describe_themselves(tmp_path: Path, user: dict[str, Any], description: str) -> None:
    """A 401 can say whose credentials were refused and what to do."""
    _, credentials = await read(write(tmp_path / "config", document(user=user)))
    assert re.search(description, credentials.description)
