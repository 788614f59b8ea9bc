"""`trainer sweeps`: all sweeps of a namespace, or of all."""

from __future__ import annotations

from typing import Annotated

import typer

from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.cli.commands import Panel
from trainer.cli.console import GetFormat, output
from trainer.cli.current_cluster import ConnectedCluster, current_cluster, run_on
from trainer.cli.errors import BadInputError
from trainer.cli.kinds import Asked
from trainer.cli.options import Context, Kubeconfig, Namespace
from trainer.kube.clock import SystemClock
from trainer_sweeps.commands.show import Show


def sweeps(
    *,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Keep running and show changes.")] = False,
    namespace: Namespace = None,
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="Show the sweeps of all namespaces.")
    ] = False,
    form: Annotated[GetFormat, typer.Option("--output", "-o", help="Output format.")] = GetFormat.TABLE,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """List sweeps: state, progress, the best value so far, and trials by state.

    Those that run come first, then the newest.

    trainer get sweep NAME shows one with its trials, parameters and conditions; trainer explain sweep NAME says why one
    does not get on.
    """
    if all_namespaces and namespace:
        raise BadInputError("--all-namespaces cannot be combined with --namespace")

    async def show(cluster: ConnectedCluster) -> int:
        where = None if all_namespaces else namespace or cluster.namespace
        resource = cluster.served.resource(OPTIMIZATION_JOBS)
        return await Show(cluster, resource, Asked(None, where, form, is_watch=watch), output(), SystemClock()).run()

    raise typer.Exit(run_on(current_cluster(kubeconfig, context), show))


app = typer.Typer(rich_help_panel=Panel.LOOK, add_completion=False)
app.command("sweeps")(sweeps)
