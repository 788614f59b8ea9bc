"""`trainer run`: submit TrainJobs to the current cluster and follow them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from trainer.cli.console import output, say
from trainer.cli.current_cluster import ConnectedCluster, Context, Kubeconfig, Namespace, current_cluster, run_on
from trainer.cli.documents import check_version, read_documents
from trainer.cli.errors import ExitCode
from trainer.cli.run.display import JobDisplay
from trainer.cli.run.follow import follow_jobs
from trainer.cli.run.submit import submit
from trainer.kube.clock import SystemClock, move_on_after
from trainer.kube.objects import key_of, name_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer.cli.run.follow import JobOutcome
    from trainer.kube.client import Client
    from trainer.kube.clock import Clock
    from trainer.kube.objects import Object, ObjectKey


async def follow_on_screen(client: Client, jobs: list[Object], clock: Clock) -> Mapping[ObjectKey, JobOutcome]:
    """Follow the jobs to their end on standard output."""
    with JobDisplay(output(), [key_of(job) for job in jobs], clock) as display:
        return await follow_jobs(client, jobs, display, clock)


def exit_code(outcomes: Mapping[ObjectKey, JobOutcome]) -> ExitCode:
    """OK when all jobs are complete."""
    return ExitCode.OK if all(outcome.is_complete for outcome in outcomes.values()) else ExitCode.FAILED


def run(
    *,
    file: Annotated[
        str, typer.Option("--file", "-f", help="YAML file with TrainJobs and what they need; - is standard input.")
    ],
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", help="Whether to keep running until the TrainJobs end.")
    ] = True,
    timeout: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="Stop following after this time, with exit code 124.")
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: Namespace = None,
) -> None:
    """Submit TrainJobs and follow them: logs of all nodes, state, warnings, and how they end.

    The cluster is that of --kubeconfig, $KUBECONFIG, `trainer up` or ~/.kube/config, in this order.

    Exit code: 0 when all jobs are Complete, 1 when one Failed, 2 for bad input, 124 for a timeout.
    """
    documents = read_documents(file)
    options = current_cluster(kubeconfig, context)
    submitted: list[Object] = []

    async def submit_and_follow(cluster: ConnectedCluster) -> int:
        client, clock = cluster.client, SystemClock()
        check_version(documents, cluster.served.version)
        submitted.extend(await submit(client, documents, namespace=namespace, default_namespace=cluster.namespace))
        if not follow:
            return ExitCode.OK
        outcomes: Mapping[ObjectKey, JobOutcome] = {}
        async with move_on_after(clock, timeout) as scope:
            outcomes = await follow_on_screen(client, submitted, clock)
        return ExitCode.TIMEOUT if scope.cancelled_caught else exit_code(outcomes)

    code = run_on(options, submit_and_follow, log_level="warning")
    if submitted and code >= ExitCode.TIMEOUT:
        names = ", ".join(map(name_of, submitted))
        reason = f"not finished after {timeout:g} s" if code == ExitCode.TIMEOUT else "interrupted"
        say(f"{reason}: the cluster continues to run {names} (see: trainer get)")
    raise typer.Exit(code)
