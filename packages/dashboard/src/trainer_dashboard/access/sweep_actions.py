"""What users may do to a sweep on its page, if they have the right to."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.client import Client, DeleteOptions, Propagation
from trainer.kube.errors import ConflictError
from trainer.kube.objects import Object, ObjectKey, mapping_at
from trainer.kube.resource import Resource
from trainer.v1alpha1.discovery import Served
from trainer_dashboard.access.actions import FIELD_MANAGER, may


@dataclass(frozen=True, slots=True)
class SweepActions:
    """Changes of OptimizationJobs; the API server checks each."""

    client: Client
    served: Served

    @property
    def resource(self) -> Resource:
        """OptimizationJobs in the version that the cluster serves."""
        return self.served.resource(OPTIMIZATION_JOBS)

    async def rights(self, key: ObjectKey) -> Object:
        """Which of them the user may do, and whether they may create a TrainJob beside it.

        Raises:
            KubeError: the API server does not say.
        """
        return {
            "suspend": await may(self.client, "patch", self.resource, key),
            "delete": await may(self.client, "delete", self.resource, key),
            "create": await may(self.client, "create", TRAIN_JOBS, ObjectKey(key.namespace, "")),
        }

    async def set_suspend(self, key: ObjectKey, uid: str, *, suspend: bool) -> None:
        """Suspend or resume the sweep with this uid, and no other of its name.

        Raises:
            KubeError: the API server refuses it, or does not keep the field.
        """
        patch = {"metadata": {"uid": uid}, "spec": {"suspend": suspend}}
        answer = await self.client.patch(self.resource, key.name, patch, key.namespace, field_manager=FIELD_MANAGER)
        if (mapping_at(answer, "spec").get("suspend") is True) != suspend:
            text = f"the CRD of this cluster has no spec.suspend: apply that of `trainer crds` to suspend {key.name}"
            raise ConflictError(409, text)

    async def delete(self, key: ObjectKey, uid: str) -> None:
        """Delete the sweep with this uid and, in the background, its trials.

        Raises:
            KubeError: the API server refuses it.
        """
        options = DeleteOptions(propagation=Propagation.BACKGROUND, uid=uid)
        await self.client.delete(self.resource, key.name, key.namespace, options)
