"""`trainer attach`: what `trainer run` shows, of a TrainJob that exists."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated

import typer

from trainer.cli.current_cluster import ConnectedCluster, current_cluster
from trainer.cli.jobs.find import JobName, find_train_job
from trainer.cli.logs.follower import WHOLE
from trainer.cli.logs.logs import parse_duration
from trainer.cli.options import Context, Kubeconfig, Namespace, cluster_options
from trainer.cli.run.follow import JobOutcome
from trainer.cli.run.options import Timeout
from trainer.cli.run.run import follow_on_screen, submit_and_follow
from trainer.kube.client import Client
from trainer.kube.clock import Clock, SystemClock, parse_timestamp
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.podlogs.container_log import ContainerLogOptions
from trainer.kube.podlogs.instant import Instant
from trainer.view.row import TrainJobRow


def attach(
    name: JobName,
    *,
    since: Annotated[
        str | None, typer.Option(metavar="10m", help="Only lines of logs that are not older than this.")
    ] = None,
    timeout: Timeout = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Follow a TrainJob that exists, as `trainer run` does: logs, state, warnings, and how it ends.

    The logs of its nodes are shown from their beginning. Ctrl-C detaches: the training goes on.

    Exit code: that of `trainer run`: 0 when the TrainJob is Complete, 1 when it Failed or there is none, 124 for a
    timeout.
    """
    age = None if since is None else parse_duration(since)

    async def find(cluster: ConnectedCluster) -> list[Object]:
        return [await find_train_job(cluster.client, name, namespace or cluster.namespace)]

    begin = Instant.of(SystemClock().now() - age) if age is not None else None
    options = WHOLE if begin is None else ContainerLogOptions(since=begin)
    connection = current_cluster(kubeconfig, context)
    target = cluster_options(kubeconfig, context)
    follow = partial(_follow, options, target)
    raise typer.Exit(submit_and_follow(connection, find, follow, timeout, target))


async def _follow(
    options: ContainerLogOptions, target: str, client: Client, jobs: list[Object], clock: Clock
) -> Mapping[ObjectKey, JobOutcome]:
    """Follow a TrainJob; the time that it takes counts from its creation."""
    row = TrainJobRow.of(jobs[0])
    until = parse_timestamp(row.ended) if row.ended else clock.now()
    elapsed = (until - parse_timestamp(row.created)).total_seconds() if row.created else 0
    return await follow_on_screen(client, jobs, clock, elapsed=max(elapsed, 0), options=options, target=target)
