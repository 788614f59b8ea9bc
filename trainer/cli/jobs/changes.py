"""`trainer delete`, `suspend` and `resume`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.completion import train_job_names
from trainer.cli.console import note, say
from trainer.cli.current_cluster import ConnectedCluster, current_cluster, run_on
from trainer.cli.errors import CommandError
from trainer.cli.jobs.find import find_train_job, reference
from trainer.cli.jobs.state import JobState
from trainer.cli.manifests import FIELD_MANAGER
from trainer.cli.options import Context, Kubeconfig, Namespace
from trainer.explain.decision import set_suspend
from trainer.kube.client import Client, DeleteOptions, Propagation
from trainer.kube.objects import Object, name_of, namespace_of, uid_of

JobNames = Annotated[
    list[str],
    typer.Argument(metavar="NAME...", help="Names of TrainJobs.", show_default=False, autocompletion=train_job_names),
]


def delete(
    names: JobNames, *, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None
) -> None:
    """Delete TrainJobs with their pods and everything else that was created for them.

    The command does not wait until the pods are gone. Nothing is deleted if a name is wrong.

    Exit code: 0; 1 when there is no such TrainJob.
    """
    _change(names, namespace, kubeconfig, context, _delete)


def suspend(
    names: JobNames, *, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None
) -> None:
    """Suspend TrainJobs: their pods are deleted, and start from the beginning when they are resumed.

    A training continues where it was if it reads its own checkpoints from a volume or object storage. Where Kueue
    decides whether it runs, its Workload is deactivated, which gives its quota back.

    Exit code: 0; 1 when there is no such TrainJob, or it has ended.
    """
    _change(names, namespace, kubeconfig, context, partial(_set_suspend, suspend=True))


def resume(
    names: JobNames, *, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None
) -> None:
    """Resume TrainJobs that are suspended; those of a queue of Kueue wait in it until they are admitted.

    Exit code: 0; 1 when there is no such TrainJob, or it has ended.
    """
    _change(names, namespace, kubeconfig, context, partial(_set_suspend, suspend=False))


def _change(
    names: Sequence[str],
    namespace: str | None,
    kubeconfig: Path | None,
    context: str | None,
    change: Callable[[Client, Sequence[Object]], Awaitable[None]],
) -> None:
    async def run(cluster: ConnectedCluster) -> None:
        client, where = cluster.client, namespace or cluster.namespace
        await change(client, [await find_train_job(client, name, where) for name in dict.fromkeys(names)])

    raise typer.Exit(run_on(current_cluster(kubeconfig, context), run))


async def _delete(client: Client, jobs: Sequence[Object]) -> None:
    """Delete these TrainJobs by uid, not new ones of the same names."""
    for job in jobs:
        options = DeleteOptions(propagation=Propagation.BACKGROUND, uid=uid_of(job))
        await client.delete(TRAIN_JOBS, name_of(job), namespace_of(job), options)
        say(f"{reference(job)} deleted")


async def _set_suspend(client: Client, jobs: Sequence[Object], *, suspend: bool) -> None:
    for job in jobs:
        if (state := JobState.of(job)).is_terminal:
            verb = "suspended" if suspend else "resumed"
            raise CommandError(f"TrainJob {name_of(job)} cannot be {verb}: it has ended, and is {state.word}")
    for job in jobs:
        decision = await set_suspend(client, job, suspend=suspend, field_manager=FIELD_MANAGER)
        if not decision.is_changed:
            note(decision.remark)
            continue
        remark = f": {decision.remark}" if decision.remark else ""
        say(f"{reference(job)} {'suspended' if suspend else 'resumed'}{remark}")
