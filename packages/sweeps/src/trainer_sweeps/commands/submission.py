"""Submitting a sweep: the code of its trials travels as that of `trainer run`, in a ConfigMap that the sweep owns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from anyio.to_thread import run_sync

from trainer.api.optimization import OPTIMIZATION_JOBS, variable_of
from trainer.api.submitted_object import object_errors
from trainer.cli.console import note, output, printable, say
from trainer.cli.current_cluster import ConnectedCluster
from trainer.cli.documents import Document
from trainer.cli.errors import BadInputError
from trainer.cli.run.options import ScriptOptions
from trainer.cli.run.script import prepare_script
from trainer.cli.run.submission import submit_with_code
from trainer.cli.run.submitted_job import on_cluster
from trainer.cli.run.sweep_api import Search, SubmittedSweep
from trainer.kube.clock import SystemClock, move_on_after
from trainer.kube.objects import Object
from trainer.kube.rest.connection import ConnectionOptions
from trainer_sweeps.api.optimizationjob import OptimizationJob
from trainer_sweeps.commands.follow import follow_to_end
from trainer_sweeps.commands.optimization_job import check_search, optimization_job, search_of, sweep_name
from trainer_sweeps.commands.parameters import SearchedParameter, parse_space
from trainer_sweeps.commands.submitted_sweep import TrackedSweep
from trainer_sweeps.commands.unread import unread_parameters


@dataclass(frozen=True, slots=True)
class PreparedSweep:
    """An OptimizationJob and the code of its trials, ready to be submitted."""

    sweep: Document
    """In the version that the cluster serves."""
    config_map: Document
    train_job: Document
    """A TrainJob like its trials."""
    description: str
    """What is packed and how much, and the runtime."""

    async def submit(self, cluster: ConnectedCluster, *, is_quiet: bool = False) -> Object:
        """Create both; returns the OptimizationJob as stored."""
        return await submit_with_code(
            cluster.client, self.sweep, self.config_map, self.train_job.obj, is_quiet=is_quiet
        )


async def prepare_sweep(
    cluster: ConnectedCluster,
    options: ScriptOptions,
    search: Search,
    parameters: Sequence[SearchedParameter],
    namespace: str,
) -> PreparedSweep:
    """Pack the code, choose the runtime, and make the objects; nothing is sent.

    Raises:
        BadInputError: the options, the code or the cluster leave no sweep to make; says why and what to do.
    """
    fields = search_of(search, parameters, cluster.served)
    options = replace(
        options,
        name=sweep_name(options.name, options.script),
        further_env=tuple(variable_of(each.name) for each in parameters),
        suspend=False,
    )
    prepared = await prepare_script(cluster, options, namespace)
    if options.function is None and options.code_from is None:
        await run_sync(_warn_of_unread, options, [each.name for each in parameters])
    sweep = optimization_job(prepared.train_job.obj, fields, cluster.served)
    if errors := object_errors(sweep.obj, OptimizationJob):
        raise BadInputError("; ".join(map(str, errors)))
    trials, at_once = fields["numTrials"], fields.get("parallelTrials", 1)
    return PreparedSweep(
        sweep,
        prepared.config_map,
        prepared.train_job,
        f"{prepared.packed} for {OPTIMIZATION_JOBS.kind} {options.name} with runtime {prepared.runtime}: "
        f"{trials} trial{'' if trials == 1 else 's'}, {at_once} at once",
    )


def _warn_of_unread(options: ScriptOptions, names: Sequence[str]) -> None:
    unread = unread_parameters(Path(options.script), options.arguments, names)
    if unread:
        shown = ", ".join(map(printable, unread))
        arguments = " ".join(f"--{name} {{{name}}}" for name in map(printable, unread))
        note(
            f"nothing in {printable(options.script)} reads {shown}, and trials would not differ by it: hand it over as "
            f"in -- {arguments}, or read it by parameters() of the module report",
            kind="warning",
        )


def submit_from_python(
    connection: ConnectionOptions,
    options: ScriptOptions,
    search: Search,
    namespace: str | None,
    *,
    follow: bool,
    timeout: float | None,
) -> SubmittedSweep:
    """Submit a sweep, and follow it if that is asked for; blocks."""
    check_search(search)
    parameters = parse_space(search.space)
    is_followed = follow and not search.suspend

    async def send(cluster: ConnectedCluster) -> SubmittedSweep:
        prepared = await prepare_sweep(cluster, options, search, parameters, namespace or cluster.namespace)
        if is_followed:
            say(f"packed {prepared.description}")
        created = await prepared.submit(cluster, is_quiet=not is_followed)
        if is_followed:
            clock = SystemClock()
            async with move_on_after(clock, timeout):
                await follow_to_end(cluster, created, output(), clock)
        return TrackedSweep(connection, created)

    return on_cluster(connection, send)
