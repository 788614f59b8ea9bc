"""`trainer get`: TrainJobs with their progress, once or until interrupted."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.completion import object_names
from trainer.cli.console import GetFormat, note, output, terminal_width
from trainer.cli.current_cluster import ConnectedCluster, current_cluster, identity_of_current, run_on
from trainer.cli.errors import BadInputError, ExitCode, GoneError
from trainer.cli.jobs.choice import ALL, JobChoice, Limit, Selector, States
from trainer.cli.jobs.details import details
from trainer.cli.jobs.find import find_train_job, list_train_jobs, reference
from trainer.cli.jobs.state import JobState
from trainer.cli.jobs.table import JobTable
from trainer.cli.jobs.watch import JobWatch
from trainer.cli.kinds import Asked, Kind, kind_called, kind_with, named
from trainer.cli.options import Context, Kubeconfig, Namespace, cluster_options
from trainer.cli.past import installed_history, newest_of_history
from trainer.kube.client import Client
from trainer.kube.clock import Clock, SystemClock
from trainer.kube.objects import Object, ObjectKey, key_of, metadata_of
from trainer.kube.resource import Resource
from trainer.kube.selection import Selection
from trainer.kubernetes_yaml import dump


def get(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KIND] NAME",
            help="Name of one TrainJob, to show it in detail; or a kind such as sweep, and the name of one.",
            show_default=False,
            autocompletion=object_names,
        ),
    ] = None,
    *,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Keep running and show changes.")] = False,
    namespace: Namespace = None,
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="Show the TrainJobs of all namespaces.")
    ] = False,
    states: States = None,
    selector: Selector = "",
    limit: Limit = None,
    form: Annotated[GetFormat, typer.Option("--output", "-o", help="Output format.")] = GetFormat.TABLE,
    history: Annotated[
        bool,
        typer.Option(
            "--history", help="What the history has, also of TrainJobs that are gone; of all namespaces, or -n."
        ),
    ] = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show TrainJobs: state, progress, remaining time, metrics; with a NAME also conditions and why it waits or failed.

    Those that run come first, then the newest. The line of one that waits or has failed says why. With --watch the
    table stays up to date until it is interrupted; with a NAME until that TrainJob has ended.

    Where sweeps are installed, `trainer get sweep NAME`, or sweep/NAME, shows one with its trials.

    Exit code: 0; with --watch and a NAME 0 when the TrainJob is Complete, 1 when it Failed or was deleted.
    """
    kind, name = _one(names or ())
    if all_namespaces and (name or namespace):
        raise BadInputError("--all-namespaces cannot be combined with a NAME or with --namespace")
    choice = JobChoice.parse(states or (), selector, limit)
    if kind is not None and (choice != ALL or history):
        raise BadInputError("--state, --selector, --limit and --history are for TrainJobs")
    if choice != ALL and (name or history):
        raise BadInputError("--state, --selector and --limit cannot be combined with a NAME or with --history")
    if watch and limit is not None:
        raise BadInputError("--limit cannot be combined with --watch, which shows changes of all TrainJobs")
    if history and (watch or form is GetFormat.NAME):
        raise BadInputError("--history cannot be combined with --watch or --output name")
    if history:
        past, encode = installed_history(), _PAST_FORMATS.get(form)
        cluster_id = identity_of_current(kubeconfig, context)
        if name is None:
            past.print_list(output(), namespace or "", cluster_id, encode)
        else:
            past.training(name, namespace or "", cluster_id).print_details(output(), encode)
        return

    async def show(cluster: ConnectedCluster) -> int:
        where = None if all_namespaces else namespace or cluster.namespace
        if kind is not None:
            return await kind.show(cluster, Asked(name, where, form, is_watch=watch, target=target))
        stored = cluster.served.resource(TRAIN_JOBS)
        report = Report(
            form, output(), SystemClock(), name=name, namespace=where, is_watch=watch, stored=stored, choice=choice
        )
        try:
            return await (report.watch(cluster.client) if watch else report.show(cluster.client))
        except GoneError as error:
            if name is not None and (other := await kind_with(cluster, name, where or "")) is not None:
                raise GoneError(f"{error}; there is {other.words[0]}/{name}") from None
            if name is None or await newest_of_history(cluster, name, where or "") is None:
                raise
            raise GoneError(f"{error}; the history has it: trainer get {name} --history") from None

    options, target = current_cluster(kubeconfig, context), cluster_options(kubeconfig, context)
    raise typer.Exit(run_on(options, show))


def _one(words: Sequence[str]) -> tuple[Kind | None, str | None]:
    """The kind and the name that a command line asks for; None stands for TrainJobs, and for all."""
    found = named(words)
    if len(found) > 1:
        raise BadInputError(f"{' '.join(words)}: show one at a time: trainer get NAME, or trainer get KIND NAME")
    if words and not found:  # a kind alone
        return kind_called(words[0]), None
    return (found[0].kind, found[0].name) if found else (None, None)


_PAST_FORMATS: dict[GetFormat, Callable[[Object], str]] = {
    GetFormat.JSON: lambda answer: json.dumps(answer, indent=2, ensure_ascii=False) + "\n",
    GetFormat.YAML: dump,
}


@dataclass
class Report:
    """The answer to one `trainer get`, on a console."""

    form: GetFormat
    console: Console
    clock: Clock
    name: str | None = None
    namespace: str | None = None
    is_watch: bool = False
    stored: Resource = TRAIN_JOBS
    """The resource as which the cluster serves TrainJobs."""
    choice: JobChoice = ALL
    """What is shown where there is no name."""

    def __post_init__(self) -> None:
        self._resource = self.stored if self.form in (GetFormat.JSON, GetFormat.YAML) else TRAIN_JOBS
        self._table = JobTable(
            with_namespace=self.namespace is None,
            is_wide=self.form is GetFormat.WIDE,
            ascii_only=self.console.options.ascii_only,
            is_growing=self.is_watch and not self.console.is_interactive,
        )

    async def show(self, client: Client) -> int:
        """Print the present TrainJobs."""
        chosen = self.choice.of(await self._jobs(client))
        jobs = chosen[: self.choice.limit]
        if self.form in (GetFormat.TABLE, GetFormat.WIDE):
            self._note_if_none(jobs)
            for line in self._table_of(jobs):
                self.console.print(line)
            if more := len(chosen) - len(jobs):
                note(f"there {'is 1' if more == 1 else f'are {more}'} more")
        elif self.form is GetFormat.NAME:
            self._write(*map(reference, jobs))
        else:
            items = [_without_managers(job) for job in jobs]
            answer = items[0] if self.name else {"apiVersion": "v1", "kind": "List", "items": items}
            self._write(
                json.dumps(answer, indent=2, ensure_ascii=False)
                if self.form is GetFormat.JSON
                else dump(answer).rstrip("\n")
            )
        return ExitCode.OK

    async def watch(self, client: Client) -> int:
        """Print the TrainJobs and their changes; with a name until that one has ended."""
        jobs = await self._jobs(client)
        selection = Selection(self.namespace, self.choice.selector, f"metadata.name={self.name}" if self.name else "")
        watch = JobWatch(client, self._resource, selection, jobs, self.clock, ends=self.name is not None)
        if self.form in (GetFormat.TABLE, GetFormat.WIDE) and self.console.is_interactive:
            await watch.on_screen(self.console, self._lines)
        else:
            self._note_if_none(self.choice.of(jobs))
            self._lines(jobs)  # the columns become as wide as all of them need
            await watch.by_lines(self._change_printer())
        return ExitCode.OK if watch.is_good else ExitCode.FAILED

    async def _jobs(self, client: Client) -> list[Object]:
        if self.name is not None:
            return [await find_train_job(client, self.name, self.namespace or "", self._resource)]
        return await list_train_jobs(client, Selection(self.namespace, self.choice.selector), self._resource)

    def _lines(self, jobs: Sequence[Object]) -> list[Text]:
        return self._table_of(self.choice.of(jobs))

    def _table_of(self, jobs: Sequence[Object]) -> list[Text]:
        if not jobs:
            return []
        now = self.clock.now()
        self._table.width = terminal_width(self.console)
        if self.name is None:
            return self._table.lines(jobs, now)
        about = details(jobs[0], now, self.console)
        return [*self._table.lines(jobs, now), *([Text()] if about else []), *about]

    def _note_if_none(self, jobs: Sequence[Object]) -> None:
        if not jobs:
            which = "such TrainJobs" if self.choice != ALL else "TrainJobs"
            note(f"there are no {which}" + (f" in namespace {self.namespace}" if self.namespace else ""))

    def _change_printer(self) -> Callable[[Object], None]:
        """Prints a changed job: its line of the table, or the whole object."""
        printed: dict[ObjectKey, JobState] = {}

        def in_table(job: Object) -> None:
            if printed.get(key_of(job)) == JobState.of(job) or not self.choice.has(job):
                return
            for line in self._table.lines([job], self.clock.now(), header=not printed):
                self.console.print(line)
            printed[key_of(job)] = JobState.of(job)

        def as_object(job: Object) -> None:
            if not self.choice.has(job):
                return
            match self.form:
                case GetFormat.JSON:
                    self._write(json.dumps(_without_managers(job), ensure_ascii=False))
                case GetFormat.YAML:
                    self._write("---", dump(_without_managers(job)).rstrip("\n"))
                case _:
                    self._write(reference(job))

        return in_table if self.form in (GetFormat.TABLE, GetFormat.WIDE) else as_object

    def _write(self, *lines: str) -> None:
        for line in lines:
            self.console.file.write(line + "\n")
        self.console.file.flush()


def _without_managers(job: Object) -> Object:
    """The object without metadata.managedFields, as kubectl shows it."""
    metadata = {key: value for key, value in metadata_of(job).items() if key != "managedFields"}
    return {**job, "metadata": metadata}
