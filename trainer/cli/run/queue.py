"""The queue of Kueue that a TrainJob names: whether there is one, before it is submitted."""

from __future__ import annotations

from typing import Final

from trainer.api.kueue import QUEUE_LABEL
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.console import note
from trainer.cli.jobs.find import is_about_an_object
from trainer.cli.similar import did_you_mean
from trainer.kube.client import Client
from trainer.kube.errors import KubeError, NotFoundError
from trainer.kube.field_errors import listed
from trainer.kube.objects import Object, labels_of, mapping_at, name_of, namespace_of
from trainer.kube.resource import Resource
from trainer.kube.selection import Selection

LOCAL_QUEUES: Final = tuple(
    Resource("kueue.x-k8s.io", version, "localqueues", "LocalQueue") for version in ("v1beta2", "v1beta1")
)
"""Newest version first."""


async def warn_of_queue(client: Client, job: Object) -> None:
    """Warn of a queue that is not there; nothing is said where the user may not look.

    Args:
        client: asks with the rights of the user.
        job: a TrainJob of either version, which is not submitted yet.
    """
    is_queued_as_jobset = job.get("apiVersion") == TRAIN_JOBS.api_version
    queue = (mapping_at(job, "spec", "labels") if is_queued_as_jobset else labels_of(job)).get(QUEUE_LABEL)
    if not queue:
        return
    try:
        problem = await _problem(client, str(queue), namespace_of(job))
    except KubeError:
        return
    if problem:
        note(problem, kind="warning")


async def _problem(client: Client, queue: str, namespace: str) -> str:
    for resource in LOCAL_QUEUES:
        try:
            await client.get(resource, queue, namespace)
        except NotFoundError as error:
            if not is_about_an_object(error):
                continue
        else:
            return ""
        names = [name_of(each) for each in (await client.list(resource, Selection(namespace))).items]
        meant = did_you_mean(queue, names)
        there = f"{meant} There" if meant else ": there"
        missing = f"namespace {namespace} has no LocalQueue {queue}, and the TrainJob waits until it has one"
        return f"{missing}{there} are{f': {listed(names)}' if names else ' none in it'}"
    return f"the cluster has no Kueue: nothing keeps the TrainJob waiting in queue {queue}, it starts at once"
