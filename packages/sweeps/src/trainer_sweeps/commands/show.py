"""`trainer sweeps` and `trainer get sweep NAME`: sweeps as a table, or one in detail; once or until interrupted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import anyio
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from trainer.api.optimization import state_of
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.columns import columns
from trainer.cli.console import GetFormat, duration, escaped, note, printable
from trainer.cli.current_cluster import ConnectedCluster
from trainer.cli.errors import ExitCode
from trainer.cli.jobs.find import find_object, list_objects, list_train_jobs, reference
from trainer.cli.jobs.receiver import Receiver, watch_for
from trainer.cli.kinds import Asked
from trainer.kube.clock import Clock, parse_timestamp
from trainer.kube.objects import Object, ObjectKey, key_of, mapping_at, metadata_of, objects_in
from trainer.kube.resource import Resource
from trainer.kube.selection import Selection
from trainer.kubernetes_yaml import dump
from trainer_sweeps.api.optimizationjob import State
from trainer_sweeps.commands.again import again_lines
from trainer_sweeps.commands.follow import follow_to_end
from trainer_sweeps.commands.parameters import space_text
from trainer_sweeps.commands.table import STYLES, header_lines, sweep_lines, trial_lines
from trainer_sweeps.commands.view import SweepView, trials_of

SEE = "trainer sweeps -A"
"""The command that lists all sweeps."""
_REFRESH_SECONDS = 0.5
_MOST_MESSAGES = 10
"""Trials whose failure is printed."""


@dataclass(frozen=True)
class Show:
    """The answer to one command, on a console."""

    cluster: ConnectedCluster
    resource: Resource
    """OptimizationJobs as the cluster serves them."""
    asked: Asked
    console: Console
    clock: Clock

    async def run(self) -> int:
        """Print what is asked for; returns the exit code."""
        asked = self.asked
        if asked.name is None:
            if asked.is_watch and asked.form in (GetFormat.TABLE, GetFormat.WIDE):
                await self._watch_list()
            else:
                await self._list()
            return ExitCode.OK
        sweep = await find_object(self.cluster.client, asked.name, asked.namespace or "", self.resource, see=SEE)
        if asked.is_watch and asked.form in (GetFormat.TABLE, GetFormat.WIDE):
            return await self._follow(sweep)
        if asked.form in (GetFormat.TABLE, GetFormat.WIDE):
            await self._details(sweep)
        else:
            self._write(self._encoded(sweep))
        return ExitCode.OK

    async def _list(self) -> None:
        sweeps = await list_objects(self.cluster.client, Selection(self.asked.namespace), self.resource)
        match self.asked.form:
            case GetFormat.TABLE | GetFormat.WIDE:
                if not sweeps:
                    note(
                        "there are no sweeps"
                        + (f" in namespace {self.asked.namespace}" if self.asked.namespace else "")
                    )
                    return
                for line in self._lines(sweeps):
                    self.console.print(line)
            case GetFormat.NAME:
                for each in sweeps:
                    self._write(reference(each, self.resource))
            case _:
                items = list(map(_without_managers, sweeps))
                self._write(self._encoded({"apiVersion": "v1", "kind": "List", "items": items}))

    async def _watch_list(self) -> None:
        """Keep the table up to date until interrupted; elsewhere than on a terminal print the line of each change."""
        sweeps: dict[ObjectKey, Object] = {}
        printed: dict[ObjectKey, str] = {}
        live = Live(
            console=self.console,
            get_renderable=lambda: Group(*(self._lines(list(sweeps.values())) if sweeps else [Text("no sweeps yet")])),
            auto_refresh=False,
        ) if self.console.is_interactive else None  # fmt: skip

        def see(obj: Object) -> None:
            sweeps[key_of(obj)] = obj
            header, line = self._lines([obj])
            if live is None and printed.get(key_of(obj)) != _news(obj):
                for each in [line] if printed else [header, line]:
                    self.console.print(each)
                printed[key_of(obj)] = _news(obj)

        def lose(obj: Object) -> None:
            sweeps.pop(key_of(obj), None)

        async with anyio.create_task_group() as tasks:
            receiver = Receiver(tasks, see, lose)
            watch_for(receiver, self.cluster.client, self.resource, Selection(self.asked.namespace), self.clock)
            if live is None:
                await anyio.sleep_forever()
                return
            with live:
                while True:
                    live.refresh()
                    await self.clock.sleep(_REFRESH_SECONDS)

    async def _follow(self, sweep: Object) -> int:
        view = await follow_to_end(self.cluster, sweep, self.console, self.clock)
        if view is None:
            note(f"the sweep {self.asked.name} was deleted")
            return ExitCode.FAILED
        return ExitCode.OK if view.state == "Complete" else ExitCode.FAILED

    async def _details(self, sweep: Object) -> None:
        key = key_of(sweep)
        jobs = await list_train_jobs(self.cluster.client, trials_of(key.name, key.namespace), TRAIN_JOBS)
        for line in details(SweepView.of(sweep, jobs, self.clock.now()), self.console):
            self.console.print(line)

    def _lines(self, sweeps: Sequence[Object]) -> list[Text]:
        ordered = sorted(sweeps, key=key_of)
        ordered.sort(key=lambda each: str(metadata_of(each).get("creationTimestamp")), reverse=True)
        ordered.sort(key=lambda each: state_of(each) != State.RUNNING)
        return sweep_lines(
            ordered,
            self.clock.now(),
            self.console,
            namespaces=self.asked.namespace is None,
            wide=self.asked.form is GetFormat.WIDE,
        )

    def _encoded(self, obj: Object) -> str:
        if self.asked.form is GetFormat.NAME:
            return reference(obj, self.resource)
        shown = _without_managers(obj) if "metadata" in obj else obj
        if self.asked.form is GetFormat.JSON:
            return json.dumps(shown, indent=2, ensure_ascii=False)
        return dump(shown).rstrip("\n")

    def _write(self, text: str) -> None:
        self.console.file.write(text + "\n")


def details(view: SweepView, console: Console) -> list[Text]:
    """Its state, trials with the best one first, parameters, conditions, why trials have failed, and the best one."""
    lines = header_lines(view, console)
    if view.trials:
        lines += [Text(), *trial_lines(view, view.ranked(), console)]
    lines += [Text(), Text("Parameters", style="bold")]
    spaces = [(f"  {printable(each.name)}", printable(space_text(each.search_space))) for each in view.spec.parameters]
    lines += map(Text, columns(spaces))
    conditions = objects_in(mapping_at(view.obj, "status").get("conditions"))
    if conditions:
        lines += [Text(), Text("Conditions", style="bold"), *(_condition(view, each) for each in conditions)]
    said = [each.trial for each in view.trials if each.trial.message]
    if said:
        lines += [Text(), Text("Messages", style="bold")]
        lines += [Text(f"  trial {trial.number}: {escaped(trial.message or '')}") for trial in said[:_MOST_MESSAGES]]
        if (more := len(said) - _MOST_MESSAGES) > 0:
            lines.append(Text(f"  and {more} more", style="dim"))
    again = list(again_lines(view))
    return [*lines, *([Text(), *again] if again else [])]


def _condition(view: SweepView, condition: Object) -> Text:
    kind = str(condition.get("type") or "")
    shown = kind if condition.get("status") == "True" else f"not {kind}"
    since = condition.get("lastTransitionTime")
    age = f", {duration((view.now - parse_timestamp(since)).total_seconds())} ago" if since else ""
    line = Text(f"  {printable(shown)}", style=STYLES.get(shown, "default"))
    line.append(f" ({printable(str(condition.get('reason') or ''))}{age})", style="default")
    message = printable(str(condition.get("message") or ""))
    return line.append(f": {message}" if message else "", style="default")


def _news(obj: Object) -> str:
    status = mapping_at(obj, "status")
    return f"{status.get('state')} {status.get('trialCounts')} {status.get('result')}"


def _without_managers(obj: Object) -> Object:
    return obj | {"metadata": {key: value for key, value in metadata_of(obj).items() if key != "managedFields"}}
