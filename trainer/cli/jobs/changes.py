"""`trainer delete`, `suspend` and `resume`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from trainer.api.trainjob import TRAIN_JOBS
from trainer.api.trainjob_status import ConditionReason, ConditionType
from trainer.cli.completion import train_job_names
from trainer.cli.console import note, say
from trainer.cli.current_cluster import ConnectedCluster, current_cluster, run_on
from trainer.cli.errors import CommandError
from trainer.cli.jobs.find import find_train_job, reference
from trainer.cli.jobs.state import JobState
from trainer.cli.manifests import FIELD_MANAGER
from trainer.cli.options import Context, Kubeconfig, Namespace  # noqa: TC001 - typer reads annotations
from trainer.kube.client import DeleteOptions, Propagation
from trainer.kube.objects import find_condition, name_of, namespace_of, uid_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from trainer.kube.client import Client
    from trainer.kube.objects import Object

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

    A training continues where it was if it reads its own checkpoints from a volume or object storage.

    Exit code: 0; 1 when there is no such TrainJob, or it has ended.
    """
    _change(names, namespace, kubeconfig, context, partial(_set_suspend, suspend=True))


def resume(
    names: JobNames, *, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None
) -> None:
    """Resume TrainJobs that are suspended.

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

    raise typer.Exit(run_on(current_cluster(kubeconfig, context), run, log_level="warning"))


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
        if bool((job.get("spec") or {}).get("suspend")) == suspend:
            note(_nothing_to_do(job, suspend=suspend))
            continue
        # The uid keeps a new TrainJob of the same name as it is.
        patch = {"metadata": {"uid": uid_of(job)}, "spec": {"suspend": suspend}}
        await client.patch(TRAIN_JOBS, name_of(job), patch, namespace_of(job), field_manager=FIELD_MANAGER)
        say(f"{reference(job)} {'suspended' if suspend else 'resumed'}")


def _nothing_to_do(job: Object, *, suspend: bool) -> str:
    """That a TrainJob has this state already, and what to do if its JobSet has another."""
    message = f"TrainJob {name_of(job)} is {'suspended already' if suspend else 'not suspended'}"
    suspended = find_condition(job, ConditionType.SUSPENDED) or {}
    if suspend and suspended.get("status") == "False":
        return f"{message}, but somebody else has resumed its Jobs: resume and suspend it to stop them"
    pending = find_condition(job, ConditionType.PENDING) or {}
    if not suspend and pending.get("status") == "True" and pending.get("reason") == ConditionReason.JOB_SET_SUSPENDED:
        return f"{message}, but its JobSet is: resume the JobSet, or suspend and resume the TrainJob"
    return message
