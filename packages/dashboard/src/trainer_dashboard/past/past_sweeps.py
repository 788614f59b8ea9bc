"""What the page asks about past sweeps, in the shapes in which it gets those of the cluster.

A viewer sees sweeps of this cluster where they may `list` OptimizationJobs now, and one with `get`; what is kept of the
TrainJobs of its trials, such as curves, with `list` on TrainJobs. The parameters and values that the sweep itself has
recorded of its trials come with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Final

from aiohttp import web

from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.kube.logger import get_logger
from trainer.kube.objects import Object, ObjectKey, mapping_at
from trainer_dashboard.access.parties import Party
from trainer_dashboard.access.viewer import ListableNamespaces, Viewer, may_list
from trainer_dashboard.history.queries import Cursor, Filter, History, TrainingRecord
from trainer_dashboard.history.sweep_queries import SweepHistory, SweepRecord
from trainer_dashboard.past.history_reader import HistoryReader
from trainer_dashboard.past.past_rows import past_time
from trainer_dashboard.past.question import Question
from trainer_dashboard.requests.user_requests import NAME
from trainer_dashboard.serving.answers import data, refusal
from trainer_dashboard.sweep.importance import importance_of
from trainer_dashboard.sweep.rows import page_of, row_of
from trainer_dashboard.sweep.trials import ended_trials, trial_of, trials_of

log = get_logger(__name__)

PAGE: Final = 50
"""Sweeps of one answer; each is read whole."""
_DAMAGED: Final = "what the history has of this sweep is damaged"


class PastSweeps:
    """Answers requests about the sweeps of one cluster that have ended or are gone."""

    def __init__(self, reader: HistoryReader) -> None:
        self._reader = reader

    async def answer(
        self, request: web.BaseRequest, parts: list[str], viewer: Viewer, party: Party, namespace: str
    ) -> web.Response | None:
        """The answer; None for a path or a method that is none of these.

        Args:
            request: of the page.
            parts: of its path, behind that of past sweeps: none for the list, or namespace, name and uid of one.
            viewer: who asks.
            party: theirs.
            namespace: the one that is shown; "" for all.

        Raises:
            KubeError: the API server does not answer.
        """
        if request.method != "GET":
            return None
        return await self._reader.answer(viewer, party, partial(self._answer, request, parts, party, namespace))

    async def _answer(
        self, request: web.BaseRequest, parts: list[str], party: Party, shown: str, viewer: Viewer
    ) -> web.Response | None:
        match parts:
            case []:
                return await self._list(Question.of(request.query), viewer, party, shown)
            case [where, name, uid] if all(map(NAME.fullmatch, parts)):
                if shown not in {"", where}:
                    return refusal(HTTPStatus.NOT_FOUND, f"only the namespace {shown} is shown here")
                return await self._one(ObjectKey(where, name), uid, viewer, party)
        return None

    async def _list(self, question: Question, viewer: Viewer, party: Party, shown: str) -> web.Response:
        asked = question.namespace or shown
        if shown not in {"", asked}:
            return refusal(HTTPStatus.NOT_FOUND, f"only the namespace {shown} is shown here")
        if not await self._reader.has_database(party):
            return data({"sweeps": [], "next": "", "namespaces": []})
        cluster = await self._reader.cluster()
        known = [asked] if asked else await self._reader.ask(party, partial(_namespaces, cluster))
        visible = await _visible(viewer, known)
        if asked and not visible:
            return refusal(HTTPStatus.FORBIDDEN, f"you may not list OptimizationJobs in the namespace {asked}")
        which = replace(question.which, cluster=cluster, namespaces=frozenset(visible))
        sweeps, following = await self._reader.ask(party, partial(_page, which, question.after))
        return data({"sweeps": sweeps, "next": following, "namespaces": visible})

    async def _one(self, key: ObjectKey, uid: str, viewer: Viewer, party: Party) -> web.Response:
        if not await viewer.may("get", OPTIMIZATION_JOBS, key):
            text = f"you may not get OptimizationJobs in the namespace {key.namespace}"
            return refusal(HTTPStatus.FORBIDDEN, text)
        cluster = await self._reader.cluster()
        record = await self._reader.ask(party, lambda history: SweepHistory(history).of_uid(uid))
        if record is None or (record.cluster, record.namespace, record.name) != (cluster, *key):
            return refusal(HTTPStatus.NOT_FOUND, "the history has no such sweep")
        may_see_trials = await may_list(viewer, key.namespace)
        try:
            sweep, trials = await self._reader.ask(party, partial(_sweep, record, may_see_trials))
        except ValueError:
            log.warning("could not read what history has of sweep", sweep=str(key), uid=uid, exc_info=True)
            return refusal(HTTPStatus.INTERNAL_SERVER_ERROR, _DAMAGED)
        spec = mapping_at(sweep, "spec")
        return data(
            {
                "sweep": page_of(sweep) | _past(record),
                "trials": trials,
                "importance": await party.compute(importance_of, spec, ended_trials(sweep, trials)),
                "problems": [] if may_see_trials else [f"you may not list TrainJobs in the namespace {key.namespace}"],
            }
        )


def _namespaces(cluster: str, history: History) -> list[str]:
    return SweepHistory(history).namespaces(cluster)


async def _visible(viewer: Viewer, namespaces: Sequence[str]) -> list[str]:
    """The namespaces whose sweeps the viewer may see."""
    if await may_list(viewer, "", OPTIMIZATION_JOBS):
        return [*namespaces]
    listable = ListableNamespaces(viewer, OPTIMIZATION_JOBS)
    await listable.ask(namespaces)
    return [namespace for namespace in namespaces if listable.has(namespace)]


def _page(which: Filter, after: Cursor | None, history: History) -> tuple[list[Object], str]:
    """Sweeps of a list, the one that was over last first, and where the next page begins."""
    sweeps = SweepHistory(history)
    records = sweeps.sweeps(which, by_end=True, limit=PAGE + 1, after=after)
    last = records[PAGE - 1] if len(records) > PAGE else None
    rows = [_row(sweeps, record) for record in records[:PAGE]]
    return rows, f"{last.end!r}/{last.uid}" if last is not None else ""


def _row(sweeps: SweepHistory, record: SweepRecord) -> Object:
    try:
        return row_of(sweeps.object_of(record.uid)) | _past(record)
    except ValueError:  # of one sweep, which costs the list nothing else
        return row_of({}) | _past(record)


def _sweep(record: SweepRecord, may_see_trials: bool, history: History) -> tuple[Object, list[Object]]:
    sweeps = SweepHistory(history)
    sweep = sweeps.object_of(record.uid)
    jobs = sweeps.train_jobs(record) if may_see_trials else []
    spec = mapping_at(sweep, "spec")
    trials = trials_of(sweep, filter(None, (trial_of(spec, job) for job in jobs)))
    kept = {each.trial: each for each in sweeps.trials(record)} if may_see_trials else {}
    return sweep, [each | _presence(each, kept.get(each["number"])) for each in trials]


def _presence(trial: Object, training: TrainingRecord | None) -> Object:
    """Where the page finds the TrainJob of a trial, on the cluster or in the history, and when it was over."""
    if training is None:
        return {"uid": "", "isThere": False}
    ended = trial["ended"] or past_time(training.deleted)
    return {"uid": training.uid, "isThere": training.deleted is None, "ended": ended}


def _past(record: SweepRecord) -> Object:
    """What the row of the history knows better than the object."""
    texts = ("uid", "namespace", "name", "state", "metric", "direction", "algorithm", "seconds")
    return {name: getattr(record, name) for name in texts} | {
        "created": past_time(record.created),
        "started": past_time(record.started),
        "ended": past_time(record.ended),
        "deleted": past_time(record.deleted),
    }
