"""`trainer dashboard`: the page that shows TrainJobs."""

from __future__ import annotations

import threading
import webbrowser
from typing import TYPE_CHECKING, Annotated

import typer

from trainer.cli.console import note, say
from trainer.cli.current_cluster import ConnectedCluster, current_cluster, run_on
from trainer.cli.operate.built_objects import build_objects
from trainer.cli.options import Context, Kubeconfig, cluster_options
from trainer.dashboard.gate import LoopbackGate
from trainer.dashboard.server import Dashboard, DashboardOptions
from trainer.explain.target import CommandOptions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


def dashboard(
    *,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on loopback; 0 takes a free one.")] = 0,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Only TrainJobs of this namespace; default: of all.")
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show TrainJobs on a web page, with the rights of the kubeconfig, until interrupted.

    The page is served on this machine alone. Its address contains a token; who has it may do what you may, as long as
    the command runs. Without --namespace the page shows all namespaces, or that of the context where you may not list
    all of them.
    """
    connection = current_cluster(kubeconfig, context)
    target = CommandOptions(cluster_options(connection.kubeconfig, context), cluster_options(kubeconfig, context))

    async def run(cluster: ConnectedCluster) -> None:
        options = DashboardOptions(namespace or "", cluster.namespace, cluster.server, port, target=target)
        gate = LoopbackGate(cluster.client)
        page = Dashboard(cluster.client, cluster.served, options, gate=gate, renderer=build_objects)
        await page.run(started=_announcement(page, gate, with_browser=browser))

    raise typer.Exit(run_on(connection, run))


def _announcement(page: Dashboard, gate: LoopbackGate, *, with_browser: bool) -> Callable[[], Awaitable[None]]:
    async def announce() -> None:
        say(f"dashboard: {page.address}#token={gate.token}")
        # Command lines can be read by every account of this machine: this address works once.
        opened = f"{page.address}#code={gate.code}"
        if with_browser:
            # Browsers of the terminal run until they are closed, and nothing waits for a daemon at the end.
            threading.Thread(target=_open, args=(opened,), name="browser", daemon=True).start()

    return announce


def _open(address: str) -> None:
    try:
        is_open = webbrowser.open(address)
    except webbrowser.Error:
        is_open = False
    if not is_open:
        note("no browser could be opened: open the address yourself")
