"""Sending TrainJobs and what they need to a cluster."""

from __future__ import annotations

import anyio

from trainer.cli.console import note, say
from trainer.cli.documents import Document, place
from trainer.cli.errors import BadInputError, CommandError
from trainer.cli.jobs.find import is_about_an_object, not_served, reference
from trainer.cli.manifests import FIELD_MANAGER
from trainer.cli.run.checkpoint_claim import warn_of_claim
from trainer.cli.run.package import is_code_of
from trainer.cli.run.queue import warn_of_queue
from trainer.cli.run.script import ScriptJob
from trainer.kube.client import Client
from trainer.kube.errors import (
    AlreadyExistsError,
    ApiError,
    BadRequestError,
    ConflictError,
    InvalidError,
    KubeError,
    NotFoundError,
)
from trainer.kube.objects import Object, key_of, name_of, namespace_of, owner_reference, owner_references_of
from trainer.kube.resource import CONFIG_MAPS


async def submit(
    client: Client, documents: list[Document], *, namespace: str | None, default_namespace: str
) -> list[Object]:
    """Apply the other objects, create the TrainJobs, and return the TrainJobs as stored.

    The code of a script, as `trainer run SCRIPT --dry-run` prints it, belongs to its TrainJob afterwards.
    """
    placed = place(documents, namespace=namespace, default=default_namespace)
    jobs = [document for document in placed if document.is_train_job]
    maps = [document for document in placed if document.resource == CONFIG_MAPS]
    codes = [next((each for each in maps if is_code_of(each.obj, key_of(job.obj))), None) for job in jobs]
    for job in jobs:
        await _refuse_existing(client, job)
    for document in placed:
        if not document.is_train_job and document not in codes:
            await _apply(client, document)
    return [await _create_with(client, job, code) for job, code in zip(jobs, codes, strict=True)]


async def submit_script(client: Client, job: ScriptJob, *, is_quiet: bool = False) -> Object:
    """Create the ConfigMap and the TrainJob, which owns it from then on, and return the TrainJob as stored.

    Without a TrainJob no ConfigMap stays behind.
    """
    return await submit_with_code(client, job.train_job, job.config_map, job.train_job.obj, is_quiet=is_quiet)


async def submit_with_code(
    client: Client, document: Document, code: Document, train_job: Object, *, is_quiet: bool = False
) -> Object:
    """Create a ConfigMap and an object that has TrainJobs made, which owns it from then on; returns it as stored.

    Args:
        client: of the cluster.
        document: the object, or a TrainJob itself.
        code: the ConfigMap, which does not stay behind without the object.
        train_job: such a TrainJob.
        is_quiet: whether nothing is said of it. Default: that it is created.
    """
    await _refuse_existing(client, document)
    await _warn(client, train_job)
    return await _create_owner(client, document, code, is_quiet=is_quiet)


async def _create_with(client: Client, job: Document, code: Document | None) -> Object:
    await _warn(client, job.obj)
    return await _create_owner(client, job, code)


async def _warn(client: Client, train_job: Object) -> None:
    await warn_of_queue(client, train_job)
    await warn_of_claim(client, train_job)


async def _create_owner(client: Client, job: Document, code: Document | None, *, is_quiet: bool = False) -> Object:
    is_ours = code is not None and await _create_code(client, code)
    try:
        created = await _create(client, job, is_quiet=is_quiet)
    except BaseException:
        if code is not None and is_ours:
            with anyio.CancelScope(shield=True):
                await _delete_code(client, code)
        raise
    if code is not None and is_ours:
        await _own(client, code, created)
    return created


async def _create_code(client: Client, document: Document) -> bool:
    """Create the ConfigMap; returns whether it is this command's, and not one that somebody has applied before."""
    name, namespace = name_of(document.obj), namespace_of(document.obj)
    try:
        present = await client.get(CONFIG_MAPS, name, namespace)
    except NotFoundError:
        pass
    except ApiError as error:
        raise _refused(document, error) from None
    else:
        # The name says what is in it. The owner of an owned one is gone, and it goes as well.
        if not owner_references_of(present):
            return False
        await _delete_code(client, document)
    try:
        await client.create(CONFIG_MAPS, document.obj, field_manager=FIELD_MANAGER)
    except ApiError as error:
        raise _refused(document, error) from None
    return True


async def _delete_code(client: Client, document: Document) -> None:
    try:
        await client.delete(CONFIG_MAPS, name_of(document.obj), namespace_of(document.obj))
    except NotFoundError:
        pass
    except KubeError as error:
        note(f"{document.subject} could not be deleted: {error}", kind="warning")


async def _own(client: Client, document: Document, job: Object) -> None:
    body = {"metadata": {"ownerReferences": [owner_reference(job)]}}
    try:
        await client.patch(
            CONFIG_MAPS, name_of(document.obj), body, namespace_of(document.obj), field_manager=FIELD_MANAGER
        )
    except KubeError as error:
        note(f"{document.subject} stays when the {job['kind']} is deleted: {error}", kind="warning")


async def _refuse_existing(client: Client, job: Document) -> None:
    name, namespace = name_of(job.obj), namespace_of(job.obj)
    if not name:
        return
    try:
        await client.get(job.resource, name, namespace)
    except NotFoundError as error:
        if is_about_an_object(error):
            return
        raise not_served(job.resource) from None
    raise _already_exists(job)


def _already_exists(job: Document) -> BadInputError:
    name, namespace = name_of(job.obj), namespace_of(job.obj)
    named = name if job.is_train_job else f"{job.resource.kind.lower()}/{name}"
    return BadInputError(
        f"{job.subject} exists already in namespace {namespace}: "
        f"delete it (trainer delete {named} -n {namespace}) or give the new one another name"
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


async def _create(client: Client, document: Document, *, is_quiet: bool = False) -> Object:
    try:
        created = await client.create(document.resource, document.obj, field_manager=FIELD_MANAGER)
    except AlreadyExistsError:
        raise _already_exists(document) from None
    except NotFoundError as error:
        raise _refused(document, error) if is_about_an_object(error) else not_served(document.resource) from None
    except ApiError as error:
        raise _refused(document, error) from None
    if not is_quiet:
        say(f"{reference(created, document.resource)} created")
    return created


def _refused(document: Document, error: ApiError) -> CommandError:
    is_bad_input = isinstance(error, InvalidError | BadRequestError)
    kind = BadInputError if is_bad_input else CommandError
    return kind(f"{document.subject}: {error}")
