"""Submitting documents: first the objects that TrainJobs need, then the TrainJobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.console import say
from trainer.cli.documents import Document, place
from trainer.cli.errors import BadInputError, CommandError
from trainer.cli.jobs.find import is_about_an_object, not_served
from trainer.cli.manifests import FIELD_MANAGER
from trainer.kube.errors import (
    AlreadyExistsError,
    ApiError,
    BadRequestError,
    ConflictError,
    InvalidError,
    NotFoundError,
)
from trainer.kube.objects import metadata_of, name_of, namespace_of

if TYPE_CHECKING:
    from trainer.kube.client import Client
    from trainer.kube.objects import Object


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
    say(f"trainjob.{TRAIN_JOBS.group}/{metadata_of(job)['name']} created")
    return job


def _refused(document: Document, error: ApiError) -> CommandError:
    is_bad_input = isinstance(error, InvalidError | BadRequestError)
    kind = BadInputError if is_bad_input else CommandError
    return kind(f"{document.subject}: {error}")
