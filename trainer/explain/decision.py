"""Whoever decides whether a TrainJob runs, and how it is suspended and resumed there.

That is the TrainJob, unless Kueue has a Workload for it or for its JobSet: Kueue resumes at once what it has admitted,
whatever `spec.suspend` says, so that its pods begin again for nothing. There the Workload is deactivated, whereupon
Kueue itself suspends the job, and takes back what the admission has added to its pods.
"""

from __future__ import annotations

from dataclasses import dataclass

from trainer.api.kueue import QUEUE_LABEL
from trainer.api.trainjob import TRAIN_JOBS
from trainer.api.trainjob_status import ConditionReason, ConditionType
from trainer.explain.cause import kubectl
from trainer.explain.suspension import JOB_UID, WORKLOADS, workload_selector
from trainer.kube.client import Client
from trainer.kube.errors import ForbiddenError, NotFoundError
from trainer.kube.objects import (
    Object,
    find_condition,
    is_condition_true,
    labels_of,
    mapping_at,
    name_of,
    namespace_of,
    uid_of,
)
from trainer.kube.resource import Resource
from trainer.kube.selection import Selection
from trainer.workloads import JOBSETS


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of `set_suspend`."""

    is_changed: bool
    remark: str = ""
    """Of a change, what else there is to know, if anything; else a sentence that says why there was nothing to do."""


async def set_suspend(client: Client, train_job: Object, *, suspend: bool, field_manager: str) -> Decision:
    """Suspend or resume the TrainJob with this uid, and no other of its name.

    Raises:
        KubeError: the API server refuses it; where Kueue decides and the user may not tell it, with the remedy.
    """
    resource, workloads = await _workloads(client, train_job)
    if not workloads:
        if bool(mapping_at(train_job, "spec").get("suspend")) == suspend:
            return Decision(False, _nothing_to_do(train_job, suspend=suspend))
        await _patch_train_job(client, train_job, suspend=suspend, field_manager=field_manager)
        return Decision(True)
    changed = [each for each in workloads if _is_active(each) == suspend]
    for each in changed:
        patch = {"metadata": {"uid": uid_of(each)}, "spec": {"active": not suspend}}
        try:
            await client.patch(resource, name_of(each), patch, namespace_of(each), field_manager=field_manager)
        except ForbiddenError as error:
            raise _forbidden(train_job, _queue_of(each), error, workload=each, suspend=suspend) from error
    is_changed = bool(changed)
    # Kueue sets spec.suspend of its own jobs; of a TrainJob whose JobSet it queues, only people do.
    is_its_own = any(labels_of(each).get(JOB_UID) == uid_of(train_job) for each in workloads)
    if not suspend and not is_its_own and mapping_at(train_job, "spec").get("suspend"):
        await _patch_train_job(client, train_job, suspend=False, field_manager=field_manager)
        is_changed = True
    return Decision(is_changed, _remark(train_job, workloads[0], suspend=suspend, is_changed=is_changed))


def _remark(train_job: Object, workload: Object, *, suspend: bool, is_changed: bool) -> str:
    about, name, queue = f"TrainJob {name_of(train_job)}", name_of(workload), _queue_of(workload)
    if suspend:
        inactive = f"its Workload {name} of Kueue is inactive"
        return f"{inactive} until it is resumed" if is_changed else f"{about} is suspended already: {inactive}"
    decides = f"Kueue's queue {queue} decides when it runs"
    return decides if is_changed else f"Workload {name} of {about} is active: {decides}"


async def _workloads(client: Client, train_job: Object) -> tuple[Resource, list[Object]]:
    """The unfinished Workloads of a TrainJob or of its JobSet, and their kind in the version that is served."""
    namespace = namespace_of(train_job)
    try:
        jobset: Object = await client.get(JOBSETS, name_of(train_job), namespace)
    except (ForbiddenError, NotFoundError):
        jobset = {}
    selection = Selection(namespace, workload_selector([uid for uid in map(uid_of, (train_job, jobset)) if uid]))
    queue = labels_of(train_job).get(QUEUE_LABEL) or labels_of(jobset).get(QUEUE_LABEL)
    for resource in WORKLOADS:
        try:
            found = (await client.list(resource, selection)).items
        except NotFoundError:
            continue
        except ForbiddenError as error:
            if queue:
                raise _forbidden(train_job, queue, error) from error
            break
        return resource, [each for each in found if not is_condition_true(each, "Finished")]
    return WORKLOADS[0], []


async def _patch_train_job(client: Client, train_job: Object, *, suspend: bool, field_manager: str) -> None:
    patch = {"metadata": {"uid": uid_of(train_job)}, "spec": {"suspend": suspend}}
    await client.patch(TRAIN_JOBS, name_of(train_job), patch, namespace_of(train_job), field_manager=field_manager)


def _is_active(workload: Object) -> bool:
    return mapping_at(workload, "spec").get("active") is not False


def _queue_of(workload: Object) -> str:
    return str(mapping_at(workload, "spec").get("queueName") or "")


def _forbidden(
    train_job: Object, queue: str, error: ForbiddenError, *, workload: Object | None = None, suspend: bool = True
) -> ForbiddenError:
    """That Kueue would undo the change, and who can make it."""
    name, verbs = (name_of(workload), "patch") if workload else ("NAME", "list and patch")
    body = f'{{"spec":{{"active":{"false" if suspend else "true"}}}}}'
    command = kubectl("patch", "workload", name, "--type", "merge", "-p", body, namespace=namespace_of(train_job))
    return ForbiddenError(
        error.code,
        f"Kueue's queue {queue} decides whether TrainJob {name_of(train_job)} runs, by a Workload that you may not "
        f"change: ask for the right to {verbs} workloads.kueue.x-k8s.io, or have somebody run {command} ({error})",
    )


def _nothing_to_do(train_job: Object, *, suspend: bool) -> str:
    """That a TrainJob has this state already, and what to do if its JobSet has another."""
    message = f"TrainJob {name_of(train_job)} is {'suspended already' if suspend else 'not suspended'}"
    suspended = find_condition(train_job, ConditionType.SUSPENDED) or {}
    if suspend and suspended.get("status") == "False":
        return f"{message}, but somebody else has resumed its Jobs: resume and suspend it to stop them"
    pending = find_condition(train_job, ConditionType.PENDING) or {}
    if not suspend and pending.get("status") == "True" and pending.get("reason") == ConditionReason.JOB_SET_SUSPENDED:
        return f"{message}, but its JobSet is: resume the JobSet, or suspend and resume the TrainJob"
    return message
