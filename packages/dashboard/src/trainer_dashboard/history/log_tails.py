"""The last lines of each container's log, read when the container has ended or its pod is about to go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import Connection

from trainer.api.jobset_pods import node_name, recency_of
from trainer.kube.client import Client, LogOptions
from trainer.kube.clock import Clock, move_on_after
from trainer.kube.errors import KubeError
from trainer.kube.logger import get_logger
from trainer.kube.objects import Object, is_being_deleted, uid_of
from trainer.progress.containers import StartedContainer, restarts_of, started_containers
from trainer.progress.primary import container_state, primary_pod
from trainer.workloads.containers import container_status
from trainer_dashboard.history.content import compressed
from trainer_dashboard.history.database import Database
from trainer_dashboard.history.errors import HistoryError
from trainer_dashboard.history.persistence import Persistence
from trainer_dashboard.history.records import has_log_tail
from trainer_dashboard.history.schema import LOG_TAILS
from trainer_dashboard.history.statements import put
from trainer_dashboard.recipe.secret_forms import clean_text

log = get_logger(__name__)

LINES = 200
"""Lines of a log that are kept."""
BYTES = 64 * 1024
"""Bytes of all of them."""
_LONGEST_LINE = 4096
_READ_LIMIT = 16 * 1024 * 1024
"""Bytes after which reading stops, of a log with very long lines."""
_TIME_LIMIT = 20.0
"""Seconds for reading one log."""
_ATTEMPTS = 3
_PAUSE = 2.0
"""Seconds before another attempt."""


@dataclass(frozen=True, slots=True)
class EndedLog:
    """A log whose last lines are to be kept."""

    uid: str
    """Of the TrainJob."""
    container: StartedContainer
    node: str
    run: str
    """Pod, restarts of the container, and whether it has ended: what was read before its end is read again after it."""
    is_training: bool
    """Whether it is the container of its pod that trains."""
    is_primary: bool
    """Whether it is the one that reports for the training."""


def ended_logs(job: Object, jobset: Object, pods: Sequence[Object]) -> Iterator[EndedLog]:
    """The containers of the newest pod of each node that have ended, or whose pod is being deleted."""
    primary = primary_pod(pods, jobset)
    for pod in {node_name(pod): pod for pod in sorted(pods, key=recency_of)}.values():
        main = container_state(pod, jobset, job).container
        for started in started_containers(pod):
            has_ended = "terminated" in (container_status(pod, started.container).get("state") or {})
            if not has_ended and not is_being_deleted(pod):
                continue
            run = f"{started.pod_uid} {restarts_of(pod, started.container)} {'ended' if has_ended else 'leaving'}"
            is_training = started.container == main
            is_primary = is_training and primary is not None and uid_of(primary) == uid_of(pod)
            yield EndedLog(uid_of(job), started, node_name(pod), run, is_training, is_primary)


class LogTails:
    """Reads logs and writes their last lines."""

    def __init__(self, client: Client, database: Database, persistence: Persistence, clock: Clock) -> None:
        self._client = client
        self._database = database
        self._persistence = persistence
        self._clock = clock

    async def keep(self, ended: EndedLog) -> bool:
        """Keep the last lines of a log, unless they are kept; False, and a log event, if the log cannot be read."""
        if await self._is_kept(ended):
            return True
        content = await self._read(ended.container)
        if content is None:
            return False
        await self._persistence.run(partial(_store, ended=ended, content=content))
        return True

    async def _is_kept(self, ended: EndedLog) -> bool:
        key = ended.uid, ended.node, ended.container.container, ended.run
        try:
            return await self._database.run(lambda connection: has_log_tail(connection, *key))
        except HistoryError:
            return False  # the log is read now, since the pod may be gone when the database is back

    async def _read(self, started: StartedContainer) -> bytes | None:
        """The end of a log; None if it cannot be read."""
        problem: object = "it took too long"
        for attempt in range(_ATTEMPTS):
            if attempt:
                await self._clock.sleep(_PAUSE)
            async with move_on_after(self._clock, _TIME_LIMIT):
                try:
                    return await self._end_of(started)
                except KubeError as error:
                    problem = error
        log.info("could not read log", pod=started.pod, container=started.container, error=str(problem))
        return None

    async def _end_of(self, started: StartedContainer) -> bytes:
        options = LogOptions(started.container, timestamps=True, tail_lines=LINES)
        kept, size = bytearray(), 0
        async with self._client.logs(started.pod, started.namespace, options) as chunks:
            async for chunk in chunks:
                kept += chunk
                size += len(chunk)
                del kept[: -2 * BYTES]
                if size > _READ_LIMIT:
                    break
        return bytes(kept)


def _store(connection: Connection, ended: EndedLog, content: bytes) -> None:
    row: dict[str, Any] = {
        "uid": ended.uid,
        "node": ended.node,
        "container": ended.container.container,
        "pod": ended.container.pod,
        "run": ended.run,
        "is_training": ended.is_training,
        "is_primary": ended.is_primary,
        "content": compressed(last_lines(content)),
    }
    put(connection, LOG_TAILS, [row])


def last_lines(content: bytes) -> list[str]:
    """The last whole lines of a log, each `<timestamp> <text>`, without what has the form of a secret."""
    text = content.decode(errors="replace").replace("\0", "")
    lines = [line[:_LONGEST_LINE] for line in text.split("\n")][-LINES - 1 :]
    size = 0
    for index in range(len(lines) - 1, -1, -1):
        size += len(lines[index].encode()) + 1
        if size > BYTES:
            lines = lines[index + 1 :]
            break
    return [line.rstrip("\r") for line in clean_text("\n".join(lines)).removesuffix("\n").split("\n")]
