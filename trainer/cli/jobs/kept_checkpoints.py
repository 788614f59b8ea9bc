"""The directory of a claim in which a TrainJob keeps its checkpoints: where it is, and how it is removed.

Only pods reach what is in a claim, so a Job removes it: with the image, the user and the tolerations of the training,
whose nodes have the one and whose files belong to the other.
"""

from __future__ import annotations

from typing import Final

import anyio

from trainer.api.checkpoints import (
    MOUNT_PATH,
    VOLUME,
    Claim,
    directory_name,
    mounted_directory,
    pods_with_directory,
    stated_claim,
)
from trainer.api.jobset_labels import JOBSET_NAME
from trainer.cli.console import printable, say
from trainer.cli.errors import CommandError
from trainer.cli.jobs.receiver import Receiver, watch_for
from trainer.cli.jobs.state import JobState
from trainer.cli.manifests import FIELD_MANAGER
from trainer.explain.cause import kubectl, trainer
from trainer.kube.client import Client, DeleteOptions, Propagation
from trainer.kube.clock import Clock
from trainer.kube.errors import ForbiddenError, NotFoundError
from trainer.kube.field_errors import listed
from trainer.kube.objects import (
    Object,
    find_condition,
    has_finished,
    is_being_deleted,
    is_condition_true,
    is_controlled_by,
    mapping_at,
    name_of,
    namespace_of,
    uid_of,
)
from trainer.kube.resource import JOBS, PERSISTENT_VOLUME_CLAIMS, PODS
from trainer.kube.selection import Selection
from trainer.workloads import JOBSETS

_LONGEST_STEM: Final = 40
_SECONDS: Final = 600
"""Within which the Job has to end, and after which an ended one is deleted: nobody may have waited for it."""
_AMOUNTS: Final = {"cpu": "100m", "memory": "128Mi"}
_OF_POD: Final = (
    "imagePullSecrets",
    "nodeSelector",
    "runtimeClassName",
    "securityContext",
    "serviceAccountName",
    "tolerations",
)
_OF_CONTAINER: Final = ("image", "imagePullPolicy", "securityContext")


class KeptCheckpoints:
    """The checkpoints of one TrainJob."""

    def __init__(self, job: Object, jobset: Object | None, directory: Claim) -> None:
        self._job = job
        self._jobset = jobset
        self.directory = directory

    @classmethod
    async def of(cls, client: Client, job: Object) -> KeptCheckpoints | None:
        """None where neither its pods nor, without a JobSet, its annotation have a claim for them.

        Raises:
            KubeError: the JobSet cannot be read.
        """
        jobset = await _jobset(client, job)
        directory = _stated(job) if jobset is None else mounted_directory(jobset)
        if directory is None or directory.path.rpartition("/")[2] != directory_name(name_of(job), uid_of(job)):
            return None  # whatever is mounted there, it is not that of this TrainJob alone
        return cls(job, jobset, directory)

    @property
    def place(self) -> str:
        """Claim and directory in words."""
        return f"directory {self.directory.path} of claim {self.directory.name}"

    async def has_claim(self, client: Client) -> bool:
        """Whether pods can mount the claim, also where the user may not read it.

        Raises:
            KubeError: the claim cannot be read, but for lack of rights.
        """
        try:
            claim = await client.get(PERSISTENT_VOLUME_CLAIMS, self.directory.name, namespace_of(self._job))
        except NotFoundError:
            return False
        except ForbiddenError:
            return True
        return not is_being_deleted(claim)

    async def remove(self, client: Client, clock: Clock) -> None:
        """Remove the directory with all that is in it, and wait until that is done; one that is gone is no error.

        Raises:
            CommandError: pods may write there, nothing says which image has `rm`, or the Job has failed.
            KubeError: the API server refuses something.
        """
        await self._refuse_while_it_runs(client)
        body = self._removal()
        removal = await client.create(JOBS, body, field_manager=FIELD_MANAGER)
        name, namespace = name_of(removal), namespace_of(removal)
        say(f"job.batch/{name} created: removes {self.place}")
        ended = await _end_of(client, removal, clock)
        if not is_condition_true(ended, "Complete"):
            condition = find_condition(ended, "Failed") or {}
            reason = printable(str(condition.get("message") or "it was deleted"))
            logs = kubectl("logs", f"job/{name}", namespace=namespace)
            raise CommandError(f"{self.place} could not be removed by Job {name}: {reason} ({logs} may say why)")
        options = DeleteOptions(propagation=Propagation.BACKGROUND, uid=uid_of(removal))
        await client.delete(JOBS, name, namespace, options)

    async def _refuse_while_it_runs(self, client: Client) -> None:
        name, namespace = name_of(self._job), namespace_of(self._job)
        suspend = trainer("suspend", name, namespace=namespace)
        pods = await client.list(PODS, Selection(namespace, label_selector=f"{JOBSET_NAME}={name}"))
        present = [name_of(pod) for pod in pods.items if not has_finished(pod)]
        if present:
            raise CommandError(
                f"{self.place} is kept, and so is TrainJob {name}: pods may write there: {listed(present)}; suspend it "
                f"first ({suspend}), and try again when they are gone"
            )
        is_suspended = any(mapping_at(each, "spec").get("suspend") for each in (self._job, self._jobset))
        if not (is_suspended or self._jobset is None or JobState.of(self._job).is_terminal):
            raise CommandError(
                f"{self.place} is kept, and so is TrainJob {name}: it goes on training; suspend it first ({suspend})"
            )

    def _removal(self) -> Object:
        """The Job: it mounts what the directory is in, since a mount itself cannot be removed."""
        name, namespace = name_of(self._job), namespace_of(self._job)
        pod, container = next(pods_with_directory(self._jobset or {}), ({}, {}))
        if not container:
            raise CommandError(
                f"{self.place} is kept, and so is TrainJob {name}: it has no JobSet any more, whose image would remove "
                "it; remove it from a pod of yours, then delete the TrainJob without --checkpoints"
            )
        parent, _, last = self.directory.path.rpartition("/")
        mount = {"name": VOLUME, "mountPath": MOUNT_PATH} | ({"subPath": parent} if parent else {})
        remover: Object = {field: container[field] for field in _OF_CONTAINER if field in container} | {
            "name": "remove",
            "command": ["rm", "-rf", "--", f"{MOUNT_PATH}/{last}"],
            "resources": {"requests": _AMOUNTS, "limits": _AMOUNTS},
            "volumeMounts": [mount],
        }
        spec: Object = {field: pod[field] for field in _OF_POD if field in pod} | {
            "automountServiceAccountToken": False,
            "restartPolicy": "Never",
            "containers": [remover],
            "volumes": [{"name": VOLUME, "persistentVolumeClaim": {"claimName": self.directory.name}}],
        }
        return {
            "apiVersion": JOBS.api_version,
            "kind": JOBS.kind,
            "metadata": {"generateName": f"{name[:_LONGEST_STEM]}-checkpoints-", "namespace": namespace},
            "spec": {
                "backoffLimit": 1,
                "activeDeadlineSeconds": _SECONDS,
                "ttlSecondsAfterFinished": _SECONDS,
                "template": {"spec": spec},
            },
        }


async def _jobset(client: Client, job: Object) -> Object | None:
    try:
        jobset = await client.get(JOBSETS, name_of(job), namespace_of(job))
    except NotFoundError:
        return None
    return jobset if is_controlled_by(jobset, job) else None


def _stated(job: Object) -> Claim | None:
    claim = stated_claim(job)
    return None if claim is None else claim.directory_of(name_of(job), uid_of(job))


async def _end_of(client: Client, job: Object, clock: Clock) -> Object:
    """The Job when it has ended or is gone."""
    last, ended = job, anyio.Event()

    def see(present: Object) -> None:
        nonlocal last
        last = present
        if any(is_condition_true(present, end) for end in ("Complete", "Failed")):
            ended.set()

    async with anyio.create_task_group() as tasks:
        selection = Selection(namespace_of(job), field_selector=f"metadata.name={name_of(job)}")
        watch_for(Receiver(tasks, see, lambda _: ended.set()), client, JOBS, selection, clock, known=[job])
        await ended.wait()
        tasks.cancel_scope.cancel()
    return last
