"""`trainer delete`, `suspend` and `resume`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from trainer.api.trainjob import TRAIN_JOBS
from trainer.api.trainjob_status import State
from trainer.cli.completion import train_job_names
from trainer.cli.console import complain, note, say
from trainer.cli.current_cluster import ConnectedCluster, current_cluster, run_on
from trainer.cli.errors import CommandError, ExitCode
from trainer.cli.jobs.find import find_train_job, reference
from trainer.cli.jobs.kept_checkpoints import KeptCheckpoints
from trainer.cli.jobs.state import JobState
from trainer.cli.manifests import FIELD_MANAGER
from trainer.cli.options import Context, Kubeconfig, Namespace
from trainer.explain.decision import set_suspend
from trainer.kube.client import Client, DeleteOptions, Propagation
from trainer.kube.clock import SystemClock
from trainer.kube.errors import ApiError
from trainer.kube.objects import Object, name_of, namespace_of, uid_of

JobNames = Annotated[
    list[str],
    typer.Argument(metavar="NAME...", help="Names of TrainJobs.", show_default=False, autocompletion=train_job_names),
]


def delete(
    names: JobNames,
    *,
    checkpoints: Annotated[
        bool,
        typer.Option(
            "--checkpoints",
            help="Remove what they keep in a claim as well, by a Job; only of those whose pods are gone.",
        ),
    ] = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Delete TrainJobs with their pods and everything else that was created for them.

    Checkpoints in a claim are kept, and the command says where they are. The command does not wait until the pods are
    gone. A name that is wrong keeps no other from being deleted.

    Exit code: 0; 1 when there is no such TrainJob, or its checkpoints cannot be removed: then it is kept.
    """
    _change(names, namespace, kubeconfig, context, partial(_delete, checkpoints=checkpoints))


def suspend(
    names: JobNames, *, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None
) -> None:
    """Suspend TrainJobs: their pods are deleted, and start from the beginning when they are resumed.

    A training continues where it was if it reads its own checkpoints, such as those of `trainer run --checkpoints`, or
    from a volume or object storage of its own. Where Kueue decides whether it runs, its Workload is deactivated, which
    gives its quota back.

    Exit code: 0; 1 when there is no such TrainJob, or it has ended; the others are changed.
    """
    _change(names, namespace, kubeconfig, context, partial(_set_suspend, suspend=True))


def resume(
    names: JobNames, *, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None
) -> None:
    """Resume TrainJobs that are suspended; those of a queue of Kueue wait in it until they are admitted.

    Exit code: 0; 1 when there is no such TrainJob, or it has ended; the others are changed.
    """
    _change(names, namespace, kubeconfig, context, partial(_set_suspend, suspend=False))


def _change(
    names: Sequence[str],
    namespace: str | None,
    kubeconfig: Path | None,
    context: str | None,
    change: Callable[[Client, Object], Awaitable[None]],
) -> None:
    """Change one TrainJob after the other, and say at the end that some could not be changed by the exit code."""

    async def run(cluster: ConnectedCluster) -> ExitCode:
        client, where = cluster.client, namespace or cluster.namespace
        code = ExitCode.OK
        for name in dict.fromkeys(names):
            try:
                await change(client, await find_train_job(client, name, where))
            except (CommandError, ApiError) as error:
                complain(str(error))
                code = ExitCode.FAILED
        return code

    raise typer.Exit(run_on(current_cluster(kubeconfig, context), run))


async def _delete(client: Client, job: Object, *, checkpoints: bool) -> None:
    """Delete this TrainJob by uid, not a new one of the same name."""
    kept, is_there = None, False
    try:
        kept = await KeptCheckpoints.of(client, job)
        is_there = kept is not None and await kept.has_claim(client)
    except ApiError:
        if checkpoints:
            raise
        # Nothing is known that could be said.
    if checkpoints and kept is not None and is_there:
        await kept.remove(client, SystemClock())
    options = DeleteOptions(propagation=Propagation.BACKGROUND, uid=uid_of(job))
    await client.delete(TRAIN_JOBS, name_of(job), namespace_of(job), options)
    say(f"{reference(job)} deleted")
    if kept is not None and is_there and not checkpoints:
        note(f"its checkpoints are kept in {kept.place}")
    elif checkpoints and not is_there:
        reason = "it has no directory in a claim" if kept is None else f"claim {kept.directory.name} is gone"
        note(f"no checkpoints of TrainJob {name_of(job)} were removed: {reason}")


async def _set_suspend(client: Client, job: Object, *, suspend: bool) -> None:
    verb = "suspended" if suspend else "resumed"
    if (state := JobState.of(job)).is_terminal:
        raise CommandError(f"TrainJob {name_of(job)} cannot be {verb}: it has ended, and is {state.word}")
    decision = await set_suspend(client, job, suspend=suspend, field_manager=FIELD_MANAGER)
    if not decision.is_changed:
        note(decision.remark)
        return
    say(f"{reference(job)} {verb}" + (f": {decision.remark}" if decision.remark else ""))
    checkpoint = state.progress.checkpoint
    if suspend and checkpoint is not None and checkpoint.steps_since:
        note(checkpoint.sentence(State.STOPPING, SystemClock().now()))
