"""A fake API server whose TrainJobs have a scale subresource."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from trainer.kube.client import ObjectRequest
from trainer.kube.objects import Object, ObjectKey
from trainer_kube_testing import FakeClient


class ScalableClient(FakeClient):
    """Turns a patch of a scale into one of the field at `specReplicasPath` of the definition."""

    def _act(self, request: ObjectRequest, key: ObjectKey, sent: Any) -> Object | None:
        if request.subresource == "scale":
            sent = {"spec": {"trainer": {"numNodes": sent["spec"]["replicas"]}}}
            request = replace(request, subresource=None)
        return super()._act(request, key, sent)
