"""Kubeconfig files: the server and the credentials that a context names.

kubernetes-asyncio's `KubeConfigLoader` serves users with an auth provider (OIDC, GCP): it fetches their tokens and
writes them back to the file. Importing it takes half a second, 40 to 60 MiB for its models, and it blocks: so only such
users pay for it, in a thread with an event loop of its own. For the rest we have code of our own, since the library

| | does |
|---|---|
| kubeconfig, in-cluster | loads CA and client certificate once; here they may be replaced (`rest.tls`) |
| in-cluster | blocks each minute to read the token, does not strip it, keeps it after a 401 (`rest.credentials`) |
| exec plugins | ignores when a certificate expires, and a 401 (`rest.exec_plugin`) |

What is not supported is refused instead of ignored.
"""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit

import anyio
import yaml

from trainer.kube.clock import Clock
from trainer.kube.errors import ConfigurationError
from trainer.kube.rest.credentials import Credentials, FixedCredentials, Identity, RenewableCredentials, TokenFile
from trainer.kube.rest.exec_plugin import ExecPlugin
from trainer.kube.rest.proxy import proxy_for
from trainer.kube.rest.tls import ClientTls
from trainer.kube.rest.transport import Endpoint

Login: TypeAlias = "Callable[[Clock | None], Credentials]"

_AUTH_PROVIDERS = ("oidc", "gcp")


async def load(files: list[Path], context: str | None, *, clock: Clock | None = None) -> tuple[Endpoint, Credentials]:
    """Read kubeconfig files; a file that does not exist is skipped.

    They are merged as kubectl does: the first value of a name counts. Without a `context` it is the current-context.

    Raises:
        ConfigurationError: one line that names the files, what is wrong and the remedy.
    """
    paths = [file.expanduser() for file in files]
    endpoint, credentials = await anyio.to_thread.run_sync(_read, paths, context)
    return endpoint, credentials(clock)


class ContextNames(NamedTuple):
    """The contexts of kubeconfig files."""

    current: str
    """The current-context; "" without one."""
    names: tuple[str, ...]


def contexts(files: list[Path]) -> ContextNames:
    """The contexts that kubeconfig files have, as `load` merges them.

    Raises:
        ConfigurationError: as for `load`.
    """
    paths = [file.expanduser() for file in files]
    with _naming_files(paths):
        merged = _Merged(paths)
        return ContextNames(merged.current_context, tuple(merged.names("context")))


def _read(paths: list[Path], context: str | None) -> tuple[Endpoint, Login]:
    with _naming_files(paths):
        merged = _Merged(paths)
        name = context or merged.current_context
        if not name:
            raise ConfigurationError(
                "it has no current-context; set one with `kubectl config use-context` or name a context"
            )
        chosen = merged.stanza("context", name)
        cluster = merged.stanza("cluster", chosen.required("cluster"))
        user = merged.stanza("user", chosen.required("user"))
        endpoint = _endpoint(chosen, cluster, user)
        return endpoint, _login(paths, name, endpoint, cluster, user)


@contextmanager
def _naming_files(paths: list[Path]) -> Iterator[None]:
    """Name the files; the library answers malformed ones with whatever its look-ups raise."""
    names = os.pathsep.join(map(str, paths))
    if not any(path.is_file() for path in paths):
        raise ConfigurationError(
            f"no kubeconfig: there is no file {names}; name one with --kubeconfig or $KUBECONFIG, or start a cluster"
        )
    try:
        yield
    except KeyError as error:
        raise ConfigurationError(f"cannot use kubeconfig {names}: an entry lacks its field {error}") from error
    except (AttributeError, TypeError) as error:
        raise ConfigurationError(
            f"cannot use kubeconfig {names}: it must be a YAML mapping with lists of clusters, users and contexts, "
            "each entry a mapping with a name"
        ) from error
    except Exception as error:
        raise ConfigurationError(f"cannot use kubeconfig {names}: {one_line(error)}") from error


class _Merged:
    """What several files say together, as kubectl merges them: of entries of one name that of the earlier file counts.

    Raises:
        OSError, UnicodeDecodeError, yaml.YAMLError: a file cannot be read.
        TypeError: a file is no mapping, or its entries are not.
        KeyError: an entry has no name.
    """

    def __init__(self, paths: list[Path]) -> None:
        self.current_context = ""
        self._entries: dict[str, dict[Any, tuple[Path, Any]]] = {"cluster": {}, "context": {}, "user": {}}
        for path in filter(Path.is_file, paths):
            # An empty file says nothing, as one that does not exist.
            document = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
            for kind, entries in self._entries.items():
                for entry in document.get(f"{kind}s") or []:
                    entries.setdefault(entry["name"], (path, entry.get(kind)))
            self.current_context = self.current_context or str(document.get("current-context") or "")

    def names(self, kind: str) -> list[str]:
        """The entries of a kind."""
        return [str(name) for name in self._entries[kind]]

    def stanza(self, kind: str, name: str) -> _Stanza:
        """The `cluster`, `user` or `context` of an entry."""
        entries = self._entries[kind]
        if name not in entries:
            known = ", ".join(map(repr, entries)) or "none"
            raise ConfigurationError(f"there is no {kind} {name!r}; it has: {known}")
        file, values = entries[name]
        if not isinstance(values, dict):
            raise ConfigurationError(f"{kind} {name!r} is empty")
        return _Stanza(kind, name, file, values)


@dataclass(frozen=True, slots=True)
class _Stanza:
    """`cluster`, `user` or `context` of a named entry."""

    kind: str
    name: str
    file: Path
    values: dict[str, Any]

    @property
    def origin(self) -> str:
        return f"{self.kind} {self.name!r} in {self.file}"

    def text(self, key: str) -> str | None:
        """A field that is a string; None when it is absent or empty."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, str):
            raise ConfigurationError(f"{key} of {self.origin} must be a string, not {type(value).__name__}")
        return value or None

    def flag(self, key: str) -> bool:
        """A field that is true or false; False when it is absent."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, bool):
            raise ConfigurationError(f"{key} of {self.origin} must be true or false, not {value!r}")
        return bool(value)

    def required(self, key: str) -> str:
        value = self.text(key)
        if value is None:
            raise ConfigurationError(f"the {self.kind} {self.name!r} names no {key}")
        return value

    def pem(self, key: str) -> Path | bytes | None:
        """A certificate or key: inline in `<key>-data`, else in the file that `<key>` names."""
        data = self.text(f"{key}-data")
        if data is None:
            return self.path(key)
        try:
            # YAML block scalars leave line breaks in it.
            return base64.b64decode("".join(data.split()), validate=True)
        except ValueError as error:
            raise ConfigurationError(f"{key}-data of {self.origin} is not base64") from error

    def path(self, key: str) -> Path | None:
        """A file, relative to the kubeconfig that names it; it must be there."""
        name = self.text(key)
        if name is None:
            return None
        path = self.file.absolute().parent / name
        if not path.is_file():
            raise ConfigurationError(f"{key} of {self.origin}: there is no file {path}; restore it or correct the path")
        return path


def _endpoint(context: _Stanza, cluster: _Stanza, user: _Stanza) -> Endpoint:
    server = cluster.text("server")
    if server is None:
        raise ConfigurationError("the cluster has no server; set its URL")
    scheme = _scheme(server)
    if scheme is None:
        raise ConfigurationError(f"server {server!r} of {cluster.origin} is not a URL such as https://host:6443")
    return Endpoint(
        server=server.rstrip("/"),
        namespace=context.text("namespace") or "default",
        tls=_tls(cluster, user) if scheme == "https" else None,
        server_hostname=cluster.text("tls-server-name"),
        proxy=proxy_for(server, cluster.text("proxy-url")),
        context=context.name,
    )


def _scheme(server: str) -> str | None:
    """`http` or `https`; None when it is no such URL."""
    try:
        parts = urlsplit(server)
        is_complete = bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that do not match, or a port that is no port
        return None
    return parts.scheme if is_complete and parts.scheme in {"http", "https"} else None


def _tls(cluster: _Stanza, user: _Stanza) -> ClientTls:
    return ClientTls(
        ca=cluster.pem("certificate-authority"),
        certificate=user.pem("client-certificate"),
        key=user.pem("client-key"),
        verify=not cluster.flag("insecure-skip-tls-verify"),
        origin=f"{cluster.origin} and {user.origin}",
    )


def _login(paths: list[Path], context: str, endpoint: Endpoint, cluster: _Stanza, user: _Stanza) -> Login:
    for unsupported in ("as", "as-uid", "as-groups", "as-user-extra"):
        if user.values.get(unsupported):
            raise ConfigurationError(f"impersonation ({unsupported} of {user.origin}) is not supported: remove it")
    if token_file := user.path("tokenFile"):
        return lambda clock: TokenFile(token_file, clock=clock)
    if token := user.text("token"):
        return _fixed(f"Bearer {token}", user)
    if (stanza := user.values.get("exec")) is not None:
        directory = user.file.absolute().parent
        plugin = ExecPlugin.parse(stanza, directory=directory, origin=user.origin, cluster=_information(cluster))
        description = f"those that exec plugin {plugin.command} gave for {user.origin}; log in with it again"
        return lambda clock: RenewableCredentials(plugin.run, description=description, clock=clock)
    if provider := user.values.get("auth-provider"):
        name = provider.get("name") if isinstance(provider, dict) else None
        if name not in _AUTH_PROVIDERS:
            raise ConfigurationError(f"auth-provider {name!r} of {user.origin} is not supported: use an exec plugin")
        ask = partial(anyio.to_thread.run_sync, _ask_auth_provider, paths, context, abandon_on_cancel=True)
        description = f"those of the auth provider of {user.origin}; log in again"
        return lambda clock: RenewableCredentials(ask, description=description, clock=clock)
    if name := user.text("username"):
        password = user.text("password") or ""
        return _fixed("Basic " + base64.b64encode(f"{name}:{password}".encode()).decode(), user)
    if endpoint.tls is not None and endpoint.tls.certificate is not None:
        description = f"the client certificate of {user.origin}; put a new one there"
    else:
        description = f"none: {user.origin} has no token, client certificate or exec plugin"
    return lambda _: FixedCredentials(description=description)


def _fixed(authorization: str, user: _Stanza) -> Login:
    description = f"the token or password of {user.origin}; it may have expired: put a new one there"
    return lambda _: FixedCredentials(authorization, description=description)


def _information(cluster: _Stanza) -> dict[str, Any]:
    """The cluster as a plugin that asks for it gets it (`spec.cluster` of an ExecCredential)."""
    ca = cluster.pem("certificate-authority")
    content = ca.read_bytes() if isinstance(ca, Path) else ca
    extensions = cluster.values.get("extensions") or []
    configs = [item.get("extension") for item in extensions if item.get("name") == "client.authentication.k8s.io/exec"]
    known = {
        "server": cluster.text("server"),
        "tls-server-name": cluster.text("tls-server-name"),
        "insecure-skip-tls-verify": cluster.flag("insecure-skip-tls-verify"),
        "certificate-authority-data": base64.b64encode(content).decode() if content else None,
        "proxy-url": cluster.text("proxy-url"),
        "config": configs[0] if configs else None,
    }
    return {name: value for name, value in known.items() if value}


def _ask_auth_provider(paths: list[Path], context: str) -> Identity:
    with _naming_files(paths):
        return asyncio.run(_load_with_library(os.pathsep.join(map(str, paths)), context))


async def _load_with_library(names: str, context: str) -> Identity:
    from kubernetes_asyncio.config.kube_config import KubeConfigLoader, KubeConfigMerger  # noqa: PLC0415 - slow

    merger = KubeConfigMerger(names)
    merged: Any = merger.config
    user = merged["contexts"].get_with_name(context)["context"]["user"]
    provider = merged["users"].get_with_name(user)["user"]["auth-provider"].value
    loader = KubeConfigLoader(
        # Without certificates and keys, which the loader would write to temporary files.
        config_dict={
            "contexts": [{"name": context, "context": {"cluster": "", "user": user}}],
            "clusters": [{"name": "", "cluster": {"server": ""}}],
            "users": [{"name": user, "user": {"auth-provider": provider}}],
        },
        active_context=context,
        # The library's own passes an argument that its function does not take.
        config_persister=lambda _: merger.save_changes(),
    )
    # In place of the library's Configuration, whose constructor changes global logging.
    settings = SimpleNamespace(api_key={})
    await loader.load_and_set(settings)
    return Identity(settings.api_key.get("BearerToken"))


def one_line(error: BaseException) -> str:
    """The text of an error without line breaks; its class name when it has none."""
    # The library names an entry by all that it holds, tokens included.
    text = str(error).partition("/{")[0]
    return " ".join(text.split()) or type(error).__name__
