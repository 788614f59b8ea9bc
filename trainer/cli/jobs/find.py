"""Finding TrainJobs, with clear errors where there are none."""

from __future__ import annotations

from typing import Annotated

import typer

from trainer.api.optimization import SWEEP_LABEL
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.completion import train_job_names
from trainer.cli.errors import CommandError, GoneError
from trainer.cli.similar import did_you_mean
from trainer.kube.client import Client
from trainer.kube.errors import ForbiddenError, NotFoundError
from trainer.kube.field_errors import listed
from trainer.kube.objects import Object, key_of, labels_of, name_of
from trainer.kube.resource import Resource
from trainer.kube.selection import Selection

JobName = Annotated[
    str,
    typer.Argument(metavar="NAME", help="Name of the TrainJob.", show_default=False, autocompletion=train_job_names),
]


async def find_train_job(client: Client, name: str, namespace: str, resource: Resource = TRAIN_JOBS) -> Object:
    """The TrainJob of this name."""
    return await find_object(client, name, namespace, resource, see="trainer get -A")


async def find_object(client: Client, name: str, namespace: str, resource: Resource, *, see: str) -> Object:
    """The object of this name; `see` is the command that lists all of them.

    Raises:
        GoneError: there is none; says which there are.
    """
    try:
        return await client.get(resource, name, namespace)
    except NotFoundError as error:
        if not is_about_an_object(error):
            raise not_served(resource) from None
    missing = f"there is no {resource.kind} {name} in namespace {namespace}"
    try:
        objects = await list_objects(client, Selection(namespace), resource)
    except ForbiddenError:
        raise GoneError(missing) from None
    names = [name_of(obj) for obj in objects]
    trial = next((name_of(obj) for obj in objects if labels_of(obj).get(SWEEP_LABEL) == name), None)
    if trial is not None:
        raise GoneError(f"{missing}: {name} is a sweep, whose trials are TrainJobs such as {trial}")
    meant = did_you_mean(name, names)
    there = f"{meant} There" if meant else ": there"
    raise GoneError(f"{missing}{there} are{f': {listed(names)}' if names else f' none in it (see: {see})'}")


async def list_train_jobs(client: Client, selection: Selection, resource: Resource = TRAIN_JOBS) -> list[Object]:
    """The selected TrainJobs, by namespace and name."""
    return await list_objects(client, selection, resource)


async def list_objects(client: Client, selection: Selection, resource: Resource) -> list[Object]:
    """The selected objects, by namespace and name."""
    return sorted(await _list(client, resource, selection), key=key_of)


async def list_runtimes(client: Client, namespace: str) -> list[tuple[Object, str]]:
    """The runtimes that TrainJobs of a namespace may refer to, by name, each with its kind; the cluster's first."""
    found: list[tuple[Object, str]] = []
    for resource, where in ((CLUSTER_TRAINING_RUNTIMES, None), (TRAINING_RUNTIMES, namespace)):
        found += [
            (each, resource.kind) for each in sorted(await _list(client, resource, Selection(where)), key=name_of)
        ]
    return found


async def _list(client: Client, resource: Resource, selection: Selection) -> list[Object]:
    try:
        return (await client.list(resource, selection)).items
    except NotFoundError:
        raise not_served(resource) from None


def reference(obj: Object, resource: Resource = TRAIN_JOBS) -> str:
    """A TrainJob, or an object of another resource, as kubectl names it: `trainjob.trainer.kubeflow.org/demo`."""
    return f"{resource.kind.lower()}.{resource.group}/{name_of(obj)}"


def is_about_an_object(error: NotFoundError) -> bool:
    """Whether an object (the job, its namespace) is missing, whose name the message quotes; else the kind is."""
    return '"' in error.message


def not_served(resource: Resource = TRAIN_JOBS) -> CommandError:
    """The error for a cluster without one of our kinds."""
    return CommandError(
        f"the cluster has no CRD for {resource.kind}s: install it (trainer crds | kubectl apply --server-side -f -), "
        "or go on with trainer up if that was interrupted"
    )
