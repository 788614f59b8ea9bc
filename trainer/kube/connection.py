"""Finding an API server and the credentials for it: kubeconfig files, exec plugins, the pod's service account.

kubernetes-asyncio reads kubeconfig files and runs exec plugins and auth providers. It blocks and takes half a second to
import, so that happens in a worker thread, with an event loop of its own for the plugins.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import threading
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import anyio

import trainer
from trainer.kube.credentials import Credentials, FixedCredentials, RenewableCredentials, TokenFile
from trainer.kube.errors import ConfigurationError
from trainer.kube.http import HttpClient
from trainer.kube.transport import Endpoint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds token, ca.crt and namespace (Kubernetes documentation, "Accessing the API from a Pod")."""

DEFAULT_KUBECONFIG = Path("~/.kube/config")

_LOADER = threading.Lock()
"""The loader's register of temporary files is global."""


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """Which API server to use, and as whom."""

    kubeconfig: Path | None = None
    """Default: $KUBECONFIG, else the service account of the pod that we run in, else ~/.kube/config."""
    context: str | None = None
    """Context in the kubeconfig. Default: its current-context."""
    user_agent: str = f"trainer/{trainer.__version__}"
    """The part before "/" is the field manager of requests that name none. Default: trainer/<version>."""


@asynccontextmanager
async def connect(options: ConnectionOptions = ConnectionOptions()) -> AsyncIterator[HttpClient]:
    """A client for the API server that the options or the environment name; no request is sent yet.

    Raises:
        ConfigurationError: no configuration, or one that cannot be used; one line that names the file.
    """
    endpoint, credentials = await _configure(options)
    async with HttpClient(endpoint, credentials, user_agent=options.user_agent) as client:
        yield client


async def _configure(options: ConnectionOptions) -> tuple[Endpoint, Credentials]:
    if options.kubeconfig is not None:
        return await _from_kubeconfig([options.kubeconfig], options.context)
    if files := [Path(name) for name in os.environ.get("KUBECONFIG", "").split(os.pathsep) if name]:
        return await _from_kubeconfig(files, options.context)
    if os.environ.get("KUBERNETES_SERVICE_HOST") and options.context is None:
        return await anyio.to_thread.run_sync(_from_service_account)
    return await _from_kubeconfig([DEFAULT_KUBECONFIG], options.context)


@dataclass(frozen=True, slots=True)
class _Kubeconfig:
    """What one context of the merged kubeconfig files says."""

    endpoint: Endpoint
    authorization: str | None
    expiry: datetime | None
    token_file: Path | None
    is_renewable: bool


async def _from_kubeconfig(files: list[Path], context: str | None) -> tuple[Endpoint, Credentials]:
    async def load() -> _Kubeconfig:
        return await anyio.to_thread.run_sync(_load_kubeconfig, files, context, abandon_on_cancel=True)

    async def reload() -> tuple[str | None, datetime | None]:
        renewed = await load()
        return renewed.authorization, renewed.expiry

    loaded = await load()
    if loaded.token_file is not None:
        return loaded.endpoint, TokenFile(loaded.token_file)
    if loaded.is_renewable:
        return loaded.endpoint, RenewableCredentials(loaded.authorization, loaded.expiry, reload)
    return loaded.endpoint, FixedCredentials(loaded.authorization)


def _load_kubeconfig(files: list[Path], context: str | None) -> _Kubeconfig:
    paths = [file.expanduser() for file in files]
    names = os.pathsep.join(map(str, paths))
    if not any(path.is_file() for path in paths):
        raise ConfigurationError(
            f"no kubeconfig: {names} does not exist; name one with --kubeconfig or $KUBECONFIG, or start a cluster"
        )
    try:
        with _LOADER:
            return asyncio.run(_read_kubeconfig(names, context))
    except Exception as error:
        # The loader answers malformed files with whatever its dictionary look-ups raise.
        raise ConfigurationError(f"cannot use kubeconfig {names}: {_one_line(error)}") from error


async def _read_kubeconfig(names: str, context: str | None) -> _Kubeconfig:
    from kubernetes_asyncio.config import kube_config  # noqa: PLC0415 - slow

    merger = kube_config.KubeConfigMerger(names)
    if not isinstance(getattr(merger.config, "value", None), dict):
        raise ConfigurationError("it is not a YAML mapping")
    loader = kube_config.KubeConfigLoader(
        config_dict=merger.config, active_context=context, config_base_path=None, config_persister=merger.save_changes
    )
    chosen: dict[str, str] = (loader.current_context or {}).get("context") or {}
    user = _user(merger.config, chosen.get("user"))
    settings = _settings()
    try:
        await loader.load_and_set(settings)
        ssl_context = _ssl_context(settings) if settings.host.startswith("https://") else None
    finally:
        # The loader writes inline certificates and keys to temporary files, and would keep them until the exit.
        kube_config._cleanup_temp_files()  # noqa: SLF001
    if not settings.host:
        raise ConfigurationError("the cluster has no server")
    endpoint = Endpoint(
        server=settings.host,
        namespace=chosen.get("namespace") or "default",
        ssl_context=ssl_context,
        server_hostname=getattr(settings, "tls_server_name", None),
        proxy=_proxy(settings.host, getattr(settings, "proxy", None)),
    )
    return _Kubeconfig(
        endpoint=endpoint,
        authorization=settings.api_key.get("BearerToken"),
        expiry=getattr(loader, "exec_plugin_expiry", None),
        token_file=_token_file(user),
        is_renewable=any(key in user["user"] for key in ("exec", "auth-provider")),
    )


def _user(config: Any, name: str | None) -> Any:
    """The loader's node of a user; the loader itself stumbles over a context without one."""
    if not name:
        raise ConfigurationError("the context names no user")
    node = config["users"].get_with_name(name, safe=True) if config.safe_get("users") else None
    if node is None or node.safe_get("user") is None:
        raise ConfigurationError(f"there is no user {name!r}, whom the context names")
    return node


def _token_file(user: Any) -> Path | None:
    """Path of `tokenFile`, which outranks `token` (client authentication in the kubeconfig reference)."""
    name: str | None = user["user"].safe_get("tokenFile")
    if not name:
        return None
    return Path(user.path or "").absolute().parent / name


def _from_service_account() -> tuple[Endpoint, Credentials]:
    from kubernetes_asyncio.config import ConfigException  # noqa: PLC0415 - slow
    from kubernetes_asyncio.config.incluster_config import InClusterConfigLoader  # noqa: PLC0415 - slow

    token, ca = SERVICE_ACCOUNT / "token", SERVICE_ACCOUNT / "ca.crt"
    settings = _settings()
    try:
        InClusterConfigLoader(str(token), str(ca), try_refresh_token=False).load_and_set(settings)
        namespace = (SERVICE_ACCOUNT / "namespace").read_text().strip()
    except (ConfigException, OSError) as error:
        raise ConfigurationError(
            f"cannot use the pod's service account in {SERVICE_ACCOUNT}: {_one_line(error)}; "
            "check automountServiceAccountToken, or name a kubeconfig"
        ) from error
    return Endpoint(settings.host, namespace, _ssl_context(settings)), TokenFile(token)


def _settings() -> Any:
    """What the loaders fill in, in place of the library's Configuration, whose constructor changes global logging."""
    return SimpleNamespace(api_key={}, host="", ssl_ca_cert=None, cert_file=None, key_file=None, verify_ssl=True)


def _ssl_context(settings: Any) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=settings.ssl_ca_cert)
    # Python 3.13 checks extensions that the CAs of many clusters lack.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if settings.cert_file:
        context.load_cert_chain(settings.cert_file, settings.key_file)
    if not settings.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _proxy(server: str, configured: str | None) -> str | None:
    """`proxy-url` of the cluster, else $HTTPS_PROXY and $NO_PROXY, which as in Go never apply to this machine."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    proxy = configured
    if proxy is None and host not in {"localhost", "127.0.0.1", "::1"} and not proxy_bypass(host):
        proxy = getproxies().get(parts.scheme)
    if proxy and not proxy.startswith(("http://", "https://")):
        raise ConfigurationError(f"proxy {proxy} for {server} is not supported: use an http:// or https:// proxy")
    return proxy


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
