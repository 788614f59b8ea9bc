"""`trainer exec`: a command in a container of a TrainJob."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

import typer

from trainer.cli.console import note
from trainer.cli.containers.place import Container, Node, refusals_explained, running_container
from trainer.cli.containers.streams import attach_streams
from trainer.cli.containers.terminal import Terminal
from trainer.cli.current_cluster import ConnectedCluster, current_cluster, run_on
from trainer.cli.jobs.find import JobName, find_train_job
from trainer.cli.logs.choice import LogChoice
from trainer.cli.options import Context, Kubeconfig, Namespace
from trainer.kube.remote_command import CommandOptions


def exec(  # noqa: A001 - the command of this name
    name: JobName,
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND", help="The program and its arguments.", show_default=False)
    ],
    *,
    node: Node = "",
    container: Container = "",
    stdin: Annotated[bool, typer.Option("--stdin", "-i", help="Pass standard input to the command.")] = False,
    tty: Annotated[bool, typer.Option("--tty", "-t", help="Give the command this terminal: -it -- bash.")] = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Run a command in a container of a TrainJob that runs: on its first node, or on another one.

    The command stands after --, as in: trainer exec NAME -it -- bash. With -t all keys go to it, Ctrl-C included.

    Exit code: that of the command; 1 when it cannot run, 2 for wrong options.
    """
    terminal = Terminal.of_input() if tty else None
    if tty and terminal is None:
        note("--tty is left out: standard input is no terminal")

    async def run(cluster: ConnectedCluster) -> int:
        job = await find_train_job(cluster.client, name, namespace or cluster.namespace)
        place = await running_container(cluster.client, job, LogChoice(node, container=container))
        options = CommandOptions(tuple(command), place.container, stdin=stdin, tty=terminal is not None)
        with refusals_explained(place):
            async with cluster.commands.execute(place.pod, place.namespace, options) as remote:
                with ExitStack() as stack:
                    if terminal is not None and stdin:
                        stack.enter_context(terminal.raw())
                    return await attach_streams(remote, with_input=stdin, terminal=terminal)

    raise typer.Exit(run_on(current_cluster(kubeconfig, context), run))
