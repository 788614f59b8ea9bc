"""A client for a cluster that serves v1alpha1: its users see TrainJobs and runtimes converted to v2alpha1."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any, Final

import msgspec

from trainer.api.runtime_snapshot import SNAPSHOT_KEY, SNAPSHOT_LABEL, read_text, text_of
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.api.trainjob_status import ConditionType
from trainer.kube.client import (
    DEFAULT_LIST,
    DEFAULT_LOG,
    DEFAULT_WATCH,
    Client,
    EventType,
    ListOptions,
    LogOptions,
    ObjectList,
    ObjectRequest,
    PatchType,
    Verb,
    WatchEvent,
    WatchOptions,
)
from trainer.kube.errors import InvalidError
from trainer.kube.logger import get_logger
from trainer.kube.objects import Object, annotations_of, find_condition, labels_of, metadata_of, name_of, uid_of
from trainer.kube.resource import CONFIG_MAPS, Resource
from trainer.kube.selection import EVERYTHING, Selection
from trainer.v1alpha1.decode import API_VERSION, decode, is_decodable, restored_runtime
from trainer.v1alpha1.status import (
    FURTHER_CONDITIONS,
    decode_status,
    encode_status,
    extension_annotation,
    is_resumed,
    with_extension,
)

log = get_logger(__name__)

SERVED: Final = {
    resource: msgspec.structs.replace(resource, version="v1alpha1")
    for resource in (TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)
}
"""What the cluster serves for each resource of the model."""

_json = msgspec.json.Decoder(dict[str, Any])


class V1Alpha1Client(Client):
    """Translates requests about TrainJobs, runtimes and their snapshots; all others pass unchanged.

    What it answers has the shape of the model and the apiVersion v1alpha1, so that owner references and events name
    the objects as the cluster knows them. It encodes status alone: a spec that is written must have fields that both
    versions have, such as `suspend`, or be encoded already (`trainer.v1alpha1.encode`).

    Args:
        client: of the cluster.
        is_extended: whether the CRDs have the optional fields of config/v1alpha1/crd; otherwise what they do not keep
            of a status is written into an annotation.
    """

    def __init__(self, client: Client, *, is_extended: bool) -> None:
        self._client = client
        self._is_extended = is_extended

    async def send(self, request: ObjectRequest) -> Object | None:
        """See `Client.send`."""
        if request.resource == CONFIG_MAPS:
            return await self._send_config_map(request)
        served = SERVED.get(request.resource)
        if served is None:
            return await self._client.send(request)
        if request.verb is Verb.APPLY and request.subresource == "status":
            return await self._apply_status(replace(request, resource=served))
        body = request.body
        if isinstance(body, dict) and "apiVersion" in body:
            body = body | {"apiVersion": API_VERSION}
        answer = await self._client.send(replace(request, resource=served, body=body))
        return answer if answer is None else self._decoded(answer)

    async def _send_config_map(self, request: ObjectRequest) -> Object | None:
        """A snapshot of a runtime is stored in v1alpha1, so that Kubeflow Trainer (Go) can read it."""
        if isinstance(request.body, dict):
            request = replace(request, body=_with_runtime(request.body, restored_runtime))
        answer = await self._client.send(request)
        return answer if answer is None else _with_runtime(answer, decoded)

    async def list_page(
        self, resource: Resource, selection: Selection = EVERYTHING, options: ListOptions = DEFAULT_LIST
    ) -> ObjectList:
        """See `Client.list_page`."""
        if resource not in SERVED:
            return await self._client.list_page(resource, selection, options)
        return self._decoded_list(await self._client.list_page(SERVED[resource], selection, options))

    async def list(self, resource: Resource, selection: Selection = EVERYTHING) -> ObjectList:
        """See `Client.list`."""
        if resource not in SERVED:
            return await self._client.list(resource, selection)
        return self._decoded_list(await self._client.list(SERVED[resource], selection))

    def watch(
        self, resource: Resource, selection: Selection = EVERYTHING, options: WatchOptions = DEFAULT_WATCH
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """See `Client.watch`."""
        if resource not in SERVED:
            return self._client.watch(resource, selection, options)
        return self._watch(SERVED[resource], selection, options)

    def logs(
        self, pod: str, namespace: str, options: LogOptions = DEFAULT_LOG
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """See `Client.logs`."""
        return self._client.logs(pod, namespace, options)

    @asynccontextmanager
    async def _watch(
        self, resource: Resource, selection: Selection, options: WatchOptions
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        async with self._client.watch(resource, selection, options) as events:
            yield self._decoded_events(events)

    def _decoded(self, obj: Object) -> Object:
        """An object in the shape of the model; annotations of before the CRDs were replaced do not count."""
        return decoded(obj, reads_annotations=not self._is_extended)

    def _decoded_list(self, page: ObjectList) -> ObjectList:
        items = [msgspec.json.encode(self._decoded(_json.decode(raw))) for raw in page.raw_items]
        return replace(page, raw_items=items)

    async def _decoded_events(self, events: AsyncIterator[WatchEvent]) -> AsyncIterator[WatchEvent]:
        async for event in events:
            yield event if event.type is EventType.BOOKMARK else WatchEvent.of(event.type, self._decoded(event.object))

    async def _apply_status(self, request: ObjectRequest) -> Object:
        assert isinstance(request.body, dict)
        assert request.field_manager is not None
        whole = request.body.get("status") or {}
        shared, extension = encode_status(whole)
        hidden = next((each for each in extension.get(FURTHER_CONDITIONS, ()) if is_resumed(each)), None)
        try:
            answer = await self._send_status(request, shared, extension)
        except InvalidError:
            if hidden is None:
                raise
            # Kubeflow Trainer (Go) has written the condition: what is left of it without ours is incomplete.
            shown, _ = encode_status(whole, shows_resumed=True)
            answer = await self._send_status(request, shown, extension)
        if not self._is_extended:
            answer = await self._annotate(request, answer, extension)
        if hidden is not None:
            answer = await self._hide_resumed(request, answer)
        return self._decoded(answer)

    async def _hide_resumed(self, request: ObjectRequest, present: Object) -> Object:
        """Take the condition Suspended of the Go manager out of a status whose extension says that it is resumed.

        What belongs to another field manager as well is not removed by an apply, and the column STATE of the CRDs
        of Kubeflow Trainer (Go) has the type of the last condition, whatever its status.
        """
        status = present.get("status") or {}
        conditions = status.get("conditions") or []
        index = next((index for index, each in enumerate(conditions) if each["type"] == ConditionType.SUSPENDED), None)
        if index is None or find_condition(self._without_conditions(present), ConditionType.SUSPENDED) is None:
            return present
        path = f"/status/conditions/{index}"
        is_all = len(conditions) == 1 and len(status) > 1  # the CRD demands at least one property
        operations = [
            {"op": "test", "path": "/metadata/uid", "value": uid_of(present)},
            {"op": "test", "path": f"{path}/type", "value": ConditionType.SUSPENDED},
            {"op": "remove", "path": "/status/conditions" if is_all else path},
        ]
        try:
            answer = await self._client.patch(
                request.resource,
                name_of(present),
                operations,
                request.namespace,
                patch_type=PatchType.JSON,
                subresource="status",
                field_manager=request.field_manager,
            )
        except InvalidError as error:
            log.info("left the condition Suspended of a resumed TrainJob, which has changed", error=str(error))
            return present
        return answer

    def _without_conditions(self, obj: Object) -> Object:
        """What is read of a TrainJob that has lost its conditions of v1alpha1."""
        status = {name: value for name, value in (obj.get("status") or {}).items() if name != "conditions"}
        return self._decoded(obj | {"status": status})

    async def _send_status(self, request: ObjectRequest, shared: Object, extension: Object) -> Object:
        assert isinstance(request.body, dict)
        status = with_extension(shared, extension) if self._is_extended else shared
        body = request.body | {"apiVersion": API_VERSION, "status": status}
        if not status:
            del body["status"]  # the CRD demands at least one property
        answer = await self._client.send(replace(request, body=body))
        assert answer is not None
        return answer

    async def _annotate(self, request: ObjectRequest, present: Object, extension: Object) -> Object:
        """Keep an extension in the annotation of its field manager, unless it is there already."""
        assert request.field_manager is not None
        name, value = extension_annotation(request.field_manager, uid_of(present), extension)
        if annotations_of(present).get(name) == value:
            return present
        assert isinstance(request.body, dict)
        metadata = metadata_of(request.body) | {"annotations": {name: value}}
        metadata.pop("resourceVersion", None)  # that of before the status was written
        body = {"apiVersion": API_VERSION, "kind": present["kind"], "metadata": metadata}
        try:
            answer = await self._client.send(replace(request, subresource=None, body=body))
        except InvalidError as error:
            # Annotations have a limit together, which the user's own may have used up.
            log.warning("could not annotate the TrainJob with its status", error=str(error))
            return present
        assert answer is not None
        return answer


def _with_runtime(config_map: Object, convert: Callable[[Object], Object]) -> Object:
    """A snapshot with the runtime in it converted; any other ConfigMap as it is."""
    text = (config_map.get("data") or {}).get(SNAPSHOT_KEY)
    if SNAPSHOT_LABEL not in labels_of(config_map) or not isinstance(text, str):
        return config_map
    try:
        runtime = read_text(text)
    except ValueError:
        return config_map
    if not isinstance(runtime, dict):
        return config_map
    return config_map | {"data": {SNAPSHOT_KEY: text_of(convert(runtime))}}


def decoded(obj: Object, *, reads_annotations: bool = True) -> Object:
    """An object of v1alpha1 in the shape of the model, with its own apiVersion; any other object as it is.

    Args:
        obj: as it is stored; it is not changed.
        reads_annotations: whether annotations extend the status of a TrainJob. Default: yes.
    """
    if not is_decodable(obj):
        return obj
    result = decode(obj).object
    result["apiVersion"] = API_VERSION
    if (
        obj.get("kind") == TRAIN_JOBS.kind
        and (status := decode_status(obj, reads_annotations=reads_annotations)) is not None
    ):
        result["status"] = status
    return result
