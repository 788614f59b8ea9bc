"""The pods/log endpoint: which container's which run is meant, and its text as it grows."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, timedelta

import anyio

from trainer.kube.clock import parse_timestamp
from trainer.kube.field_errors import FieldError, invalid
from trainer.kube.objects import Object, key_of, name_of, uid_of
from trainer.kube.resource import PODS
from trainer_devcluster.apiserver.backend import Backend
from trainer_devcluster.apiserver.container_logs import CHUNK_BYTES, LogFilter, RunLogReader
from trainer_devcluster.apiserver.storage.storage import Partition
from trainer_devcluster.apiserver.wire.params import boolean, integer
from trainer_devcluster.log_paths import log_path
from trainer_kube_testing.api_semantics import statuses

ALL_STREAMS = "All"
_PARTITION = Partition.of(PODS)

_LONGEST_SINCE = 50 * 365 * 24 * 3600
"""Seconds; no log is older, and moments need a year."""


@dataclass(frozen=True, slots=True)
class LogParameters:
    """Query parameters of the endpoint."""

    container: str
    follow: bool
    previous: bool
    timestamps: bool
    since: datetime | None
    tail_lines: int | None
    limit_bytes: int | None


def log_parameters(query: Mapping[str, str], now: datetime) -> LogParameters:
    """The checked query parameters.

    Raises:
        ApiError: 400 for values that cannot be read, 422 for values that make no sense.
    """
    since_seconds, limit_bytes = integer(query, "sinceSeconds"), integer(query, "limitBytes")
    tail_lines = integer(query, "tailLines")
    since_time, stream = query.get("sinceTime") or None, query.get("stream") or ALL_STREAMS
    causes = []
    if tail_lines is not None and tail_lines < 0:
        causes.append(invalid("tailLines", tail_lines, "must be greater than or equal to 0"))
    if limit_bytes is not None and limit_bytes < 1:
        causes.append(invalid("limitBytes", limit_bytes, "must be greater than 0"))
    if since_seconds is not None and since_time is not None:
        message = "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified"
        causes.append(FieldError("", message, "FieldValueForbidden"))
    elif since_seconds is not None and since_seconds < 1:
        causes.append(invalid("sinceSeconds", since_seconds, "must be greater than 0"))
    if stream != ALL_STREAMS:
        message = (
            f'Unsupported value: "{stream}": the dev cluster keeps both streams as one: leave it out, or say "All"'
        )
        causes.append(FieldError("stream", message, "FieldValueNotSupported"))
    if causes:
        raise statuses.invalid("PodLogOptions", "", "", causes)
    since = now - timedelta(seconds=min(since_seconds, _LONGEST_SINCE)) if since_seconds is not None else None
    if since_time is not None:
        try:
            # An API server asks the kubelet for whole seconds, whatever it was asked for itself.
            since = parse_timestamp(since_time).replace(microsecond=0)
        except ValueError as error:
            raise statuses.bad_request(f"sinceTime: Invalid value: {since_time!r}: {error}") from error
    return LogParameters(
        container=query.get("container", ""),
        follow=boolean(query, "follow"),
        previous=boolean(query, "previous"),
        timestamps=boolean(query, "timestamps"),
        since=since,
        tail_lines=tail_lines,
        limit_bytes=limit_bytes,
    )


class ContainerRunLog:
    """The log of one run of one container of a pod."""

    def __init__(self, backend: Backend, pod: Object, parameters: LogParameters) -> None:
        """Choose the container and its run.

        Raises:
            ApiError: 400, the container is not named, unknown, has not started, or has no previous run.
        """
        self._backend = backend
        self._key, self._uid = key_of(pod), uid_of(pod)
        self._parameters = parameters
        self._container = choose_container(pod, parameters.container)
        self._attempt = choose_attempt(pod, self._container, previous=parameters.previous)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Text as it becomes available; ends at the end of the file or, when following, with the run."""
        budget = self._parameters.limit_bytes
        async with aclosing(self._texts()) as texts:
            async for text in texts:
                if budget is None:
                    yield text
                    continue
                yield text[:budget]
                budget -= len(text)
                if budget <= 0:
                    return

    async def _texts(self) -> AsyncGenerator[bytes, None]:
        parameters = self._parameters
        path = log_path(self._backend.data_dir, self._uid, self._container, self._attempt)
        reader = RunLogReader(path, LogFilter(parameters.timestamps, parameters.since, parameters.tail_lines))
        while True:
            over = not parameters.follow or self._is_over()
            while text := await anyio.to_thread.run_sync(reader.read):
                yield text
            if over:
                return
            while text := await self._backend.log_growth.more(reader, self._is_over):
                yield text
                if len(text) > CHUNK_BYTES // 2:  # there may be more than comes with the next look
                    break

    def _is_over(self) -> bool:
        pod = self._backend.storage.get(_PARTITION, self._key)
        if pod is None or uid_of(pod) != self._uid:
            return True
        container_status = _status_of(pod, self._container)
        if container_status is None:
            return True
        running = "running" in (container_status.get("state") or {})
        return not running or (container_status.get("restartCount") or 0) != self._attempt


def choose_container(pod: Object, name: str) -> str:
    """The named container, or the only one.

    Raises:
        ApiError: 400, there are several and none is named, or none has the name.
    """
    spec = pod.get("spec") or {}
    containers = [container["name"] for container in spec.get("containers") or []]
    init_containers = [container["name"] for container in spec.get("initContainers") or []]
    if not name:
        if len(containers) == 1 and not init_containers:
            return str(containers[0])
        message = f"a container name must be specified for pod {name_of(pod)}, choose one of: [{' '.join(containers)}]"
        if init_containers:
            message += f" or one of the init containers: [{' '.join(init_containers)}]"
        raise statuses.bad_request(message)
    if name not in containers + init_containers:
        raise statuses.bad_request(f"container {name} is not valid for pod {name_of(pod)}")
    return name


def choose_attempt(pod: Object, container: str, *, previous: bool) -> int:
    """The restart count of the run whose log is meant: the present or last one, or the one before.

    Raises:
        ApiError: 400, there has been no such run.
    """
    container_status = _status_of(pod, container)
    if container_status is None:
        raise statuses.bad_request(f'container "{container}" in pod "{name_of(pod)}" is waiting to start - no logs yet')
    count = int(container_status.get("restartCount") or 0)
    state = container_status.get("state") or {}
    has_terminated = bool((container_status.get("lastState") or {}).get("terminated"))
    waiting = not ("running" in state or "terminated" in state)
    if previous:
        if not has_terminated:
            message = f'previous terminated container "{container}" in pod "{name_of(pod)}" not found'
            raise statuses.bad_request(message)
        return count if waiting else count - 1
    if waiting and not has_terminated:
        reason = (state.get("waiting") or {}).get("reason")
        suffix = f": {reason}" if reason else " - no logs yet"
        raise statuses.bad_request(f'container "{container}" in pod "{name_of(pod)}" is waiting to start{suffix}')
    return count


def _status_of(pod: Object, container: str) -> Object | None:
    pod_status = pod.get("status") or {}
    entries = [*(pod_status.get("containerStatuses") or []), *(pod_status.get("initContainerStatuses") or [])]
    return next((entry for entry in entries if entry.get("name") == container), None)
