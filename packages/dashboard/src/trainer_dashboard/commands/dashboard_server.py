"""`trainer dashboard-server`: the page for all users of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import anyio
import anyio.lowlevel
import typer

from trainer.cli.errors import BadInputError, ExitCode
from trainer.cli.options import Context, Kubeconfig
from trainer.kube.logs.logs import configure_logging
from trainer.kube.manager.signals import run_until_signal
from trainer.kube.memory import limit_memory
from trainer.kube.rest.connection import ConnectionOptions, connect
from trainer_dashboard.access.cluster_authenticator import GROUP_HEADER, USER_HEADER, Proxy
from trainer_dashboard.cluster_server import ClusterServer, ClusterServerOptions
from trainer_dashboard.commands.history_database import VARIABLE, ServedDatabaseUrl, database_of

_PROXY = "Authenticating proxy"
_SHORTEST_SECRET = 32


def dashboard_server(
    *,
    host: Annotated[str, typer.Option(help="Address to listen on; all of them by default.")] = "",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; 0 takes a free one.")] = 8443,
    health_port: Annotated[int, typer.Option(min=0, max=65535, help="Port of /healthz and /readyz.")] = 8081,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Only TrainJobs of this namespace; default: of all.")
    ] = None,
    cluster_name: Annotated[str, typer.Option(help="What the page calls the cluster.")] = "",
    tls_directory: Annotated[
        Path | None, typer.Option(help="Directory with tls.crt and tls.key; default: self-signed ones.")
    ] = None,
    plain_http: Annotated[
        bool, typer.Option("--plain-http", help="No TLS: what is in front of it on the same machine has it.")
    ] = False,
    proxy_client_ca: Annotated[
        Path | None,
        typer.Option(
            help="Authorities of the client certificate that everybody must show; the proxy is known by it.",
            rich_help_panel=_PROXY,
        ),
    ] = None,
    proxy_name: Annotated[
        list[str] | None,
        typer.Option(help="Common name of this certificate; may be repeated. Default: any.", rich_help_panel=_PROXY),
    ] = None,
    proxy_secret_file: Annotated[
        Path | None,
        typer.Option(help="File with the secret that the proxy sends in X-Remote-Secret.", rich_help_panel=_PROXY),
    ] = None,
    proxy_user_header: Annotated[
        str, typer.Option(help="Header with the name of the user.", rich_help_panel=_PROXY)
    ] = USER_HEADER,
    proxy_group_header: Annotated[
        str, typer.Option(help="Header with a group of the user; may come several times.", rich_help_panel=_PROXY)
    ] = GROUP_HEADER,
    proxy_group_separator: Annotated[
        str, typer.Option(help="What stands between groups in one header.", rich_help_panel=_PROXY)
    ] = "",
    record: Annotated[
        bool, typer.Option("--record", help="Record the history meanwhile, as trainer history record does.")
    ] = False,
    database: ServedDatabaseUrl = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Serve the dashboard for all users of a cluster, who see what they themselves may see.

    Users log in with a bearer token of the cluster, or behind a proxy that proves itself by a client certificate or a
    secret. Without --kubeconfig and $KUBECONFIG it uses the service account of its pod.
    """
    for option, path in (("--proxy-client-ca", proxy_client_ca), ("--proxy-secret-file", proxy_secret_file)):
        if path is not None and not path.is_file():
            raise BadInputError(f"{option}: there is no file {path}")
    if plain_http and (tls_directory or proxy_client_ca):
        raise BadInputError("--plain-http: without TLS there is no use for --tls-directory and --proxy-client-ca")
    if proxy_name and proxy_client_ca is None:
        raise BadInputError("--proxy-name: it needs --proxy-client-ca, which verifies the certificate with the name")
    if record and database is None:
        raise BadInputError(f"--record: it needs --database or ${VARIABLE}, where the history is written")
    opened = database_of(database) if database is not None else None
    secret = _secret(proxy_secret_file)
    proxy = Proxy(
        has_certificate=proxy_client_ca is not None,
        names=frozenset(proxy_name or ()),
        secret=secret,
        user_header=proxy_user_header,
        group_header=proxy_group_header,
        group_separator=proxy_group_separator,
    )
    options = ClusterServerOptions(
        host,
        port,
        health_port,
        namespace or "",
        cluster_name,
        is_secure=not plain_http,
        tls_directory=tls_directory,
        client_ca=proxy_client_ca,
        proxy=proxy if proxy.has_certificate or secret else None,
    )
    limit_memory()
    configure_logging(json=True, level="info")

    async def run() -> int:
        async with connect(ConnectionOptions(kubeconfig=kubeconfig, context=context)) as client:
            server = ClusterServer(client, options, database=opened, records=record)
            await server.run(started=anyio.lowlevel.checkpoint)
        return ExitCode.OK

    code = run_until_signal(run, second_kills=True)
    # A signal is the normal end of a server.
    raise typer.Exit(ExitCode.OK if code > 128 else code)


def _secret(file: Path | None) -> str:
    """The secret of the proxy, without the end of its line; short ones could be guessed."""
    if file is None:
        return ""
    try:
        secret = file.read_text(encoding="ascii").strip()
    except UnicodeDecodeError:
        secret = ""
    if len(secret) < _SHORTEST_SECRET or not secret.isprintable():
        raise BadInputError(
            f"--proxy-secret-file: {file} must hold {_SHORTEST_SECRET} printable ASCII characters or more, such as "
            "those of: openssl rand -hex 32"
        )
    return secret


app = typer.Typer(add_completion=False)
app.command("dashboard-server")(dashboard_server)
