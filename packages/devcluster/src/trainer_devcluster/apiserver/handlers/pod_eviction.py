"""The eviction of a pod: a deletion that says so on the pod (Kubernetes, "API-initiated Eviction")."""

from __future__ import annotations

from dataclasses import replace

from aiohttp import web

from trainer.kube.merge_patch import writable_copy
from trainer.kube.objects import Object, find_condition
from trainer_devcluster.apiserver.admission.attributes import Operation
from trainer_devcluster.apiserver.handlers.call import Call, answer
from trainer_devcluster.apiserver.objects.decoding import read_as
from trainer_devcluster.apiserver.wire.params import DeleteParameters, delete_parameters
from trainer_kube_testing.api_semantics import statuses

_CONDITION = "DisruptionTarget"


async def evict(call: Call) -> web.StreamResponse:
    """POST of an Eviction: marks the pod as the target of a disruption, then deletes it."""
    write = call.write()
    body, _ = await call.decoded()
    eviction = read_as("policy/v1", "Eviction", body)
    metadata = eviction.get("metadata") or {}
    if metadata.get("name") != call.target.name:
        raise statuses.bad_request("name in URL does not match name in Eviction object")
    eviction = {
        "kind": "Eviction",
        "apiVersion": "policy/v1",
        **eviction,
        "metadata": {**metadata, "namespace": call.target.namespace},
    }
    parameters = _parameters(eviction.get("deleteOptions"), dry_run=write.parameters.dry_run)
    await call.writer.review(write, Operation.CREATE, eviction)
    target = replace(call.target, subresource="", verb="delete")
    call.deleter.unreviewed.current(target, parameters)
    if not parameters.dry_run:
        now = call.backend.now()
        marking = call.write_of(replace(target, subresource="status", verb="update"))
        await call.writer.update(marking, lambda live: _marked(writable_copy(live), now), operation=None)
        # The mark has made a new version: that the client's one was the latest is known by now.
        parameters = replace(parameters, resource_version=None)
    call.deleter.unreviewed.delete(target, parameters)
    success = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    return answer(success, 201, warnings=write.warnings.texts)


def _parameters(options: Object | None, *, dry_run: bool) -> DeleteParameters:
    """The options in the Eviction; a dry run may be asked for there or in the query."""
    parameters = delete_parameters({}, options)
    return replace(parameters, dry_run=parameters.dry_run or dry_run)


def _marked(pod: Object, now: str) -> Object:
    conditions = pod.setdefault("status", {}).setdefault("conditions", [])
    present = find_condition(pod, _CONDITION)
    if present is not None:
        if present.get("status") == "True":
            now = present.get("lastTransitionTime") or now
        conditions.remove(present)
    conditions.append(
        {
            "type": _CONDITION,
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": now,
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }
    )
    return pod
