"""What users may do to a TrainJob on its page, if they have the right to."""

from __future__ import annotations

from typing import Final

from trainer.api.trainjob import TRAIN_JOBS
from trainer.explain.decision import set_suspend
from trainer.kube.access import resource_attributes
from trainer.kube.client import Client, DeleteOptions, Propagation
from trainer.kube.errors import ConflictError
from trainer.kube.objects import Object, ObjectKey, uid_of
from trainer.kube.resource import Resource

FIELD_MANAGER: Final = "trainer-dashboard"
"""Field manager of what is changed on the page."""
_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)


async def may(client: Client, verb: str, resource: Resource, key: ObjectKey, *, subresource: str = "") -> bool:
    """Whether the user of the client may do this; with an empty name to any, with an empty namespace in all of them.

    Raises:
        KubeError: the API server does not say.
    """
    spec = resource_attributes(verb, resource, key, subresource)
    review = {"apiVersion": _REVIEWS.api_version, "kind": _REVIEWS.kind, "metadata": {}, "spec": spec}
    status = (await client.create(_REVIEWS, review)).get("status") or {}
    return status.get("allowed") is True


class Actions:
    """Changes of TrainJobs; the API server checks each."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def rights(self, key: ObjectKey) -> Object:
        """Which of them the user may do, so that the page offers no others; without a name to all in the namespace.

        Raises:
            KubeError: the API server does not say.
        """
        return {
            "suspend": await may(self._client, "patch", TRAIN_JOBS, key),
            "delete": await may(self._client, "delete", TRAIN_JOBS, key),
            "create": await may(self._client, "create", TRAIN_JOBS, ObjectKey(key.namespace, "")),
        }

    async def set_suspend(self, key: ObjectKey, uid: str, *, suspend: bool) -> None:
        """Suspend or resume the TrainJob with this uid, and no other of its name, where it is decided whether it runs.

        Raises:
            KubeError: the API server refuses it, or there is nothing to do.
        """
        train_job = await self._client.get(TRAIN_JOBS, key.name, key.namespace)
        if uid_of(train_job) != uid:
            raise ConflictError(409, f"TrainJob {key.name} is another one now: load its page again")
        decision = await set_suspend(self._client, train_job, suspend=suspend, field_manager=FIELD_MANAGER)
        if not decision.is_changed:
            raise ConflictError(409, decision.remark)

    async def scale(self, key: ObjectKey, uid: str, *, nodes: int) -> None:
        """Change the number of nodes of the TrainJob with this uid, and of no other of its name.

        Raises:
            KubeError: the API server refuses it, since the number is out of bounds or may not change now.
        """
        patch = {"metadata": {"uid": uid}, "spec": {"trainer": {"numNodes": nodes}}}
        await self._client.patch(TRAIN_JOBS, key.name, patch, key.namespace, field_manager=FIELD_MANAGER)

    async def delete(self, key: ObjectKey, uid: str) -> None:
        """Delete the TrainJob with this uid and, in the background, all that was made for it.

        Raises:
            KubeError: the API server refuses it.
        """
        options = DeleteOptions(propagation=Propagation.BACKGROUND, uid=uid)
        await self._client.delete(TRAIN_JOBS, key.name, key.namespace, options)
