"""`trainer delete`, `suspend` and `resume`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from trainer.api.trainjob import TRAIN_JOBS
from trainer.api.trainjob_status import State
from trainer.cli.completion import object_names
from trainer.cli.console import complain, note, say
from trainer.cli.current_cluster import ConnectedCluster, current_cluster, run_on
from trainer.cli.errors import BadInputError, CommandError, ExitCode, GoneError
from trainer.cli.jobs.find import find_train_job, reference
from trainer.cli.jobs.kept_checkpoints import KeptCheckpoints
from trainer.cli.jobs.state import JobState
from trainer.cli.kinds import Kind, Named, kind_with, named
from trainer.cli.manifests import FIELD_MANAGER
from trainer.cli.options import Context, Kubeconfig, Namespace
from trainer.explain.decision import set_suspend
from trainer.kube.client import Client, DeleteOptions, Propagation
from trainer.kube.clock import SystemClock
from trainer.kube.errors import ApiError
from trainer.kube.objects import Object, name_of, namespace_of, uid_of

JobNames = Annotated[
    list[str],
    typer.Argument(
        metavar="[KIND] NAME...",
        help="Names of TrainJobs; or a kind such as sweep, and names of it.",
        show_default=False,
        autocompletion=object_names,
    ),
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

    `trainer delete sweep NAME`, or sweep/NAME, deletes a sweep with its trials.

    Checkpoints in a claim are kept, and the command says where they are. The command does not wait until the pods are
    gone. A name that is wrong keeps no other from being deleted.

    Exit code: 0; 1 when there is no such TrainJob, or its checkpoints cannot be removed: then it is kept.
    """
    objects = _named(names)
    if checkpoints and (others := [each.name for each in objects if each.kind is not None]):
        raise BadInputError(f"--checkpoints: is for TrainJobs, and not for {', '.join(others)}")

    async def further(cluster: ConnectedCluster, kind: Kind, name: str, where: str) -> str:
        return await kind.delete(cluster, name, where)

    of_job = partial(_delete, checkpoints=checkpoints)
    _change(objects, namespace, kubeconfig, context, _Change(of_job, further))


def suspend(
    names: JobNames, *, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None
) -> None:
    """Suspend TrainJobs: their pods are deleted, and start from the beginning when they are resumed.

    A training continues where it was if it reads its own checkpoints, such as those of `trainer run --checkpoints`, or
    from a volume or object storage of its own. Where Kueue decides whether it runs, its Workload is deactivated, which
    gives its quota back.

    Exit code: 0; 1 when there is no such TrainJob, or it has ended; the others are changed.
    """
    _change(_named(names), namespace, kubeconfig, context, _suspending(suspend=True))


def resume(
    names: JobNames, *, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None
) -> None:
    """Resume TrainJobs that are suspended; those of a queue of Kueue wait in it until they are admitted.

    Exit code: 0; 1 when there is no such TrainJob, or it has ended; the others are changed.
    """
    _change(_named(names), namespace, kubeconfig, context, _suspending(suspend=False))


@dataclass(frozen=True, slots=True)
class _Change:
    """One of the changes."""

    of_job: Callable[[Client, Object], Awaitable[None]]
    """Changes a TrainJob, and says so."""
    of_kind: Callable[[ConnectedCluster, Kind, str, str], Awaitable[str]]
    """Changes an object of another kind by name and namespace, and returns what was done."""

    async def make(self, cluster: ConnectedCluster, each: Named, namespace: str) -> None:
        """Change an object."""
        if each.kind is not None:
            say(await self.of_kind(cluster, each.kind, each.name, namespace))
            return
        try:
            job = await find_train_job(cluster.client, each.name, namespace)
        except GoneError as error:
            if (kind := await kind_with(cluster, each.name, namespace)) is None:
                raise
            raise GoneError(f"{error}; there is {kind.words[0]}/{each.name}") from None
        await self.of_job(cluster.client, job)


def _suspending(*, suspend: bool) -> _Change:
    async def further(cluster: ConnectedCluster, kind: Kind, name: str, where: str) -> str:
        return await kind.set_suspend(cluster, name, where, suspend=suspend)

    return _Change(partial(_set_suspend, suspend=suspend), further)


def _named(names: Sequence[str]) -> list[Named]:
    objects = named(names)
    if not objects:
        raise BadInputError(f"{names[0]}: the name is missing: write {names[0]} NAME")
    return objects


def _change(
    objects: Sequence[Named], namespace: str | None, kubeconfig: Path | None, context: str | None, change: _Change
) -> None:
    """Change one object after the other, and say at the end that some could not be changed by the exit code."""

    async def run(cluster: ConnectedCluster) -> ExitCode:
        code = ExitCode.OK
        for each in objects:
            try:
                await change.make(cluster, each, namespace or cluster.namespace)
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
