"""The TrainJob that `trainer.train` and `trainer.submit` return, for scripts and notebooks."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import NamedTuple, Self, TypeVar

from anyio.from_thread import start_blocking_portal
from rich.console import Console

from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.console import printable, writing_to
from trainer.cli.current_cluster import ConnectedCluster, open_cluster
from trainer.cli.errors import CommandError, GoneError
from trainer.cli.jobs.find import find_train_job
from trainer.cli.jobs.progress import short_value
from trainer.cli.jobs.state import JobState
from trainer.cli.jobs.watch import JobWatch
from trainer.cli.logs.choice import LogChoice, LogRequest
from trainer.cli.logs.logs import LogReader
from trainer.cli.metrics.metrics import MetricReader
from trainer.cli.metrics.printing import MetricsFormat
from trainer.cli.run.run import follow_on_screen
from trainer.framework.plugin_api.failure import parts_of
from trainer.kube.client import Client, DeleteOptions, Propagation
from trainer.kube.clock import SystemClock, move_on_after
from trainer.kube.errors import KubeError
from trainer.kube.objects import Object, find_condition, key_of, name_of, namespace_of, uid_of
from trainer.kube.rest.connection import ConnectionOptions
from trainer.kube.selection import Selection
from trainer.view.progress import TrainingProgress
from trainer.view.row import TrainJobRow

_Answer = TypeVar("_Answer")
_SHOWN_WITHIN = 3.0
"""Seconds that a notebook waits for the state that it shows."""


class TrainingFailedError(CommandError):
    """A training that `SubmittedJob.wait` has waited for has failed."""

    def __init__(self, name: str, *, reason: str, node: str, line: str, message: str) -> None:
        what = ": ".join(part for part in (node, printable(line or message.partition("\n")[0])) if part)
        super().__init__(f"TrainJob {name} has failed: {what or reason}")
        self.name = name
        self.reason = reason
        """Reason of its condition, such as `JobsFailed`."""
        self.node = node
        """The node that failed first, such as `node-1`; empty when that is not known."""
        self.line = line
        """The error of its program, such as `RuntimeError: no data`, or how it ended; empty when that is not known."""
        self.message = message
        """The whole message of the condition, with the end of the log."""


class MetricSample(NamedTuple):
    """One value of a metric; a list of them is what `pandas.DataFrame` takes."""

    time: datetime
    kind: str
    """`train` or `eval`."""
    name: str
    value: float
    step: int | None
    epoch: int | None


@dataclass(frozen=True, slots=True)
class JobStatus:
    """How a TrainJob is doing."""

    state: str
    """Such as Running, Pending, Complete or Failed; Submitted before a controller has seen it."""
    reason: str
    message: str
    """Why it has ended, or does not run; empty when there is nothing to explain."""
    progress: TrainingProgress


class SubmittedJob:
    """A TrainJob on a cluster.

    All methods block, also where an event loop runs, such as in a notebook, and each connects to the cluster anew.

    Raises:
        trainer.cli.errors.GoneError: by all methods: it is not in the cluster any more.
        trainer.kube.errors.KubeError: by all methods: the cluster cannot be reached, or refuses.
    """

    def __init__(self, connection: ConnectionOptions, job: Object) -> None:
        self._connection = connection
        self._job = job

    @property
    def name(self) -> str:
        """Its name."""
        return name_of(self._job)

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return namespace_of(self._job)

    @property
    def state(self) -> str:
        """The state of `status`."""
        return self.status().state

    @property
    def progress(self) -> TrainingProgress:
        """The progress of `status`: percentage, remaining time, steps, epochs and last metrics."""
        return self.status().progress

    def status(self) -> JobStatus:
        """How it is doing now; of one that has been seen to end, without a request."""
        if not JobState.of(self._job).is_terminal:
            self._call(self._refresh)
        return self._last_status()

    def wait(self, timeout: float | None = None, *, follow: bool = False) -> Self:
        """Wait until it is complete, and return it.

        Args:
            timeout: in seconds. Default: none.
            follow: whether its logs and states are printed meanwhile.

        Raises:
            TrainingFailedError: it has failed; the message has the node and the last line of its log.
            TimeoutError: it has not ended in time, and continues.
        """

        async def end(cluster: ConnectedCluster) -> None:
            clock = SystemClock()
            async with move_on_after(clock, timeout) as scope:
                await (self.follow_on(cluster.client) if follow else self._watch(cluster.client))
            if scope.cancelled_caught:
                state = JobState.of(self._job)
                raise TimeoutError(f"TrainJob {self.name} has not ended after {timeout:g} s: it is {state}")
            if not JobState.of(self._job).is_terminal:
                raise GoneError(f"TrainJob {self.name} was deleted before it has ended")
            if not JobState.of(self._job).is_complete:
                raise self._failure()

        self._call(end)
        return self

    def logs(
        self, *, follow: bool = False, node: str | int = "", all_nodes: bool = False, tail: int | None = None
    ) -> Iterator[str]:
        """The lines of its log, those that report progress left out, as `trainer logs` prints them.

        Args:
            follow: whether to go on with new lines until it ends, across restarts.
            node: a number, or a name such as `launcher-0`. Default: the first one, with MPI the launcher.
            all_nodes: whether to read all nodes; each line then begins with its node.
            tail: how many of the last lines. Default: all.

        Raises:
            trainer.cli.errors.CommandError: nothing has been logged, or the log is gone.
        """
        request = LogRequest(LogChoice(str(node), all_nodes=all_nodes), follow=follow, tail=tail)
        source, sink = os.pipe()
        reader = os.fdopen(source, encoding="utf-8", errors="replace", newline="\n")
        writer = os.fdopen(sink, "w", encoding="utf-8", errors="replace", newline="\n")

        async def write() -> None:
            # A loop of its own, which a slow reader may hold up, as it does a command that writes into a pipe.
            with writer:
                console = writing_to(writer)
                async with open_cluster(self._connection) as cluster:
                    job = await self._refresh(cluster)
                    await LogReader(cluster.client, job, request, console, SystemClock()).run()

        with start_blocking_portal() as portal:
            writing = portal.start_task_soon(write)
            try:
                for line in reader:
                    yield line.removesuffix("\n")
            except GeneratorExit:
                reader.close()  # first: the loop, which has to cancel, may stand still in a write to the full pipe
                writing.cancel()
                raise
            finally:
                reader.close()
            writing.result()

    def metrics(self) -> list[MetricSample]:
        """All values of metrics that its log has, in the order of their metrics; none before it starts."""

        async def read(cluster: ConnectedCluster) -> list[MetricSample]:
            job = await self._refresh(cluster)
            console = Console(file=None, quiet=True, force_jupyter=False)
            reader = MetricReader(cluster.client, job, MetricsFormat.JSON, console, SystemClock())
            return [
                MetricSample(each.time.moment, metric.kind, metric.name, float(each.value), each.step, each.epoch)
                for metric, samples in (await reader.samples()).items()
                for each in samples
            ]

        return self._call(read)

    def delete(self) -> None:
        """Delete it with its pods and everything else that was created for it; returns before they are gone."""

        async def delete(cluster: ConnectedCluster) -> None:
            job = await self._refresh(cluster)
            options = DeleteOptions(propagation=Propagation.BACKGROUND, uid=uid_of(job))
            await cluster.client.delete(TRAIN_JOBS, self.name, self.namespace, options)

        self._call(delete)

    async def follow_on(self, client: Client) -> None:
        """Print its logs and states until it ends or is deleted."""
        outcome = (await follow_on_screen(client, [self._job], SystemClock()))[key_of(self._job)]
        if outcome.state is not None:
            self._job = await client.get(TRAIN_JOBS, self.name, self.namespace)

    async def _watch(self, client: Client) -> None:
        job = await self._find(client)
        selection = Selection(self.namespace, field_selector=f"metadata.name={self.name}")
        await JobWatch(client, TRAIN_JOBS, selection, [job], SystemClock(), ends=True).by_lines(self._see)

    def _see(self, job: Object) -> None:
        if uid_of(job) == uid_of(self._job):
            self._job = job

    async def _refresh(self, cluster: ConnectedCluster) -> Object:
        self._job = await self._find(cluster.client)
        return self._job

    async def _find(self, client: Client) -> Object:
        job = await find_train_job(client, self.name, self.namespace)
        if uid_of(job) != uid_of(self._job):
            raise GoneError(f"TrainJob {self.name} was deleted, and there is another one of its name")
        return job

    def _failure(self) -> TrainingFailedError:
        state = JobState.of(self._job)
        message = str((find_condition(self._job, state.word) or {}).get("message") or "")
        node, _, line = parts_of(message).headline.partition(": ")
        return TrainingFailedError(self.name, reason=state.reason, node=node, line=line, message=message)

    def _last_status(self) -> JobStatus:
        row = TrainJobRow.of(self._job)
        return JobStatus(row.state, row.reason, row.message, row.progress)

    def _call(self, work: Callable[[ConnectedCluster], Awaitable[_Answer]], *, timeout: float | None = None) -> _Answer:
        return on_cluster(self._connection, work, timeout=timeout)

    def __repr__(self) -> str:
        """With the state that was seen last, without a request."""
        return f"SubmittedJob(name={self.name!r}, namespace={self.namespace!r}, state={self._last_status().state!r})"

    def _repr_html_(self) -> str:
        """For notebooks: its state now, or the last one where the cluster does not answer soon."""
        if not JobState.of(self._job).is_terminal:
            with suppress(CommandError, KubeError, TimeoutError, OSError):
                self._call(self._refresh, timeout=_SHOWN_WITHIN)
        status = self._last_status()
        progress, rows = status.progress, [("State", escape(status.state))]
        if progress.percentage is not None:
            bar = f'<progress max="100" value="{progress.percentage}"></progress> {progress.percentage} %'
            rows.append(("Progress", bar))
        remaining = progress.silence_at(SystemClock().now()) or progress.remaining
        if remaining and JobState.of(self._job).is_going_on:
            rows.append(("Remaining", escape(remaining)))
        rows += [(escape(metric.name), escape(short_value(metric.value))) for metric in progress.metrics]
        if status.message and not JobState.of(self._job).is_running:
            rows.append((escape(status.reason), escape(printable(status.message))))
        cells = "".join(f'<tr><th style="text-align:left">{name}</th><td>{value}</td></tr>' for name, value in rows)
        return f"<div><strong>{escape(self.name)}</strong> in {escape(self.namespace)}<table>{cells}</table></div>"


def on_cluster(
    connection: ConnectionOptions,
    work: Callable[[ConnectedCluster], Awaitable[_Answer]],
    *,
    timeout: float | None = None,
) -> _Answer:
    """Do something on a cluster, in a thread: notebooks have a running loop in this one.

    Raises:
        TimeoutError: it takes longer.
    """

    async def run() -> _Answer:
        async with move_on_after(SystemClock(), timeout), open_cluster(connection) as cluster:
            return await work(cluster)
        raise TimeoutError(f"the cluster has not answered within {timeout:g} s")

    with start_blocking_portal() as portal:
        return portal.call(run)
