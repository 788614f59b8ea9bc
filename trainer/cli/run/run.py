"""`trainer run`: submit TrainJobs to the current cluster and follow them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.console import output, say
from trainer.cli.current_cluster import ConnectedCluster, current_cluster, run_on
from trainer.cli.documents import check_version, place, read_documents
from trainer.cli.errors import BadInputError, CommandError, ExitCode
from trainer.cli.jobs.find import is_about_an_object, not_served, reference
from trainer.cli.manifests import FIELD_MANAGER
from trainer.cli.options import Context, Kubeconfig, Namespace  # noqa: TC001 - typer reads annotations
from trainer.cli.run.display import JobDisplay
from trainer.cli.run.follow import follow_jobs
from trainer.kube.clock import SystemClock, move_on_after
from trainer.kube.errors import (
    AlreadyExistsError,
    ApiError,
    BadRequestError,
    ConflictError,
    InvalidError,
    NotFoundError,
)
from trainer.kube.objects import key_of, name_of, namespace_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer.cli.documents import Document
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


async def submit(
    client: Client, documents: list[Document], *, namespace: str | None, default_namespace: str
) -> list[Object]:
    """Apply the other objects, create the TrainJobs, and return the TrainJobs as stored."""
    placed = place(documents, namespace=namespace, default=default_namespace)
    jobs = [document for document in placed if document.is_train_job]
    for job in jobs:
        await _refuse_existing(client, job)
    for document in placed:
        if not document.is_train_job:
            await _apply(client, document)
    return [await _create(client, job) for job in jobs]


async def _refuse_existing(client: Client, job: Document) -> None:
    name, namespace = name_of(job.obj), namespace_of(job.obj)
    if not name:
        return
    try:
        await client.get(TRAIN_JOBS, name, namespace)
    except NotFoundError as error:
        if is_about_an_object(error):
            return
        raise not_served() from None
    raise _already_exists(job)


def _already_exists(job: Document) -> BadInputError:
    name, namespace = name_of(job.obj), namespace_of(job.obj)
    return BadInputError(
        f"TrainJob {name} exists already in namespace {namespace}: "
        f"delete it (trainer delete {name} -n {namespace}) or give the new one another name"
    )


async def _apply(client: Client, document: Document) -> None:
    try:
        await client.apply(document.resource, document.obj, field_manager=FIELD_MANAGER)
    except ConflictError as error:
        raise CommandError(
            f"{document.subject} has fields of another field manager, so it was not changed: {error}; "
            "give it another name, or apply it with kubectl"
        ) from None
    except ApiError as error:
        raise _refused(document, error) from None
    say(f"{document.resource.kind.lower()}/{name_of(document.obj)} applied")


async def _create(client: Client, document: Document) -> Object:
    try:
        job = await client.create(TRAIN_JOBS, document.obj, field_manager=FIELD_MANAGER)
    except AlreadyExistsError:
        raise _already_exists(document) from None
    except NotFoundError as error:
        raise _refused(document, error) if is_about_an_object(error) else not_served() from None
    except ApiError as error:
        raise _refused(document, error) from None
    say(f"{reference(job)} created")
    return job


def _refused(document: Document, error: ApiError) -> CommandError:
    is_bad_input = isinstance(error, InvalidError | BadRequestError)
    kind = BadInputError if is_bad_input else CommandError
    return kind(f"{document.subject}: {error}")
