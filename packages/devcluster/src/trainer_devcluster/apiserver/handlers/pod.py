"""Subresources of pods: log and binding."""

from __future__ import annotations

from contextlib import aclosing

from aiohttp import web

from trainer.kube.errors import ApiError
from trainer.kube.field_errors import FieldError
from trainer.kube.merge_patch import writable_copy
from trainer.kube.objects import Object, find_condition, is_being_deleted
from trainer_devcluster.apiserver.admission.attributes import Operation
from trainer_devcluster.apiserver.definitions.routing import Target
from trainer_devcluster.apiserver.handlers.call import Call, answer
from trainer_devcluster.apiserver.objects.decoding import read_as
from trainer_devcluster.apiserver.reads import reading
from trainer_devcluster.apiserver.reads.pod_logs import ContainerRunLog, log_parameters
from trainer_kube_testing.api_semantics import statuses


async def log(call: Call) -> web.StreamResponse:
    """GET of a container's log, as plain text that grows while it is followed."""
    parameters = log_parameters(call.query, call.backend.clock.now())
    source = ContainerRunLog(call.backend, reading.get(call.backend, call.target), parameters)
    response = web.StreamResponse(headers={"Content-Type": "text/plain"})
    await call.begin(response)
    async with aclosing(source.chunks()) as chunks:
        async for chunk in chunks:
            await response.write(chunk)
    await response.write_eof()
    return response


async def bind(call: Call) -> web.StreamResponse:
    """POST of a binding: assigns the pod to a node."""
    write = call.write()
    body, _ = await call.decoded()
    binding = await call.writer.review(write, Operation.CREATE, _named(read_as("v1", "Binding", body), call.target))
    node = (binding.get("target") or {}).get("name")
    if not node:
        cause = FieldError("target.name", "Required value", "FieldValueRequired")
        raise statuses.invalid("Binding", "", call.target.name, [cause])
    now = call.backend.now()
    await call.writer.update(write, lambda pod: _bound(writable_copy(pod), node, now), operation=None)
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    return answer(body, 201, warnings=write.warnings.texts)


def _named(binding: Object, target: Target) -> Object:
    metadata = {**(binding.get("metadata") or {}), "name": target.name, "namespace": target.namespace}
    return {"kind": "Binding", "apiVersion": "v1", **binding, "metadata": metadata}


def _bound(pod: Object, node: str, now: str) -> Object:
    name = pod["metadata"]["name"]
    if is_being_deleted(pod):
        raise _conflict(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if pod["spec"].get("nodeName"):
        raise _conflict(name, f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"')
    pod["spec"]["nodeName"] = node
    conditions = pod.setdefault("status", {}).setdefault("conditions", [])
    scheduled = find_condition(pod, "PodScheduled")
    if scheduled is not None:
        conditions.remove(scheduled)
    conditions.append({"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now})
    return pod


def _conflict(name: str, message: str) -> ApiError:
    text = f'Operation cannot be fulfilled on pods/binding "{name}": {message}'
    return statuses.failure(409, "Conflict", text, {"name": name, "kind": "pods/binding"})
