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

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import Final, TypeVar

import anyio
from aiohttp import web
from multidict import MultiMapping

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.client import Client
from trainer.kube.logger import get_logger
from trainer.kube.objects import Object, ObjectKey, name_of
from trainer.kube.resource import CONFIG_MAPS, EVENTS, HORIZONTAL_POD_AUTOSCALERS, PODS, Resource
from trainer.plugins import coscheduling, volcano
from trainer.workloads import JOBSETS
from trainer_dashboard.access.parties import Party
from trainer_dashboard.access.viewer import ListableNamespaces, Viewer, before_records, may_list
from trainer_dashboard.history.cluster_identity import cluster_of
from trainer_dashboard.history.database import Database
from trainer_dashboard.history.errors import HistoryError
from trainer_dashboard.history.queries import Cursor, Filter, History, TrainingRecord
from trainer_dashboard.past.past_rows import past_curves, past_events, past_logs, past_page, past_row
from trainer_dashboard.requests.manifests import yaml_of
from trainer_dashboard.requests.rejected import RejectedError
from trainer_dashboard.requests.user_requests import NAME
from trainer_dashboard.serving.answers import data, refusal

log = get_logger(__name__)

_T = TypeVar("_T")

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
    )
}
"""Those whose objects are kept; what is of another kind is shown to nobody."""
_CURVES: Final = 1
"""Trainings whose samples are read at once: a million of them take some 150 MiB meanwhile."""
_WORDS, _LONGEST_TEXT = 8, 256
_NOTHING: Final = "Nothing is recorded yet: trainer history record does that, or trainer dashboard --record."
_DAMAGED: Final = "what the history has of this training is damaged"


class _WrongQuestionError(Exception):
    """The query of a request is none that the page sends."""


@dataclass(frozen=True, slots=True)
class _Question:
    """The query of a request for a list."""

    namespace: str
    which: Filter
    """Not yet of a cluster."""
    after: Cursor | None

    @classmethod
    def of(cls, query: MultiMapping[str]) -> _Question:
        """Read it.

        Raises:
            _WrongQuestionError: it is malformed.
        """
        texts = {name: query.get(name, "") for name in ("namespace", "name", "state", "q", "before", "after")}
        if longest := next((name for name, text in texts.items() if len(text) > _LONGEST_TEXT), ""):
            raise _WrongQuestionError(f"{longest} must have at most {_LONGEST_TEXT} characters")
        if wrong := next((name for name, text in texts.items() if "\0" in text), ""):
            raise _WrongQuestionError(f"{wrong} must not have the character NUL")
        before = _number("before", texts["before"]) if texts["before"] else None
        words = tuple(texts["q"].split()[:_WORDS])
        only_deleted = query.get("deleted") == "true"
        which = Filter(name=texts["name"], state=texts["state"], words=words, only_deleted=only_deleted, before=before)
        return cls(texts["namespace"], which, _cursor(texts["after"]) if texts["after"] else None)


class PastTrainings:
    """Answers requests about the history of one cluster.

    Args:
        database: of the recorder.
        client: says which cluster this is; its users see TrainJobs converted to v2alpha1.
        server: the address of the API server, which stands for the cluster as it does for the recorder.
    """

    def __init__(self, database: Database, client: Client, server: str) -> None:
        self._database = database
        self._history = History(database)
        self._client = client
        self._server = server
        self._cluster = ""
        self._is_checked = False
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
        viewer = before_records(viewer)
        try:
            async with party.reading():
                match parts:
                    case []:
                        return await self._list(_Question.of(request.query), viewer, party, namespace)
                    case [where, name, uid, *rest] if all(map(NAME.fullmatch, (where, name, uid))):
                        if namespace not in {"", where}:
                            return refusal(HTTPStatus.NOT_FOUND, f"only the namespace {namespace} is shown here")
                        source = request.query.get("source", "")
                        return await self._about_one(ObjectKey(where, name), uid, rest, viewer, party, source=source)
        except _WrongQuestionError as error:
            return refusal(HTTPStatus.BAD_REQUEST, str(error))
        except HistoryError as error:
            log.warning("could not read history", error=str(error))
            # It names the database, which is for who has started the dashboard.
            text = "the history cannot be read now; the log of the dashboard says why" if viewer.name else str(error)
            return refusal(HTTPStatus.SERVICE_UNAVAILABLE, text)
        return None

    async def _list(self, question: _Question, viewer: Viewer, party: Party, shown: str) -> web.Response:
        asked = question.namespace or shown
        if shown not in {"", asked}:
            return refusal(HTTPStatus.NOT_FOUND, f"only the namespace {shown} is shown here")
        may_see_all = await may_list(viewer, "")
        if asked and not may_see_all and not await may_list(viewer, asked):
            return refusal(HTTPStatus.FORBIDDEN, f"you may not list TrainJobs in the namespace {asked}")
        if not await party.ask_history(self._has_database):
            return data({"trainings": [], "next": "", "namespaces": [], "note": _NOTHING})
        cluster = await self._this_cluster()
        visible = await self._visible(cluster, viewer, party, may_see_all=may_see_all) if not shown else [shown]
        chosen = frozenset({asked}) if asked else None if may_see_all else frozenset(visible)
        which = replace(question.which, cluster=cluster, namespaces=chosen)
        page = partial(History.trainings, which=which, by_end=True, limit=PAGE + 1, after=question.after)
        records = await self._ask(party, page)
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
        namespaces = await self._ask(party, partial(History.namespaces, cluster=cluster))
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
        cluster = await self._this_cluster()
        record = await self._ask(party, partial(History.of_uid, uid=uid))
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
                    return await self._ask(party, partial(past_curves, uid=uid))
            case ["logs"]:
                return await self._ask(party, partial(past_logs, uid=uid, source=source))
            case ["events"]:
                return await self._ask(party, lambda history: past_events(history.events(uid)))
            case ["objects"]:
                return await self._objects(record, viewer, party)
        key = ObjectKey(record.namespace, "")
        may_read_logs = await viewer.may("get", PODS, key, subresource="log")
        return await self._ask(party, partial(past_page, record=record, may_read_logs=may_read_logs))

    async def _objects(self, record: TrainingRecord, viewer: Viewer, party: Party) -> Object:
        """The YAML of the objects that were kept, and why some of them are not shown."""
        shown: list[Object] = []
        problems: dict[str, None] = {}
        for obj in await self._ask(party, partial(History.objects, uid=record.uid)):
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

    async def _this_cluster(self) -> str:
        if not self._cluster:
            self._cluster = await cluster_of(self._client, self._server)
        return self._cluster

    def _has_database(self) -> bool:
        """Whether there is one to ask; the file of SQLite is made by the first recorder."""
        return self._database.file is None or self._database.file.is_file()

    async def _ask(self, party: Party, question: Callable[[History], _T]) -> _T:
        """An answer of the database, which blocks."""
        return await party.ask_history(partial(self._ask_blocking, question))

    def _ask_blocking(self, question: Callable[[History], _T]) -> _T:
        if not self._is_checked:
            self._database.check()  # else SQLite would make an empty file
            self._is_checked = True
        return question(self._history)


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


def _number(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise _WrongQuestionError(f"{name} must be seconds since 1970")
    return number


def _cursor(text: str) -> Cursor:
    end, separator, uid = text.partition("/")
    if not separator or not NAME.fullmatch(uid):
        raise _WrongQuestionError("after must be what the page before has as next")
    return Cursor(_number("after", end), uid)
