"""`trainer metrics`: the metrics that a training has reported in its log, as charts or data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

import anyio
import typer
from anyio.to_thread import run_sync
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from trainer.api.progress import plain_lines_enabled
from trainer.cli.console import note, output
from trainer.cli.current_cluster import ConnectedCluster, current_cluster, identity_of_current, run_on
from trainer.cli.errors import BadInputError, CommandError, GoneError
from trainer.cli.jobs.find import JobName, find_train_job
from trainer.cli.jobs.state import JobState
from trainer.cli.logs.follower import JobLogs, LogConsumer, log_of, pods_of
from trainer.cli.metrics.printing import MetricsFormat, SamplePrinter
from trainer.cli.options import Context, Kubeconfig, Namespace
from trainer.cli.past import installed_history, newest_of_history
from trainer.kube.client import Client
from trainer.kube.clock import Clock, SystemClock
from trainer.kube.errors import NotFoundError
from trainer.kube.objects import Object, annotations_of, name_of, namespace_of, uid_of
from trainer.kube.resource import PODS
from trainer.progress.containers import StartedContainer
from trainer.progress.primary import PrimaryContainer
from trainer.progress.samples import MetricId, Sample, SampleReader

_REFRESH_SECONDS = 0.5


def metrics(
    name: JobName,
    *,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Keep running and show new values until the TrainJob ends.")
    ] = False,
    form: Annotated[
        MetricsFormat, typer.Option("--output", "-o", help="Output format of the samples.")
    ] = MetricsFormat.CHART,
    history: Annotated[
        bool, typer.Option("--history", help="The samples that the history has, without looking for pods.")
    ] = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Draw the metrics that a TrainJob has reported since its start: least, greatest and last value over the steps.

    They are read from the log of its primary pod. Once that is gone they come from the history, if `trainer history
    record` has run meanwhile.
    With --watch and --output json each sample is one line of JSON.

    Exit code: 0; 1 when there is no such TrainJob, no log of it, or no metric in it.
    """
    if history and watch:
        raise BadInputError("--history cannot be combined with --watch")
    if history:
        past = installed_history().training(name, namespace or "", identity_of_current(kubeconfig, context))
        past.print_metrics(output(), form)
        return

    async def show(cluster: ConnectedCluster) -> None:
        where, uid = namespace or cluster.namespace, None
        try:
            job = await find_train_job(cluster.client, name, where)
            uid = uid_of(job)
            reader = MetricReader(cluster.client, job, form, output(), SystemClock())
            await (reader.watch() if watch else reader.show())
        except GoneError:
            found = await newest_of_history(cluster, name, where, uid)
            if found is None:
                raise
            await run_sync(found.print_metrics, output(), form)

    raise typer.Exit(run_on(current_cluster(kubeconfig, context), show))


class MetricReader(LogConsumer):
    """Reads the metrics of one TrainJob and prints them."""

    def __init__(self, client: Client, job: Object, form: MetricsFormat, console: Console, clock: Clock) -> None:
        self._client = client
        self._job = job
        self._form = form
        self._console = console
        self._clock = clock
        self._primary = PrimaryContainer(client, job)
        self._reader = self._new_reader()
        self._series: dict[MetricId, list[Sample]] = {}
        self._source: StartedContainer | None = None
        self._prints = False
        """Whether samples are printed as they come."""
        self._has_news = False
        self._printer = SamplePrinter(form, console)

    async def samples(self) -> Mapping[MetricId, Sequence[Sample]]:
        """The samples until now; none before the training starts.

        Raises:
            GoneError: its pod is gone.
        """
        try:
            await self._read()
        except GoneError:
            raise
        except CommandError:
            return {}
        return self._series

    async def show(self) -> None:
        """Print the samples until now."""
        await self._read()
        self._check_samples()
        source = self._source
        place = {"pod": source.pod if source else None, "container": source.container if source else None}
        self._printer.show(self._series, {"name": name_of(self._job), "namespace": namespace_of(self._job)} | place)

    async def watch(self) -> None:
        """Show new samples until the TrainJob ends; of one that has ended, all that a watch would have shown."""
        has_screen = self._form is MetricsFormat.CHART and self._console.is_interactive
        self._prints = not has_screen
        if JobState.of(self._job).is_terminal:
            if has_screen:
                await self.show()
                return
            await self._read()
        else:
            still_exists = await (self._watch_on_screen() if has_screen else self._logs().run())
            if not still_exists:
                note(f"TrainJob {name_of(self._job)} was deleted")
        self._check_samples()

    async def _watch_on_screen(self) -> bool:
        async with anyio.create_task_group() as tasks:
            with Live(console=self._console, get_renderable=self._screen, auto_refresh=False) as live:
                tasks.start_soon(self._keep_fresh, live)
                still_exists = await self._logs().run()
                live.refresh()
                tasks.cancel_scope.cancel()
        return still_exists

    def _logs(self) -> JobLogs:
        return JobLogs(self._client, self._job, self._clock, self, choose=self._choose)

    async def _read(self) -> None:
        container = await self._container()
        try:
            async for block in log_of(container, self._client, self._clock).read():
                self.take(container, block)
        except NotFoundError:
            raise self._gone() from None

    def take(self, container: StartedContainer, block: bytes) -> None:
        """See `LogConsumer`."""
        if container != self._source:  # a new run of the training
            self._source = container
            self._reader, self._series = self._new_reader(), {}
        new = list(self._reader.read(block))
        for sample in new:
            self._series.setdefault(sample.metric, []).append(sample)
        self._has_news = self._has_news or bool(new)
        if self._prints and new:
            self._printer.print(new)

    def _new_reader(self) -> SampleReader:
        with_plain_lines = plain_lines_enabled(annotations_of(self._job))
        return SampleReader(self._forget_samples, with_plain_lines=with_plain_lines)

    def _forget_samples(self) -> None:
        self._series.clear()

    def see_job(self, job: Object) -> None:
        """See `LogConsumer`."""
        self._job = job
        self._has_news = True

    async def _choose(self, pods: Sequence[Object]) -> Iterable[StartedContainer]:
        primary = await self._primary.started(pods)
        return [] if primary is None else [primary]

    async def _container(self) -> StartedContainer:
        pods = (await self._client.list(PODS, pods_of(self._job))).items
        if (primary := await self._primary.started(pods)) is not None:
            return primary
        if JobState.of(self._job).is_terminal:
            raise self._gone()
        raise CommandError(
            f"the training of TrainJob {name_of(self._job)} has not started yet: it is {JobState.of(self._job).word}"
        )

    def _gone(self) -> GoneError:
        name = name_of(self._job)
        return GoneError(
            f"the pod of TrainJob {name} is gone, and its log with it: trainer get {name} shows the last values"
        )

    def _check_samples(self) -> None:
        name, reader = name_of(self._job), self._reader
        if reader.rejected:
            note(f"{reader.rejected} messages were not understood, the last one: {reader.rejection}", kind="warning")
        if reader.dropped:
            note(f"{reader.dropped} values were dropped, the last one: {reader.last_dropped}", kind="warning")
        if self._series:
            return
        if reader.messages:
            raise CommandError(f"TrainJob {name} has reported progress, but no metrics")
        raise CommandError(
            f"TrainJob {name} has reported no metrics: its training must call report() of trainer.progress.report"
        )

    def _screen(self) -> Group:
        state = JobState.of(self._job)
        head = Text().append(f"{name_of(self._job)}  ", style="bold").append(str(state))
        return Group(head, *(self._printer.charts(self._series) or [Text("no metrics yet", style="dim")]))

    async def _keep_fresh(self, live: Live) -> None:
        live.refresh()
        while True:
            await self._clock.sleep(_REFRESH_SECONDS)
            if self._has_news:
                self._has_news = False
                live.refresh()
