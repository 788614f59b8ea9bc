"""What the page asks about the history: trainings that have ended or are gone, as a recorder has kept them.

The database has what the recorder could read, of all namespaces and of other clusters too. So a viewer is shown
trainings of this cluster alone, and of those what they may read there today:

| what | needed in the namespace of the training, or in all |
|---|---|
| the list | `list` on TrainJobs |
| a training | `get` on TrainJobs |
| its samples and last log lines, and parameters that its log has | `get` on `pods/log` |
| its events | `list` on events |
| its runtime, its JobSet, and what else was rendered for it | `get` on each of them |

In a namespace that is gone nobody has rights of its own, so that its trainings are for who may read those of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Final

import anyio
from aiohttp import web

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.client import Client
from trainer.kube.logger import get_logger
from trainer.kube.objects import Object, ObjectKey, name_of
from trainer.kube.resource import CONFIG_MAPS, EVENTS, HORIZONTAL_POD_AUTOSCALERS, PODS, Resource
from trainer.plugins import coscheduling, volcano
from trainer.workloads import JOBSETS
from trainer.workloads.scheduling_groups import POD_GROUPS
from trainer_dashboard.access.parties import Party
from trainer_dashboard.access.viewer import ListableNamespaces, Viewer, may_list
from trainer_dashboard.history.database import Database
from trainer_dashboard.history.queries import History, TrainingRecord
from trainer_dashboard.past.history_reader import HistoryReader
from trainer_dashboard.past.past_rows import past_curves, past_events, past_logs, past_page, past_row
from trainer_dashboard.past.past_sweeps import PastSweeps
from trainer_dashboard.past.question import Question
from trainer_dashboard.requests.manifests import yaml_of
from trainer_dashboard.requests.rejected import RejectedError
from trainer_dashboard.requests.user_requests import NAME
from trainer_dashboard.serving.answers import data, refusal

log = get_logger(__name__)

PAGE: Final = 100
"""Trainings of one answer."""
_RESOURCES: Final = {
    (resource.group, resource.kind): resource
    for resource in (
        TRAIN_JOBS,
        CLUSTER_TRAINING_RUNTIMES,
        TRAINING_RUNTIMES,
        JOBSETS,
        CONFIG_MAPS,
        HORIZONTAL_POD_AUTOSCALERS,
        coscheduling.POD_GROUPS,
        volcano.POD_GROUPS,
        *POD_GROUPS,
    )
}
"""Those whose objects are kept; what is of another kind is shown to nobody."""
_CURVES: Final = 1
"""Trainings whose samples are read at once: a million of them take some 150 MiB meanwhile."""
NOTHING: Final = "Nothing is recorded yet: trainer history record does that, or trainer dashboard --record."
_DAMAGED: Final = "what the history has of this training is damaged"


class PastTrainings:
    """Answers requests about the trainings of one cluster.

    Args:
        database: of the recorder.
        client: says which cluster this is; its users see TrainJobs converted to v2alpha1.
        server: the address of the API server, which stands for the cluster as it does for the recorder.
    """

    def __init__(self, database: Database, client: Client, server: str) -> None:
        self._reader = HistoryReader(database, client, server)
        self.sweeps = PastSweeps(self._reader)
        """Answers requests about the sweeps of the same cluster."""
        self._curves = anyio.CapacityLimiter(_CURVES)

    async def answer(
        self, request: web.BaseRequest, parts: list[str], viewer: Viewer, party: Party, namespace: str
    ) -> web.Response | None:
        """The answer; None for a path or a method that is none of these.

        Args:
            request: of the page.
            parts: of its path, without `api` and `history`.
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
        self, request: web.BaseRequest, parts: list[str], party: Party, namespace: str, viewer: Viewer
    ) -> web.Response | None:
        match parts:
            case []:
                return await self._list(Question.of(request.query), viewer, party, namespace)
            case [where, name, uid, *rest] if all(map(NAME.fullmatch, (where, name, uid))):
                if namespace not in {"", where}:
                    return refusal(HTTPStatus.NOT_FOUND, f"only the namespace {namespace} is shown here")
                source = request.query.get("source", "")
                return await self._about_one(ObjectKey(where, name), uid, rest, viewer, party, source=source)
        return None

    async def _list(self, question: Question, viewer: Viewer, party: Party, shown: str) -> web.Response:
        asked = question.namespace or shown
        if shown not in {"", asked}:
            return refusal(HTTPStatus.NOT_FOUND, f"only the namespace {shown} is shown here")
        may_see_all = await may_list(viewer, "")
        if asked and not may_see_all and not await may_list(viewer, asked):
            return refusal(HTTPStatus.FORBIDDEN, f"you may not list TrainJobs in the namespace {asked}")
        if not await self._reader.has_database(party):
            return data({"trainings": [], "next": "", "namespaces": [], "note": NOTHING})
        cluster = await self._reader.cluster()
        visible = await self._visible(cluster, viewer, party, may_see_all=may_see_all) if not shown else [shown]
        chosen = frozenset({asked}) if asked else None if may_see_all else frozenset(visible)
        which = replace(question.which, cluster=cluster, namespaces=chosen)
        page = partial(History.trainings, which=which, by_end=True, limit=PAGE + 1, after=question.after)
        records = await self._reader.ask(party, page)
        last = records[PAGE - 1] if len(records) > PAGE else None
        return data(
            {
                "trainings": [past_row(record) for record in records[:PAGE]],
                "next": f"{last.end!r}/{last.uid}" if last is not None else "",
                "namespaces": visible,
                "note": "",
            }
        )

    async def _visible(self, cluster: str, viewer: Viewer, party: Party, *, may_see_all: bool) -> list[str]:
        """The namespaces whose trainings the viewer may see."""
        namespaces = await self._reader.ask(party, partial(History.namespaces, cluster=cluster))
        if may_see_all:
            return namespaces
        listable = ListableNamespaces(viewer)
        await listable.ask(namespaces)
        return [namespace for namespace in namespaces if listable.has(namespace)]

    async def _about_one(
        self, key: ObjectKey, uid: str, rest: list[str], viewer: Viewer, party: Party, *, source: str
    ) -> web.Response | None:
        if len(rest) > 1 or not set(rest) <= {"metrics", "logs", "events", "objects"}:
            return None
        rights = [("get", TRAIN_JOBS, "")]
        if rest in (["metrics"], ["logs"]):
            rights.append(("get", PODS, "log"))
        if rest == ["events"]:
            rights.append(("list", EVENTS, ""))
        if (refused := await _refusal(viewer, key, rights)) is not None:
            return refused
        cluster = await self._reader.cluster()
        record = await self._reader.ask(party, partial(History.of_uid, uid=uid))
        if record is None or (record.cluster, record.namespace, record.name) != (cluster, *key):
            return refusal(HTTPStatus.NOT_FOUND, "the history has no such training")
        try:
            return data(await self._part(record, rest, viewer, party, source))
        except ValueError:
            log.warning("could not read what history has of training", trainjob=str(key), uid=uid, exc_info=True)
            return refusal(HTTPStatus.INTERNAL_SERVER_ERROR, _DAMAGED)

    async def _part(self, record: TrainingRecord, rest: list[str], viewer: Viewer, party: Party, source: str) -> object:
        uid = record.uid
        match rest:
            case ["metrics"]:
                async with self._curves:
                    return await self._reader.ask(party, partial(past_curves, uid=uid))
            case ["logs"]:
                return await self._reader.ask(party, partial(past_logs, uid=uid, source=source))
            case ["events"]:
                return await self._reader.ask(party, lambda history: past_events(history.events(uid)))
            case ["objects"]:
                return await self._objects(record, viewer, party)
        key = ObjectKey(record.namespace, "")
        may_read_logs = await viewer.may("get", PODS, key, subresource="log")
        return await self._reader.ask(party, partial(past_page, record=record, may_read_logs=may_read_logs))

    async def _objects(self, record: TrainingRecord, viewer: Viewer, party: Party) -> Object:
        """The YAML of the objects that were kept, and why some of them are not shown."""
        shown: list[Object] = []
        problems: dict[str, None] = {}
        for obj in await self._reader.ask(party, partial(History.objects, uid=record.uid)):
            kind = str(obj.get("kind"))
            resource = _RESOURCES.get((str(obj.get("apiVersion")).rpartition("/")[0], kind))
            if resource is None:
                problems[f"objects of kind {kind} are not shown"] = None
                continue
            key = ObjectKey(record.namespace if resource.namespaced else "", name_of(obj))
            if (refused := await _missing_right(viewer, key, "get", resource, "")) is not None:
                problems[refused] = None
                continue
            try:
                shown.append({"kind": kind, "name": name_of(obj), "yaml": await yaml_of(obj, party)})
            except RejectedError as error:
                problems[f"{kind} {name_of(obj)} {error}"] = None
        return {"objects": shown, "problems": list(problems)}


async def _refusal(viewer: Viewer, key: ObjectKey, rights: Sequence[tuple[str, Resource, str]]) -> web.Response | None:
    for verb, resource, subresource in rights:
        # Of pods and events any may be meant.
        of = key if resource is TRAIN_JOBS else ObjectKey(key.namespace, "")
        if (missing := await _missing_right(viewer, of, verb, resource, subresource)) is not None:
            return refusal(HTTPStatus.FORBIDDEN, missing)
    return None


async def _missing_right(viewer: Viewer, key: ObjectKey, verb: str, resource: Resource, subresource: str) -> str | None:
    """What the viewer may not do; None if they may."""
    if await viewer.may(verb, resource, key, subresource=subresource):
        return None
    what = "/".join(filter(None, (resource.plural, subresource)))
    where = f" in the namespace {key.namespace}" if key.namespace else ""
    return f"you may not {verb} {what if resource is not TRAIN_JOBS else 'TrainJobs'}{where}"
