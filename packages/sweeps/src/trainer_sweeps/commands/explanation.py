"""Why a sweep does not get on: its own conditions, then its trials by their own explanations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from trainer.api.optimization import condition_of
from trainer.cli.current_cluster import ConnectedCluster
from trainer.cli.jobs.find import find_object, list_train_jobs
from trainer.explain import Cause, Explanation, Subject, Unread, Verdict, explain
from trainer.explain.cause import kubectl, one_line, trainer
from trainer.explain.reading import SnapshotReader
from trainer.framework.status.status import UNTOUCHED
from trainer.kube.clock import Clock
from trainer.kube.objects import Object, name_of
from trainer.kube.resource import Resource
from trainer_sweeps.api.optimizationjob import ConditionReason, State, TrialState
from trainer_sweeps.commands.show import SEE
from trainer_sweeps.commands.view import ShownTrial, SweepView, trials_of

_MOST_EXPLAINED: Final = 3
"""Trials that are explained one by one: those that wait, and as many that have failed."""
_RUN_ALONE: Final = frozenset({"Running", "Complete"})
"""States of TrainJobs that need no explanation."""


class SweepExplainer:
    """Answers about one sweep, with the rights of the user."""

    def __init__(self, cluster: ConnectedCluster, resource: Resource, clock: Clock) -> None:
        self._cluster, self._resource, self._clock = cluster, resource, clock
        self._unread: list[Unread] = []
        self._jobs: dict[str, Object] = {}

    async def answer(self, name: str, namespace: str) -> Explanation:
        """The first cause is what to act on.

        Raises:
            GoneError: there is no such sweep.
        """
        client = self._cluster.client
        sweep = await find_object(client, name, namespace, self._resource, see=SEE)
        jobs = await list_train_jobs(client, trials_of(name, namespace))
        self._jobs = {name_of(job): job for job in jobs}
        view = SweepView.of(sweep, jobs, self._clock.now())
        own = list(_own_causes(view))
        waiting = [] if view.has_ended or view.state == State.SUSPENDED else await self._of_waiting(view)
        failed = await self._of_failed(view)
        verdict = _verdict(view, own, waiting)
        causes = [*own, *waiting, *failed] if verdict is not Verdict.SUCCEEDED else []
        return Explanation(verdict, tuple(causes), notes=tuple(_notes(view)), unread=tuple(self._unread))

    async def _of_waiting(self, view: SweepView) -> list[Cause]:
        """Why trials do not run, each cause with all trials that have it as the first one."""
        held = [each for each in view.trials if not each.trial.has_ended and each.word not in _RUN_ALONE]
        return _together(await self._causes(held[:_MOST_EXPLAINED]), "waits", more=len(held) - _MOST_EXPLAINED)

    async def _of_failed(self, view: SweepView) -> list[Cause]:
        failed = [each for each in view.trials if each.trial.state is TrialState.FAILED]
        explained = failed[-_MOST_EXPLAINED:]
        found = await self._causes(explained)
        return _together(found, "has failed", more=len(failed) - len(explained))

    async def _causes(self, trials: Sequence[ShownTrial]) -> list[tuple[ShownTrial, Cause]]:
        return [(each, await self._cause(each)) for each in trials]

    async def _cause(self, shown: ShownTrial) -> Cause:
        """The first cause that `trainer explain` names of a trial; of one that is gone what the sweep has kept."""
        trial, job = shown.trial, self._jobs.get(shown.trial.name)
        reason = "TrialFailed" if trial.state is TrialState.FAILED else shown.word
        if job is not None and not (
            trial.state is TrialState.FAILED and shown.job is not None and shown.job.is_complete
        ):
            found = explain(await SnapshotReader(self._cluster.client, job, self._clock).snapshot())
            self._unread += [each for each in found.unread if each not in self._unread]
            if found.causes:
                return found.causes[0]
        remedy = "look into its log and metrics; the metric must be reported under the name of the objective"
        namespace = "" if job is None else str(job["metadata"].get("namespace") or "")
        command = trainer("metrics", trial.name, namespace=namespace)
        about = Subject("TrainJob", trial.name, namespace)
        return Cause(reason, about, trial.message or f"is {shown.word}", remedy, command)


def _own_causes(view: SweepView) -> Iterator[Cause]:
    """What the sweep itself says."""
    about = Subject(view.obj["kind"], view.name, view.namespace)
    details = trainer("get", f"sweep/{view.name}", namespace=view.namespace)
    if view.state == State.FAILED:
        condition = condition_of(view.obj, view.state)
        remedy = "see below why trials have failed, correct that, and submit the sweep anew"
        if condition.get("reason") == ConditionReason.MAX_FAILED_TRIALS_REACHED:
            remedy += ", or allow more of them (--max-failed)"
        yield Cause(str(condition.get("reason") or "Failed"), about, _message(condition), remedy, details)
    elif view.state == State.SUSPENDED:
        remedy = f"trainer resume sweep/{view.name} -n {view.namespace}"
        yield Cause("Suspended", about, "it is suspended, and so are its trials", remedy, details)
    elif view.state == State.BLOCKED:
        condition = condition_of(view.obj, view.state)
        remedy = "change what the message names; it is tried again by itself"
        if condition.get("reason") == ConditionReason.ALGORITHM_CREATION_FAILED:
            remedy = "do what the message says, or submit the sweep with another algorithm"
        yield Cause(str(condition.get("reason") or "Blocked"), about, _message(condition), remedy, details)
    elif view.state == UNTOUCHED:
        yield Cause(
            "NoController",
            about,
            "no controller has handled it yet",
            "check that a manager runs, and that trainer-operator[sweeps] is installed with it",
            kubectl("get", "pods", "-A", "-l", "app.kubernetes.io/name=trainer"),
        )


def _together(found: Sequence[tuple[ShownTrial, Cause]], verb: str, *, more: int) -> list[Cause]:
    """The causes, each once with the trials that have it: twenty trials wait for the same GPUs."""
    by_text: dict[tuple[str, str], list[tuple[ShownTrial, Cause]]] = {}
    for shown, cause in found:
        text = cause.message.replace(shown.trial.name, "")
        by_text.setdefault((cause.reason, text), []).append((shown, cause))
    causes = []
    for same in by_text.values():
        numbers = ", ".join(str(shown.trial.number) for shown, _ in same)
        who = f"trial {numbers} {verb}" if len(same) == 1 else f"trials {numbers} {_plural(verb)}"
        shown, cause = same[0]
        causes.append(replace(cause, message=one_line(f"{who}: {cause.message}")))
    if causes and more > 0:
        message = f"{causes[-1].message} ({more} more {'has' if more == 1 else 'have'} not been looked into)"
        causes[-1] = replace(causes[-1], message=message)
    return causes


def _plural(verb: str) -> str:
    return {"waits": "wait", "has failed": "have failed"}[verb]


def _verdict(view: SweepView, own: Sequence[Cause], waiting: Sequence[Cause]) -> Verdict:
    if view.state == State.FAILED:
        return Verdict.FAILED
    if view.has_ended:
        return Verdict.SUCCEEDED
    runs = any(each.word in _RUN_ALONE for each in view.trials if not each.trial.has_ended)
    return Verdict.WAITING if own or (waiting and not runs) else Verdict.RUNNING


def _notes(view: SweepView) -> Iterator[str]:
    """What holds nothing: counts, trials that wait for their value, and what is pruned."""
    yield f"{view.ended} of {view.total} trials have ended"
    if view.best is not None:
        yield f"the best so far is trial {view.best.number} with {view.objective.metric} {view.best_value}"
    if pruned := view.count(TrialState.PRUNED):
        yield f"{pruned} {'was' if pruned == 1 else 'were'} pruned: stopped as hopeless, with what they had reported"
    for each in view.trials:
        if not each.trial.has_ended and each.job is not None and each.job.is_complete:
            yield (
                f"trial {each.trial.number} has ended, and its {view.objective.metric} is awaited until its log is "
                "read, a minute at the longest"
            )


def _message(condition: Object) -> str:
    return one_line(condition.get("message") or condition.get("reason") or "")
