"""`trainer scale`: another number of nodes."""

from __future__ import annotations

from typing import Annotated

import typer

from trainer.api.trainjob import TRAIN_JOBS
from trainer.api.trainjob_status import ConditionType
from trainer.cli.console import note, say
from trainer.cli.current_cluster import ConnectedCluster, current_cluster, run_on
from trainer.cli.errors import CommandError
from trainer.cli.jobs.find import JobName, find_train_job, reference
from trainer.cli.jobs.state import JobState
from trainer.cli.manifests import FIELD_MANAGER
from trainer.cli.options import Context, Kubeconfig, Namespace
from trainer.kube.client import Client
from trainer.kube.clock import Clock, SystemClock, move_on_after
from trainer.kube.errors import ApiError, KubeError
from trainer.kube.objects import Object, controller_of, find_condition, mapping_at, name_of, namespace_of, uid_of
from trainer.kube.resource import HORIZONTAL_POD_AUTOSCALERS
from trainer.plugins.jobset.revision import ELASTIC_JOBSETS
from trainer.view.row import TrainJobRow

_PATIENCE, _PAUSE = 3.0, 0.25
"""Seconds for JobSet to refuse another number of nodes, and between two looks."""


def scale(
    name: JobName,
    nodes: Annotated[int, typer.Argument(metavar="NODES", help="Number of nodes.", min=1, show_default=False)],
    *,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Change the number of nodes of an elastic TrainJob while it runs, or of any other while it is suspended.

    An elastic TrainJob, whose runtime has an elasticPolicy as torch-distributed-elastic has, runs on with so many.
    Any other is suspended, scaled and resumed: its pods are made anew and begin with the last checkpoint, or from the
    start without one.

    Exit code: 0; 1 when there is no such TrainJob, or its number of nodes cannot change.
    """

    async def run(cluster: ConnectedCluster) -> None:
        job = await find_train_job(cluster.client, name, namespace or cluster.namespace)
        await _scale(cluster.client, job, nodes, SystemClock())

    raise typer.Exit(run_on(current_cluster(kubeconfig, context), run))


async def _scale(client: Client, job: Object, nodes: int, clock: Clock) -> None:
    if (state := JobState.of(job)).is_terminal:
        raise CommandError(
            f"TrainJob {name_of(job)} cannot be scaled: it has ended, and is {state.word}; {_again(nodes)}"
        )
    bounds = mapping_at(job, "status", "scale")
    if mapping_at(job, "spec", "trainer").get("numNodes") == nodes == bounds.get("nodes", nodes):
        note(f"TrainJob {name_of(job)} has {_counted(nodes)} already")
        return
    if bounds and not bounds.get("minNodes", 1) <= nodes <= bounds.get("maxNodes", nodes):
        raise CommandError(
            f"TrainJob {name_of(job)} cannot have {_counted(nodes)}: its runtime allows {bounds['minNodes']} to "
            f"{bounds['maxNodes']} (elasticPolicy)"
        )
    patch = {"metadata": {"uid": uid_of(job)}, "spec": {"trainer": {"numNodes": nodes}}}
    try:
        await client.patch(TRAIN_JOBS, name_of(job), patch, namespace_of(job), field_manager=FIELD_MANAGER)
    except ApiError as error:
        # The server refuses no number as such, but any change of what is fixed now.
        raise _fixed(job, nodes, error) if "immutable" in str(error) else error from None
    if bounds and not TrainJobRow.of(job).is_suspended and await _is_refused(client, job, nodes, clock):
        raise CommandError(
            f"TrainJob {name_of(job)} asks for {_counted(nodes)} now, but goes on with those that it has: "
            f"{ELASTIC_JOBSETS}"
        )
    say(f"{reference(job)} scaled to {_counted(nodes)}{await _remark(client, job)}")


async def _is_refused(client: Client, job: Object, nodes: int, clock: Clock) -> bool:
    """Whether JobSet has refused the change; a manager that is slow or away makes it later."""
    is_refused = False
    async with move_on_after(clock, _PATIENCE):
        while not is_refused:
            present = await client.get(TRAIN_JOBS, name_of(job), namespace_of(job))
            if mapping_at(present, "status", "scale").get("nodes") == nodes:
                break
            is_refused = ELASTIC_JOBSETS in str((find_condition(present, ConditionType.CREATED) or {}).get("message"))
            await clock.sleep(0 if is_refused else _PAUSE)
    return is_refused


def _fixed(job: Object, nodes: int, error: ApiError) -> Exception:
    """Why the number of nodes cannot change now, and what to do instead."""
    name, where = name_of(job), f"-n {namespace_of(job)}"
    row = TrainJobRow.of(job)
    if row.is_suspended:
        return error
    return CommandError(
        f"TrainJob {name} cannot be scaled while it is not suspended, because runtime {row.runtime} has no "
        f"elasticPolicy: trainer suspend {name} {where}, trainer scale {name} {nodes} {where}, "
        f"trainer resume {name} {where}"
    )


def _again(nodes: int) -> str:
    return f"submit it again with {_counted(nodes)} (trainer run SCRIPT --nodes {nodes}, or Clone and edit on its page)"


async def _remark(client: Client, job: Object) -> str:
    """What else there is to know about the change."""
    if TrainJobRow.of(job).is_suspended:
        return f": trainer resume {name_of(job)} starts it"
    try:
        autoscaler = await client.get(HORIZONTAL_POD_AUTOSCALERS, name_of(job), namespace_of(job))
    except KubeError:  # there is mostly none, and who may scale need not be allowed to see it
        return ""
    is_of_job = (controller_of(autoscaler) or {}).get("uid") == uid_of(job)
    return ": its autoscaler may change that again" if is_of_job else ""


def _counted(nodes: int) -> str:
    return f"{nodes} node" if nodes == 1 else f"{nodes} nodes"
