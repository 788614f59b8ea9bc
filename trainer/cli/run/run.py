"""`trainer run`: submit a script or TrainJobs to the current cluster and follow them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import TypeAlias

import typer

from trainer.cli.console import note, output, say
from trainer.cli.current_cluster import ConnectedCluster, current_cluster, problem_of_up, run_on
from trainer.cli.documents import check_version, read_documents
from trainer.cli.errors import BadInputError, ExitCode
from trainer.cli.logs.follower import WHOLE
from trainer.cli.options import Context, Kubeconfig, Namespace, cluster_options
from trainer.cli.run.display import JobDisplay
from trainer.cli.run.follow import JobOutcome, follow_jobs
from trainer.cli.run.options import (
    Arguments,
    Checkpoints,
    CodeFrom,
    DryRun,
    File,
    Folder,
    Follow,
    Gpus,
    Image,
    MaxRestarts,
    Name,
    Nodes,
    PrintAs,
    Processes,
    Queue,
    ResourceAmounts,
    RuntimeName,
    Script,
    ScriptOptions,
    SecretVariables,
    StallAfter,
    Suspend,
    Timeout,
    Variables,
)
from trainer.cli.run.script import prepare_script
from trainer.cli.run.submission import submit, submit_script
from trainer.kube.client import Client
from trainer.kube.clock import Clock, SystemClock, move_on_after
from trainer.kube.objects import Object, ObjectKey, key_of, name_of, namespace_of
from trainer.kube.podlogs.container_log import ContainerLogOptions
from trainer.kube.rest.connection import ConnectionOptions
from trainer.kubernetes_yaml import dump, join


async def follow_on_screen(
    client: Client,
    jobs: list[Object],
    clock: Clock,
    *,
    elapsed: float = 0,
    options: ContainerLogOptions = WHOLE,
    target: str = "",
) -> Mapping[ObjectKey, JobOutcome]:
    """Follow the jobs, which began so many seconds ago, to their end on standard output.

    `target` has the options that lead to their cluster, for commands that are suggested.
    """
    keys = [key_of(job) for job in jobs]
    with JobDisplay(output(), keys, clock, elapsed=elapsed, target=target) as display:
        return await follow_jobs(client, jobs, display, clock, options)


FollowJobs: TypeAlias = Callable[[Client, list[Object], Clock], Awaitable[Mapping[ObjectKey, JobOutcome]]]
"""Shows TrainJobs until they have ended."""


def exit_code(outcomes: Mapping[ObjectKey, JobOutcome]) -> ExitCode:
    """OK when all jobs are complete."""
    return ExitCode.OK if all(outcome.is_complete for outcome in outcomes.values()) else ExitCode.FAILED


def run(
    script: Script = None,
    arguments: Arguments = None,
    *,
    file: File = None,
    follow: Follow = True,
    timeout: Timeout = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: Namespace = None,
    nodes: Nodes = None,
    gpus: Gpus = None,
    processes: Processes = None,
    resource: ResourceAmounts = None,
    runtime: RuntimeName = None,
    image: Image = None,
    folder: Folder = None,
    code_from: CodeFrom = None,
    env: Variables = None,
    secret_env: SecretVariables = None,
    name: Name = None,
    queue: Queue = None,
    max_restarts: MaxRestarts = None,
    stall_after: StallAfter = None,
    checkpoints: Checkpoints = None,
    suspend: Suspend = False,
    dry_run: DryRun = False,
    print_as: PrintAs = None,
) -> None:
    """Submit a script, or the TrainJobs of a file, and follow them: logs, state, warnings, and how they end.

    trainer run train.py --nodes 2 -- --epochs 3

    The runtime of a script is that of the framework which it imports. Its code travels in a ConfigMap that belongs to
    the TrainJob, and its requirements are installed once on each node before it starts.

    The cluster is that of --kubeconfig, $KUBECONFIG, `trainer up` or ~/.kube/config, in this order.

    Exit code: 0 when all jobs are Complete, 1 when one Failed, 2 for bad input, 124 for a timeout.
    """
    options = ScriptOptions(
        script=script or "",
        arguments=tuple(arguments or ()),
        folder=folder,
        code_from=code_from,
        runtime=runtime,
        name=name,
        nodes=nodes,
        gpus=gpus,
        processes=processes,
        resources=tuple(resource or ()),
        image=image,
        env=tuple(env or ()),
        secret_env=tuple(secret_env or ()),
        queue=queue,
        max_restarts=max_restarts,
        stall_after=stall_after,
        checkpoints=checkpoints,
        suspend=suspend,
    )
    send = (
        _sender_of_script(options, namespace, dry_run=dry_run, prints=dry_run or print_as is not None)
        if file is None
        else _sender_of_file(file, options, namespace, prints=dry_run or print_as is not None)
    )
    is_followed = follow and not (suspend or dry_run or print_as)
    connection = current_cluster(kubeconfig, context)
    target = cluster_options(kubeconfig, context)
    if problem := problem_of_up(connection):
        note(problem, kind="warning")
    follow_them = partial(follow_on_screen, target=target) if is_followed else None
    raise typer.Exit(submit_and_follow(connection, send, follow_them, timeout, target))


_OPTION_NAMES = {"resources": "resource", "processes": "procs"}
"""Where they are not those of the fields of `ScriptOptions`."""


def _sender_of_file(
    file: str, options: ScriptOptions, namespace: str | None, *, prints: bool
) -> Callable[[ConnectedCluster], Awaitable[list[Object]]]:
    if options.script:
        raise BadInputError(f"--file: must not be given together with a script, {options.script}")
    given = next((each.name for each in fields(options) if getattr(options, each.name) != each.default), "")
    if given or prints:
        option = _OPTION_NAMES.get(given, given.replace("_", "-")) or "dry-run or --output"
        raise BadInputError(f"--{option}: is for scripts; with --file, change the file instead")
    documents = read_documents(file)

    async def send(cluster: ConnectedCluster) -> list[Object]:
        check_version(documents, cluster.served.version)
        return await submit(cluster.client, documents, namespace=namespace, default_namespace=cluster.namespace)

    return send


def _sender_of_script(
    options: ScriptOptions, namespace: str | None, *, dry_run: bool, prints: bool
) -> Callable[[ConnectedCluster], Awaitable[list[Object]]]:
    if not options.script:
        raise BadInputError(
            "name a script to train with (trainer run train.py), or a file with TrainJobs (trainer run -f FILE)"
        )

    async def send(cluster: ConnectedCluster) -> list[Object]:
        job = await prepare_script(cluster, options, namespace or cluster.namespace)
        if prints:
            note(f"packed {job.description}")
            if not dry_run:
                await submit_script(cluster.client, job, is_quiet=True)
            output().file.write(join(dump(document.obj) for document in (job.config_map, job.train_job)))
            return []
        say(f"packed {job.description}")
        created = await submit_script(cluster.client, job)
        if options.suspend:
            say(f"{name_of(created)} is suspended: trainer resume {name_of(created)} starts it")
        return [created]

    return send


def submit_and_follow(
    connection: ConnectionOptions,
    send: Callable[[ConnectedCluster], Awaitable[list[Object]]],
    follow: FollowJobs | None,
    timeout: float | None,
    target: str,
) -> int:
    """Follow what `send` has submitted or found, until it has ended, the time is up or the user detaches.

    Args:
        connection: the cluster.
        send: returns the TrainJobs.
        follow: shows them; None where they are not followed.
        timeout: in seconds; None for none.
        target: the options that lead to the cluster, for the commands that are suggested.
    """
    submitted: list[Object] = []

    async def run(cluster: ConnectedCluster) -> int:
        clock = SystemClock()
        submitted.extend(await send(cluster))
        if follow is None:
            return ExitCode.OK
        outcomes: Mapping[ObjectKey, JobOutcome] = {}
        async with move_on_after(clock, timeout) as scope:
            outcomes = await follow(cluster.client, submitted, clock)
        for key, outcome in outcomes.items():
            if outcome.state is not None and not outcome.is_complete:
                note(f"trainer explain {key.name} -n {key.namespace}{target} says what to do")
        return ExitCode.TIMEOUT if scope.cancelled_caught else exit_code(outcomes)

    code = run_on(connection, run)
    if submitted and code >= ExitCode.TIMEOUT:
        names = ", ".join(map(name_of, submitted))
        reason = f"not finished after {timeout:g} s" if code == ExitCode.TIMEOUT else "detached"
        again = f"{names if len(submitted) == 1 else 'NAME'} -n {namespace_of(submitted[0])}{target}"
        say(f"{reason}: the cluster continues to run {names} (trainer attach {again} follows it again)")
    return code
