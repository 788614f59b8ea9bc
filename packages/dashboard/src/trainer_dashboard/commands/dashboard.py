"""`trainer dashboard`: the page that shows TrainJobs."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Final

import anyio
import anyio.to_thread
import typer

from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.cli.console import say
from trainer.cli.current_cluster import ConnectedCluster, current_cluster, run_on
from trainer.cli.options import Context, Kubeconfig, cluster_options
from trainer.cli.processes.state_directory import existing_clusters
from trainer.explain.target import CommandOptions
from trainer.kube.clock import SystemClock
from trainer.kube.errors import ConfigurationError
from trainer.kube.memory import limit_memory
from trainer.kube.rest.connection import ConnectionOptions, contexts_of
from trainer_dashboard.access.authenticator import LoopbackAuthenticator
from trainer_dashboard.commands.history_database import DatabaseUrl, database_of
from trainer_dashboard.commands.redirect_file import RedirectFile
from trainer_dashboard.past.past_trainings import PastTrainings
from trainer_dashboard.past.recording import Recording
from trainer_dashboard.server import Dashboard, DashboardOptions, OtherCluster

_OTHERS: Final = 30
"""Most other clusters that the page names."""


def dashboard(
    *,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on loopback; 0 takes a free one.")] = 0,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Only TrainJobs of this namespace; default: of all.")
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Record the history meanwhile, as trainer history record does.")
    ] = False,
    database: DatabaseUrl = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show TrainJobs on a web page, with the rights of the kubeconfig, until interrupted.

    The page is served on this machine alone. Its address contains a token; who has it may do what you may, as long as
    the command runs. Without --namespace the page shows all namespaces, or that of the context where you may not list
    all of them. Of trainings that are gone it shows what a recorder has kept in the history.
    """
    limit_memory()
    opened = database_of(database)
    connection = current_cluster(kubeconfig, context)
    # The page may be open for longer than its context is the current one.
    named = context or (connection.context if len(existing_clusters()) > 1 else None)
    target = CommandOptions(cluster_options(connection.kubeconfig, named), cluster_options(kubeconfig, named))

    with RedirectFile() if browser else nullcontext() as redirect:

        async def run(cluster: ConnectedCluster) -> None:
            others = await anyio.to_thread.run_sync(_others, connection, kubeconfig)
            options = DashboardOptions(
                namespace or "", cluster.namespace, cluster.server, cluster.context, port, target=target, others=others
            )
            authenticator = LoopbackAuthenticator(
                cluster.client, on_exchange=redirect.remove if redirect is not None else None
            )
            past = PastTrainings(opened, cluster.client, cluster.server)
            sweeps = cluster.served.resource(OPTIMIZATION_JOBS)
            recording = Recording(cluster.client, opened, cluster.server, SystemClock(), sweeps) if record else None
            page = Dashboard(
                cluster.client,
                cluster.served,
                options,
                authenticator=authenticator,
                past=past,
                recording=recording,
            )

            async def announce() -> None:
                say(f"dashboard: {page.address}#token={authenticator.token}")
                if redirect is not None:
                    redirect.open_in_browser(f"{page.address}#code={authenticator.code}")

            await page.run(started=announce)

        raise typer.Exit(run_on(connection, run, log_level="warning" if record else "error"))


def _others(connection: ConnectionOptions, kubeconfig: Path | None) -> list[OtherCluster]:
    """The other contexts of the kubeconfig, each with the command that opens its page."""
    try:
        known = contexts_of(connection)
    except ConfigurationError:
        # The file has gone since it was used: the page does without them.
        return []
    shown = connection.context or known.current
    return [
        OtherCluster(name, f"trainer dashboard{cluster_options(kubeconfig, name)}")
        for name in known.names
        if name != shown
    ][:_OTHERS]


app = typer.Typer(add_completion=False)
app.command("dashboard")(dashboard)
