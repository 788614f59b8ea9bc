"""Finds the container that failed, and reads the last lines of its log.

If the pod is gone, or its log cannot be read in time, the status is written without them. The lines stay in the
namespace of the TrainJob.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from trainer.api.jobset_labels import JOBSET_NAME
from trainer.api.jobset_pods import is_made_by
from trainer.api.progress_tags import TAG_END, without_message
from trainer.controllers.launcher_reports import without_reports
from trainer.framework.plugin_api.failure import FailedContainer, failed_jobs, failures_in_order, has_own_reason
from trainer.framework.plugin_api.reports import Outcome
from trainer.kube.client import Client, LogOptions
from trainer.kube.clock import Clock, move_on_after
from trainer.kube.errors import KubeError
from trainer.kube.logger import get_logger
from trainer.kube.objects import Object, controller_of, labels_of, metadata_of
from trainer.kube.resource import JOBS, PODS
from trainer.kube.selection import Selection
from trainer.workloads.killed_child import killed_child

log = get_logger(__name__)

TIME_LIMIT = 2.0
"""Seconds for finding the container, and again for reading its log."""
LINES = 10
"""Number of lines that are kept, enough for the end of a traceback."""
_FACTOR = 16
"""The number of requested lines grows by this factor while too few of them are shown."""
SIZE_LIMIT = 2048
"""Bytes of all lines; they are part of the status."""

_OTHERS = 3
"""Logs of other containers that are read when the first one only says that it has lost the others."""
_LINE_LIMIT = 400
_KEPT = 64 * 1024
"""Bytes of shown lines from the end; a progress bar is one long line."""
_READ_LIMIT = 4 * 1024 * 1024
"""Bytes after which reading stops."""
_ESCAPE = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|[@-Z\\^_])")
"""Colours, cursor movements and titles of terminals (ECMA-48)."""


class _End(NamedTuple):
    shown: bytes
    """The lines without progress messages."""
    lines: int
    """The number of lines, with progress messages."""
    is_cut: bool
    """Whether the read limit was reached."""


class FailureLog:
    """Reads pods and logs of failed TrainJobs."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def explain(self, outcome: Outcome, *, since: str = "", earlier: str = "") -> Outcome:
        """The outcome with the container that failed, if the plugin has not named it and its pod still exists.

        A pod that was deleted, and by nobody who is known, is not the cause where its Job says why it has failed.

        Args:
            outcome: how the TrainJob failed.
            since: timestamp of its creation; older pods belong to another TrainJob of the name. Defaults to any.
            earlier: the message of its last restart, used if no pod is left. Defaults to none.
        """
        if outcome.jobs is None or (outcome.culprit is not None and not outcome.culprit.may_be_of_job):
            return outcome
        found: Outcome | None = None
        async with move_on_after(self._clock, TIME_LIMIT):
            try:
                found = await self._search(outcome, outcome.jobs, since, earlier)
            except KubeError as error:
                log.info("could not look for the pod that failed", error=str(error))
        return found or outcome

    async def trace(
        self, outcome: Outcome, namespace: str, *, since: str = "", earlier: str = ""
    ) -> tuple[Outcome, tuple[str, ...]]:
        """The outcome with the container that failed, as by `explain`, and the last lines of its log.

        A program that has lost the connection to another one is not the cause where the log of another says more, or
        another pod was disrupted: the times of ends have a resolution of a second, and a launcher may end late.
        """
        outcome = await self.explain(outcome, since=since, earlier=earlier)
        culprit = outcome.culprit
        if culprit is None:
            return outcome, ()
        lines = await self.tail(culprit, namespace)
        culprit = culprit.after(lines)
        found = replace(outcome, culprit=culprit), lines
        if outcome.jobs is None or not culprit.has_lost_another(lines):
            return found
        for other in await self._others(culprit, outcome.jobs, since):
            said = await self.tail(other, namespace)
            if other.is_taken_away or ((said or other.said) and not other.has_lost_another(said)):
                return replace(outcome, culprit=other.after(said)), said
        return found

    async def tail(self, culprit: FailedContainer, namespace: str, *, previous: bool = False) -> tuple[str, ...]:
        """The last lines of a container's log without progress messages; none if it cannot be read in time.

        Args:
            culprit: the container.
            namespace: of its pod.
            previous: whether to read what it wrote before it was started again. Default: False.
        """
        if not culprit.container:
            return ()
        data, asked = b"", LINES
        async with move_on_after(self._clock, TIME_LIMIT):
            try:
                while True:
                    end = await self._read(culprit, namespace, asked, previous=previous)
                    data = data if end.is_cut and data else end.shown
                    if end.is_cut or end.lines < asked or len(without_reports(_shown_lines(data))) >= LINES:
                        break
                    asked *= _FACTOR
            except KubeError as error:
                log.info("could not read the log of the container that failed", pod=culprit.pod, error=str(error))
        return last_lines(data)

    async def _others(self, culprit: FailedContainer, selection: Selection, since: str) -> list[FailedContainer]:
        """Other pods that were disrupted, then containers that nobody has killed, the first one first."""
        failed: list[FailedContainer] = []
        async with move_on_after(self._clock, TIME_LIMIT):
            try:
                pods = await self._client.list(PODS, selection)
                failed = failures_in_order(pod for pod in pods.items if _is_of_job(pod, since))
            except KubeError as error:
                log.info("could not look for other pods that failed", error=str(error))
        others = [each for each in failed if each.pod != culprit.pod]
        disrupted = [each for each in others if each.disruption is not None]
        return [*disrupted[:1], *[each for each in others if each.container and not each.is_killed][:_OTHERS]]

    async def _search(self, outcome: Outcome, selection: Selection, since: str, earlier: str) -> Outcome:
        found = [] if outcome.culprit is None else [outcome.culprit]
        if not found:
            pods = (await self._client.list(PODS, selection)).items
            found = failures_in_order(pod for pod in pods if _is_of_job(pod, since))
        if found and not found[0].may_be_of_job:
            return replace(outcome, culprit=found[0])
        jobs = (await self._client.list(JOBS, selection)).items
        if found and not any(map(has_own_reason, jobs)):
            return replace(outcome, culprit=found[0])
        left = failed_jobs(jobs)[:1]
        if not found:
            left += ["no failed pod is left that would say more", *([f"before that: {earlier}"] if earlier else [])]
        return replace(outcome, culprit=None, message="; ".join([outcome.message, *left]))

    async def _read(self, culprit: FailedContainer, namespace: str, count: int, *, previous: bool) -> _End:
        options = LogOptions(container=culprit.container, tail_lines=count, previous=previous)
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
    if TAG_END not in block:
        return block
    shown = (without_message(line) for line in block.split(b"\n"))
    return b"\n".join(line for line in shown if line is not None)


def _shown_lines(data: bytes) -> list[str]:
    return [line for line in _lines(data.decode(errors="replace")) if line]


def last_lines(data: bytes) -> tuple[str, ...]:
    """The last lines of a log without control sequences of terminals, blank lines and reports of launchers.

    Of a report, the line stays that tells of a process that was killed: the process itself has said nothing of it.
    """
    shown = _shown_lines(data)
    lines = without_reports(shown) or shown
    killed = killed_child(shown)
    if killed is not None and killed.line not in {line.strip() for line in lines[-LINES:]}:
        lines = [*lines, killed.line]
    lines = lines[-LINES:]
    while sum(len(line.encode()) + 1 for line in lines) > SIZE_LIMIT:
        del lines[0]
    return tuple(lines)


def _lines(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        # A carriage return overwrites what comes before it in the line.
        shapes = [shape for shape in map(_plain, line.split("\r")) if shape]
        yield shapes[-1][:_LINE_LIMIT] if shapes else ""


def _plain(text: str) -> str:
    spaced = _ESCAPE.sub("", text).replace("\t", "    ")
    return "".join(char for char in spaced if unicodedata.category(char) not in _UNSEEN).rstrip()


_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories of control characters, line separators and unassigned code points."""
