"""What can be found out about a failure: which container it was, and the last lines that it has written.

The cluster may have removed the pod, or not let us read its log; then that is missing, and nothing else: the status of
the TrainJob never waits for it for long. The lines are the user's own, and stay in the user's namespace.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import structlog

from trainer.api.jobset_labels import JOBSET_NAME
from trainer.api.jobset_pods import is_made_by
from trainer.api.progress_tags import TAG_END, without_message
from trainer.framework.plugin_api.failure import failed_jobs, first_failure
from trainer.kube.client import LogOptions
from trainer.kube.clock import move_on_after
from trainer.kube.errors import KubeError
from trainer.kube.objects import controller_of, labels_of, metadata_of
from trainer.kube.resource import JOBS, PODS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.framework.plugin_api.extension_points import Outcome
    from trainer.framework.plugin_api.failure import FailedContainer
    from trainer.kube.client import Client
    from trainer.kube.clock import Clock
    from trainer.kube.objects import Object
    from trainer.kube.selection import Selection

log = structlog.get_logger(__name__)

TIME_LIMIT = 2.0
"""Seconds for each question to the cluster."""
LINES = 10
"""How many lines are kept; a traceback says most in its last ones."""
_FACTOR = 16
"""So many times more lines are asked for where too few of the last ones are shown."""
SIZE_LIMIT = 2048
"""Bytes of all lines together, which every `kubectl get -o yaml` of the TrainJob shows."""

_LINE_LIMIT = 400
_KEPT = 64 * 1024
"""Bytes of shown lines from the end: a progress bar makes one long line of all its shapes."""
_READ_LIMIT = 4 * 1024 * 1024
"""Bytes after which no line end is to be hoped for."""
_ESCAPE = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|[@-Z\\^_])")
"""Colours, cursor movements and titles of terminals (ECMA-48)."""


class _End(NamedTuple):
    """The end of a log."""

    shown: bytes
    """What people read of it."""
    lines: int
    """How many lines it has, those included that people do not read."""
    is_cut: bool
    """Whether more was there than is read."""


class FailureLog:
    """Asks the cluster about failures."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def explain(self, outcome: Outcome, *, since: str = "", earlier: str = "") -> Outcome:
        """The outcome with its culprit, if the plugin has not named one and the cluster still knows of one.

        Args:
            outcome: how the TrainJob failed.
            since: timestamp of its creation: older pods belong to another of the same name. Default: all pods count.
            earlier: what was told about its last restart, for when the cluster knows of nobody any more.
        """
        if outcome.culprit is not None or outcome.jobs is None:
            return outcome
        found: Outcome | None = None
        async with move_on_after(self._clock, TIME_LIMIT):
            try:
                found = await self._search(outcome, outcome.jobs, since, earlier)
            except KubeError as error:
                log.info("could not look for the pod that failed", error=str(error))
        return found or outcome

    async def tail(self, culprit: FailedContainer, namespace: str) -> tuple[str, ...]:
        """The last lines of a container's log without messages about progress; none if it cannot be read in time."""
        if not culprit.container:
            return ()
        data, asked = b"", LINES
        async with move_on_after(self._clock, TIME_LIMIT):
            try:
                while True:
                    end = await self._read(culprit, namespace, asked)
                    data = data if end.is_cut and data else end.shown
                    if end.is_cut or end.lines < asked or len(_shown_lines(data)) >= LINES:
                        break
                    asked *= _FACTOR
            except KubeError as error:
                log.info("could not read the log of the container that failed", pod=culprit.pod, error=str(error))
        return last_lines(data)

    async def _search(self, outcome: Outcome, selection: Selection, since: str, earlier: str) -> Outcome:
        pods = await self._client.list(PODS, selection)
        culprit = first_failure(pod for pod in pods.items if _is_of_job(pod, since))
        if culprit is not None:
            return replace(outcome, culprit=culprit)
        jobs = await self._client.list(JOBS, selection)
        left = [*failed_jobs(jobs.items)[:1], "no failed pod is left that would say more"]
        left += [f"before that: {earlier}"] if earlier else []
        return replace(outcome, message="; ".join([outcome.message, *left]))

    async def _read(self, culprit: FailedContainer, namespace: str, count: int) -> _End:
        options = LogOptions(container=culprit.container, tail_lines=count)
        shown = rest = b""
        size = lines = 0
        async with self._client.logs(culprit.pod, namespace, options) as chunks:
            async for chunk in chunks:
                whole, end, rest = (rest + chunk).rpartition(b"\n")
                shown, rest = (shown + _without_messages(whole + end))[-_KEPT:], rest[-_KEPT:]
                size, lines = size + len(chunk), lines + chunk.count(b"\n")
                if size > _READ_LIMIT:
                    break
        return _End(shown + _without_messages(rest), lines + bool(rest), size > _READ_LIMIT)


def _is_of_job(pod: Object, since: str) -> bool:
    if metadata_of(pod).get("creationTimestamp", since) < since:
        return False
    owner, labels = controller_of(pod) or {}, labels_of(pod)
    if JOBSET_NAME not in labels:  # of the Jobs of another plugin
        return owner.get("kind") == "Job"
    return is_made_by(owner.get("kind"), owner.get("name"), labels)


def _without_messages(block: bytes) -> bytes:
    """Whole lines without the messages by which a training tells programs of its progress."""
    if TAG_END not in block:
        return block
    shown = (without_message(line) for line in block.split(b"\n"))
    return b"\n".join(line for line in shown if line is not None)


def _shown_lines(data: bytes) -> list[str]:
    return [line for line in _lines(data.decode(errors="replace")) if line][-LINES:]


def last_lines(data: bytes) -> tuple[str, ...]:
    """The last lines of a log as text without anything that a terminal would obey; blank ones are left out."""
    lines = _shown_lines(data)
    while sum(len(line.encode()) + 1 for line in lines) > SIZE_LIMIT:
        del lines[0]
    return tuple(lines)


def _lines(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        # What a program has overwritten itself is not what it said in the end.
        shapes = [shape for shape in map(_plain, line.split("\r")) if shape]
        yield shapes[-1][:_LINE_LIMIT] if shapes else ""


def _plain(text: str) -> str:
    spaced = _ESCAPE.sub("", text).replace("\t", "    ")
    return "".join(char for char in spaced if unicodedata.category(char) not in _UNSEEN).rstrip()


_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories of control characters, line separators and what has no meaning."""
