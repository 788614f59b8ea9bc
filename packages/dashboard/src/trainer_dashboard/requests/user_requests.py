"""What the page asks for that is read and done with the rights of its user alone, each time anew."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Annotated, Final, TypeVar
from weakref import WeakKeyDictionary

import msgspec
from aiohttp import web

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.explain.target import NO_OPTIONS, CommandOptions
from trainer.kube.cache.store import Lister
from trainer.kube.client import Client
from trainer.kube.clock import Clock
from trainer.kube.errors import ApiError, UnauthorizedError
from trainer.kube.json_text import decode_json
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import Resource
from trainer.v1alpha1.discovery import Served
from trainer_dashboard.access.actions import Actions
from trainer_dashboard.access.parties import Party
from trainer_dashboard.access.sweep_actions import SweepActions
from trainer_dashboard.access.viewer import Viewer
from trainer_dashboard.access.visible import NamespaceScope
from trainer_dashboard.requests.built_objects import built_objects
from trainer_dashboard.requests.capacity import capacity
from trainer_dashboard.requests.drafts import Drafts
from trainer_dashboard.requests.explanations import Explanations
from trainer_dashboard.requests.manifests import manifest
from trainer_dashboard.requests.queues import queues
from trainer_dashboard.requests.rejected import RejectedError
from trainer_dashboard.requests.runtimes import runtimes
from trainer_dashboard.requests.submissions import LONGEST_YAML, Submissions
from trainer_dashboard.requests.sweep_requests import SweepRequests
from trainer_dashboard.serving.answers import data, refusal
from trainer_dashboard.serving.shared_answer import SharedAnswer

NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", re.ASCII)
"""Names of objects that may stand in a path of the API server."""
_LONGEST_BODY = 6 * LONGEST_YAML
"""Bytes of a TrainJob in JSON, where a character may take six."""
_SHARED_SECONDS = 10.0
"""Seconds after which runtimes, pods and Workloads of all namespaces are read again."""

_B = TypeVar("_B", bound=msgspec.Struct)


class _WrongBodyError(Exception):
    """The body of a request is none that the page sends."""


class _Change(msgspec.Struct):
    """Body of a request that changes a TrainJob, or a sweep."""

    uid: Annotated[str, msgspec.Meta(min_length=1)]


class _Scale(_Change):
    """Body of a request that changes the number of its nodes."""

    nodes: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class _Submission(msgspec.Struct):
    """Body of a request that creates a TrainJob, or tries it."""

    yaml: str


@dataclass(frozen=True, slots=True)
class UserRequests:
    """Answers requests with the client of whoever sends them."""

    served: Served
    clock: Clock
    target: CommandOptions = NO_OPTIONS
    """Options of the commands in explanations. Default: none, for users with contexts of their own."""
    _answers: WeakKeyDictionary[Client, dict[str, SharedAnswer]] = field(default_factory=WeakKeyDictionary, init=False)

    async def answer(
        self, request: web.BaseRequest, parts: list[str], viewer: Viewer, party: Party, shown: Shown
    ) -> web.Response | None:
        """The answer; None for a path or a method that is none of these.

        Args:
            request: of the page.
            parts: of its path, without `api`.
            viewer: who asks.
            party: theirs.
            shown: what the page shows.

        Raises:
            KubeError: the API server refuses it, or does not answer.
        """
        try:
            # Before its turn, which does not last as long as somebody takes to send a body.
            body = await _body(request)
            if parts[0] == "trainjobs" and parts[3:] == ["explanation"]:
                return await self._explain(request, parts, viewer, party)
            async with party.reading():
                asked = _Request(request.method, parts, body, viewer, party, shown, request.query.get("namespace", ""))
                return await self._answer(asked)
        except _WrongBodyError as error:
            return refusal(HTTPStatus.BAD_REQUEST, str(error))
        except RejectedError as error:
            return refusal(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))

    async def _explain(
        self, request: web.BaseRequest, parts: list[str], viewer: Viewer, party: Party
    ) -> web.Response | None:
        key = ObjectKey(parts[1], parts[2])
        if request.method != "GET" or not all(map(NAME.fullmatch, key)):
            return None
        return data(await Explanations(viewer.client, self.clock, party, self.target).of(key))

    async def _answer(self, asked: _Request) -> web.Response | None:
        scope = asked.shown.scope
        match asked.method, asked.parts:
            case _, ["trainjobs", where, name, *rest] if NAME.fullmatch(where) and NAME.fullmatch(name):
                return await self._about_job(asked, rest, ObjectKey(where, name))
            case _, ["sweeps", where, name, *rest] if NAME.fullmatch(where) and NAME.fullmatch(name):
                return await self._about_sweep(asked, rest, ObjectKey(where, name))
            case "GET", ["rights", where] if NAME.fullmatch(where):
                return data(await Actions(asked.client).rights(ObjectKey(where, "")))
            case "POST", ["trainjobs"]:
                return await self._create(asked)
            case "POST", ["trials"]:
                return await self._try(asked)
            case "GET", ["draft"]:
                wanted = asked.namespace if NAME.fullmatch(asked.namespace) else asked.shown.home
                return data({"yaml": await self._drafts(asked).empty(scope, wanted)})
            case "GET", ["clusterruntimes", name, "yaml"] if NAME.fullmatch(name):
                return await self._yaml(asked, CLUSTER_TRAINING_RUNTIMES, ObjectKey("", name))
            case "GET", ["runtimes", where, name, "yaml"] if NAME.fullmatch(where) and NAME.fullmatch(name):
                return await self._yaml(asked, TRAINING_RUNTIMES, ObjectKey(where, name))
            case "GET", ["runtimes"]:
                return await self._share(asked, partial(runtimes, asked.client, scope))
            case "GET", ["capacity"]:
                return await self._share(asked, partial(capacity, asked.client, self.clock, asked.party.compute))
            case "GET", ["queues"]:
                return await self._share(asked, partial(queues, asked.client, scope))
        return None

    async def _share(self, asked: _Request, ask: Callable[[], Awaitable[Object]]) -> web.Response:
        # Those of users who have gone would be kept as long as their clients, however large they are.
        for each in [answer for of_one in self._answers.values() for answer in of_one.values()]:
            each.forget_if_old()
        answers = self._answers.setdefault(asked.client, {})
        shared = answers.setdefault(asked.parts[0], SharedAnswer(self.clock, _SHARED_SECONDS))
        return data(await shared.get(ask))

    async def _about_job(self, asked: _Request, rest: list[str], key: ObjectKey) -> web.Response | None:
        actions = Actions(asked.client)
        match asked.method, rest:
            case "GET", ["rights"]:
                return data(await actions.rights(key))
            case "GET", ["yaml"]:
                return await self._yaml(asked, TRAIN_JOBS, key)
            case "GET", ["built"]:
                return data(await built_objects(asked.client, self.served, asked.party, key))
            case "GET", ["copy"]:
                return data({"yaml": await self._drafts(asked).copy_of(key)})
            case "POST", ["suspend" | "resume" as verb]:
                await actions.set_suspend(key, asked.content(_Change).uid, suspend=verb == "suspend")
            case "POST", ["scale"]:
                scale = asked.content(_Scale)
                await actions.scale(key, scale.uid, nodes=scale.nodes)
            case "DELETE", []:
                await actions.delete(key, asked.content(_Change).uid)
            case _:
                return None
        return data({})

    async def _about_sweep(self, asked: _Request, rest: list[str], key: ObjectKey) -> web.Response | None:
        actions = SweepActions(asked.client, self.served)
        match asked.method, rest:
            case "GET", _:
                answer = await SweepRequests(actions, self._drafts(asked), asked.party).read(rest, key)
                return data(answer) if answer is not None else None
            case "POST", ["suspend" | "resume" as verb]:
                await actions.set_suspend(key, asked.content(_Change).uid, suspend=verb == "suspend")
            case "DELETE", []:
                await actions.delete(key, asked.content(_Change).uid)
            case _:
                return None
        return data({})

    async def _yaml(self, asked: _Request, resource: Resource, key: ObjectKey) -> web.Response:
        return data({"yaml": await manifest(asked.client, asked.party, self.served.resource(resource), key)})

    def _drafts(self, asked: _Request) -> Drafts:
        return Drafts(asked.viewer, self.served, asked.party, asked.shown.jobs)

    def _submissions(self, asked: _Request) -> Submissions:
        return Submissions(asked.viewer, self.served, asked.party)

    async def _create(self, asked: _Request) -> web.Response:
        created = await self._submissions(asked).submit(asked.content(_Submission).yaml, dry_run=False)
        return data(created, HTTPStatus.CREATED)

    async def _try(self, asked: _Request) -> web.Response:
        """What would be created, or the `problem` of the text: to find one is no failure of the request."""
        try:
            return data(await self._submissions(asked).submit(asked.content(_Submission).yaml, dry_run=True))
        except UnauthorizedError:
            raise
        except RejectedError as error:
            return data({"problem": str(error), "errors": [_placed(each.field, each.message) for each in error.errors]})
        except ApiError as error:
            if error.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
                raise
            errors = [_placed(str(each.get("field") or ""), str(each.get("message") or "")) for each in error.causes]
            return data({"problem": str(error), "errors": errors})


def _placed(path: str, message: str) -> Object:
    """An error for the page, at the path of a field, or at a place such as `line 3, column 7`."""
    return {"field": path, "message": message}


@dataclass(frozen=True, slots=True)
class Shown:
    """What the page shows to a user."""

    scope: NamespaceScope
    jobs: Lister
    """The TrainJobs, also those that the user may not see."""
    home: str
    """The namespace in which a TrainJob is created that names none."""


@dataclass(frozen=True, slots=True)
class _Request:
    """A request of the page."""

    method: str
    parts: list[str]
    """Of its path, without `api`."""
    body: bytes
    viewer: Viewer
    party: Party
    shown: Shown
    namespace: str
    """That its query names, or ""."""

    @property
    def client(self) -> Client:
        """Of the user; its users see TrainJobs converted to v2alpha1."""
        return self.viewer.client

    def content(self, shape: type[_B]) -> _B:
        """What the body says.

        Raises:
            _WrongBodyError: it has another shape.
        """
        try:
            return decode_json(msgspec.json.Decoder(shape), self.body)
        except msgspec.DecodeError as error:
            fields = ", ".join(shape.__struct_fields__)
            raise _WrongBodyError(f"the body must be JSON with {fields}: {error}") from None


async def _body(request: web.BaseRequest) -> bytes:
    """The body of a request.

    Raises:
        _WrongBodyError: it is too long.
    """
    body = b""
    while len(body) <= _LONGEST_BODY and (part := await request.content.read(_LONGEST_BODY)):
        body += part
    if len(body) > _LONGEST_BODY:
        raise _WrongBodyError(f"the body must have at most {_LONGEST_BODY} bytes")
    return body
