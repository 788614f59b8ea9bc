"""`trainer logs`: the logs of a TrainJob's containers, across nodes and restarts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Annotated

import typer
from anyio.to_thread import run_sync
from rich.console import Console

from trainer.api.trainjob_status import ConditionType
from trainer.cli.console import escaped, note, output
from trainer.cli.current_cluster import ConnectedCluster, current_cluster, identity_of_current, run_on
from trainer.cli.errors import BadInputError, CommandError, GoneError
from trainer.cli.jobs.find import JobName, find_train_job
from trainer.cli.jobs.state import JobState
from trainer.cli.logs.choice import LogChoice, LogRequest, newest_runs
from trainer.cli.logs.follower import JobLogs, LogConsumer, log_of, pods_of
from trainer.cli.logs.printer import LogPrinter
from trainer.cli.options import Context, Kubeconfig, Namespace
from trainer.cli.past import installed_history, newest_of_history
from trainer.framework.plugin_api.failure import named_in, parts_of
from trainer.kube.client import Client
from trainer.kube.clock import Clock, SystemClock
from trainer.kube.errors import NotFoundError
from trainer.kube.objects import Object, find_condition, name_of, uid_of
from trainer.kube.podlogs.container_log import ContainerLog, ContainerLogOptions
from trainer.kube.podlogs.instant import Instant
from trainer.kube.podlogs.tail import Tail, last_lines
from trainer.kube.resource import PODS
from trainer.progress.containers import StartedContainer, restarts_of
from trainer.progress.lines.log_lines import LogLine, log_lines
from trainer.progress.primary import PrimaryContainer

_PARTS = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_LONGEST = timedelta(days=36500)


def logs(
    name: JobName,
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep running until the TrainJob ends.")] = False,
    node: Annotated[
        str,
        typer.Option(metavar="K", help="Number of a training node, or a name such as launcher-0. Default: node 0."),
    ] = "",
    all_nodes: Annotated[
        bool, typer.Option("--all", help="All nodes; the name of the node precedes each line.")
    ] = False,
    container: Annotated[
        str, typer.Option("--container", "-c", help="Container of the node. Default: the one that trains.")
    ] = "",
    previous: Annotated[bool, typer.Option(help="Log of the run before the last restart.")] = False,
    tail: Annotated[int | None, typer.Option(min=0, metavar="N", help="Only the last N lines, and later ones.")] = None,
    since: Annotated[str | None, typer.Option(metavar="10m", help="Only lines that are not older than this.")] = None,
    timestamps: Annotated[bool, typer.Option(help="Print before each line when it was written.")] = False,
    progress: Annotated[
        bool, typer.Option("--progress", help="Also print the messages by which the training reports its progress.")
    ] = False,
    history: Annotated[
        bool, typer.Option("--history", help="The last lines that the history has, without looking for pods.")
    ] = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Print the log of a TrainJob's first node, of the launcher of an MPI training, or of other nodes.

    With --follow new lines are printed as they come, across restarts, until the TrainJob has ended.
    Of a TrainJob that is gone, or whose pods are, the last lines come from the history (trainer history record).

    Exit code: 0; 1 when there is no such TrainJob or no log of it.
    """
    if all_nodes and node:
        raise BadInputError("--all cannot be combined with --node")
    if history and (follow or previous):
        raise BadInputError("--history cannot be combined with --follow or --previous")
    if follow and previous:
        raise BadInputError("--previous cannot be combined with --follow: a run that has ended writes no more lines")
    request = LogRequest(
        LogChoice(node, all_nodes=all_nodes, container=container),
        follow=follow,
        previous=previous,
        tail=tail,
        since=None if since is None else parse_duration(since),
        timestamps=timestamps,
        progress=progress,
    )

    if history:
        past = installed_history().training(name, namespace or "", identity_of_current(kubeconfig, context))
        past.print_logs(output(), request)
        return

    async def show(cluster: ConnectedCluster) -> None:
        where, uid = namespace or cluster.namespace, None
        try:
            job = await find_train_job(cluster.client, name, where)
            uid = uid_of(job)
            await LogReader(cluster.client, job, request, output(), SystemClock()).run()
        except GoneError:
            found = None if previous else await newest_of_history(cluster, name, where, uid)
            if found is None:
                raise
            await run_sync(found.print_logs, output(), request)

    raise typer.Exit(run_on(current_cluster(kubeconfig, context), show))


def parse_duration(text: str, option: str = "--since") -> timedelta:
    """Parse a duration such as `10m`, `1h30m` or `2d`; the option is named in the error."""
    if _PARTS.sub("", text) or not text:
        raise BadInputError(f"{option}: {text} is not a duration: write it as 90s, 10m, 1h30m or 2d")
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PARTS.findall(text))
    if seconds > _LONGEST.total_seconds():
        raise BadInputError(f"{option}: {text} is too long")
    return timedelta(seconds=seconds)


class LogReader(LogConsumer):
    """Prints the logs that a request names."""

    def __init__(self, client: Client, job: Object, request: LogRequest, console: Console, clock: Clock) -> None:
        self._client = client
        self._job = job
        self._request = request
        self._console = console
        self._clock = clock
        self._printer = LogPrinter(console)
        self._primary = PrimaryContainer(client, job)
        self._tails: dict[StartedContainer, Tail] = {}
        since = request.since
        self._since = None if since is None else Instant.of(clock.now() - since)

    async def run(self) -> None:
        """Print the present logs, or follow them."""
        try:
            await self._print()
        finally:
            self._printer.close()

    async def _print(self) -> None:
        pods = (await self._client.list(PODS, pods_of(self._job))).items
        if self._request.follow and not JobState.of(self._job).is_terminal:
            await self._follow(pods)
            return
        if not pods:
            raise self._without_pods()
        choice = self._request.choice
        picked = await choice.pick(pods, self._primary)
        if not picked and choice.is_default:
            picked = await self._pick_failed(pods)
        if not picked:
            training_job = await self._primary.training_job(pods)
            raise choice.missing(pods, name_of(self._job), training_job, has_ended=JobState.of(self._job).is_terminal)
        present = newest_runs(picked, pods)
        for container in self._previous(picked, present, pods) if self._request.previous else present:
            await self._read(container, pods)

    def take(self, container: StartedContainer, block: bytes) -> None:
        """See `LogConsumer`."""
        tail = self._tails.get(container)
        rest = tail.of(block) if tail is not None else block
        if rest:
            self._print_lines(self._source(container), rest)

    def take_state(self, container: StartedContainer, line: bytes) -> None:
        """See `LogConsumer`."""
        for state in self._lines(line):
            self._printer.show_state(self._source(container), self._text(state))

    def warn(self, text: str) -> None:
        """See `LogConsumer`."""
        self._printer.make_room()
        super().warn(text)

    def _source(self, container: StartedContainer) -> str:
        return container.source if self._request.choice.all_nodes else ""

    def _print_lines(self, source: str, block: bytes) -> None:
        states: list[LogLine] = []

        def texts() -> Iterator[str]:
            for line in self._lines(block):
                if line.is_overwritten:
                    states.append(line)
                else:
                    states.clear()
                    yield self._text(line)

        self._printer.print(source, *texts())
        for state in states[-1:]:
            self._printer.show_state(source, self._text(state))

    def _lines(self, block: bytes) -> Iterator[LogLine]:
        return log_lines(block, with_messages=self._request.progress, with_overwritten=True)

    def _text(self, line: LogLine) -> str:
        return f"{line.stamp} {line.text}" if self._request.timestamps and line.stamp else line.text

    async def _follow(self, pods: Sequence[Object]) -> None:
        choice = self._request.choice
        present = newest_runs(await choice.pick(pods, self._primary), pods)
        if not present:
            wanted = f"node {choice.node}" if choice.node else "nodes" if choice.all_nodes else "the training node"
            note(f"waiting for {wanted} of TrainJob {name_of(self._job)} to start")
        if self._request.tail is not None:
            for container in present:
                self._tails[container] = await self._tail(container, self._request.tail)

        async def choose(pods: Sequence[Object]) -> Iterable[StartedContainer]:
            return newest_runs(await choice.pick(pods, self._primary), pods)

        job_logs = JobLogs(self._client, self._job, self._clock, self, choose=choose, options=self._options)
        if not await job_logs.run():
            note(f"TrainJob {name_of(self._job)} was deleted")

    async def _read(self, container: StartedContainer, pods: Sequence[Object]) -> None:
        if self._request.tail is not None:
            self._tails[container] = await self._tail(container, self._request.tail)
        pod = next(pod for pod in pods if uid_of(pod) == container.pod_uid)
        previous = self._request.previous and restarts_of(pod, container.container) > 0
        options = replace(self._options(container), previous=previous)
        try:
            container_log = log_of(container, self._client, self._clock, options)
            async for block in container_log.read():
                self.take(container, block)
        except NotFoundError:
            raise CommandError(f"pod {container.pod} is gone, and its log with it") from None

    def _options(self, container: StartedContainer) -> ContainerLogOptions:
        tail = self._tails.get(container)
        return ContainerLogOptions(since=(tail.since if tail is not None else None) or self._since)

    async def _tail(self, container: StartedContainer, lines: int) -> Tail:
        def log_of_last(count: int) -> ContainerLog:
            options = ContainerLogOptions(previous=self._request.previous, since=self._since, tail_lines=count)
            return log_of(container, self._client, self._clock, options)

        def is_shown(line: bytes) -> bool:
            return any(log_lines(line + b"\n", with_messages=self._request.progress))

        return await last_lines(log_of_last, lines, is_shown=is_shown)

    def _previous(
        self, picked: Sequence[StartedContainer], present: Sequence[StartedContainer], pods: Sequence[Object]
    ) -> list[StartedContainer]:
        """The runs before the present ones: in the same pod, or else in the pod before it."""
        by_uid = {uid_of(pod): pod for pod in pods}
        restarted = [each for each in present if restarts_of(by_uid[each.pod_uid], each.container)]
        handled = {each.source for each in restarted}
        others = [each for each in picked if each not in present and each.source not in handled]
        earlier = [*restarted, *newest_runs(others, pods)]
        if not earlier:
            sources = ", ".join(each.source for each in present)
            raise CommandError(f"there is no earlier run of {sources}: it has not been restarted, or its pod is gone")
        return earlier

    async def _pick_failed(self, pods: Sequence[Object]) -> list[StartedContainer]:
        """The container that failed, where the pod of the training node was deleted because of that."""
        failed = named_in(self._message) if JobState.of(self._job).word == ConditionType.FAILED else None
        if failed is None:
            return []
        choice = replace(self._request.choice, node=failed.pod)
        if not choice.container:
            choice = replace(choice, container=failed.container)
        picked = await choice.pick(pods, self._primary)
        gone = f"the pod of the training node of TrainJob {name_of(self._job)} is gone, and its log with it"
        if picked:
            note(f"{gone}; this is the log of {picked[0].source}, pod {failed.pod}, which has failed")
        elif lines := self._print_kept():
            raise CommandError(f"{gone}; above are the last {lines} lines of pod {failed.pod}, which has failed")
        return picked

    @property
    def _message(self) -> str:
        """The message of the condition that ended the TrainJob."""
        return (find_condition(self._job, JobState.of(self._job).word) or {}).get("message") or ""

    def _print_kept(self) -> int:
        """Print the lines of a log that the condition keeps; returns their number."""
        lines = parts_of(self._message).log
        self._printer.print("", *map(escaped, lines))
        return len(lines)

    def _without_pods(self) -> GoneError | CommandError:
        name, state = name_of(self._job), JobState.of(self._job)
        if not state.is_terminal:
            why = f" ({state.explanation})" if state.explanation else ""
            return CommandError(f"TrainJob {name} has no pods: it is {state.word}{why}")
        failed = named_in(self._message)
        whose = f" of pod {failed.pod}" if failed is not None else ""
        kept = f"the lines above are the last ones{whose}, from its condition {state.word}"
        return GoneError(
            f"the pods of TrainJob {name} are gone, and their logs with them; "
            + (kept if self._print_kept() else "no lines are left")
        )
