"""What the page asks for that is read and done with the rights of its user alone, each time anew."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Final, TypeVar
from weakref import WeakKeyDictionary

import anyio
import msgspec

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.dashboard.actions import Actions
from trainer.dashboard.answers import data, refusal
from trainer.dashboard.built_objects import Builds
from trainer.dashboard.capacity import capacity
from trainer.dashboard.explanations import Explanations
from trainer.dashboard.manifests import manifest
from trainer.dashboard.queues import queues
from trainer.dashboard.runtimes import runtimes
from trainer.dashboard.shared_answer import SharedAnswer
from trainer.dashboard.submissions import LONGEST_YAML, RejectedError, Submissions
from trainer.explain.target import NO_OPTIONS, CommandOptions
from trainer.kube.errors import ApiError, UnauthorizedError
from trainer.kube.json_text import decode_json
from trainer.kube.objects import ObjectKey

if TYPE_CHECKING:
    from aiohttp import web

    from trainer.api.v1alpha1.discovery import Served
    from trainer.dashboard.built_objects import Renderer
    from trainer.dashboard.visible import Sight
    from trainer.kube.client import Client
    from trainer.kube.clock import Clock
    from trainer.kube.resource import Resource

NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", re.ASCII)
"""Names of objects that may stand in a path of the API server."""
_LONGEST_BODY = 4096
_LONGEST_SUBMISSION = 6 * LONGEST_YAML
"""Bytes of a TrainJob in JSON, where a character may take six."""
_EXPLAINED = 2
"""Explanations that are made at once; those of large TrainJobs take a processor for a while."""
_SHARED_SECONDS = 10.0
"""Seconds after which runtimes, pods and Workloads of all namespaces are read again."""

_B = TypeVar("_B", bound=msgspec.Struct)


class _WrongBodyError(Exception):
    """The body of a request is none that the page sends."""


class _Change(msgspec.Struct):
    """Body of a request that changes a TrainJob."""

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
    render: Renderer | None = None
    """Builds the objects of TrainJobs. Default: none, so that these are not shown."""
    _turns: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(_EXPLAINED), init=False)
    _answers: WeakKeyDictionary[Client, dict[str, SharedAnswer]] = field(default_factory=WeakKeyDictionary, init=False)

    async def answer(
        self, request: web.BaseRequest, parts: list[str], client: Client, sight: Sight
    ) -> web.Response | None:
        """The answer; None for a path or a method that is none of these.

        Args:
            request: of the page.
            parts: of its path, without `api`.
            client: of the user; its users see TrainJobs in the form of the model.
            sight: the namespaces that are shown.

        Raises:
            KubeError: the API server refuses it, or does not answer.
        """
        try:
            match parts:
                case ["trainjobs", where, name, *rest] if NAME.fullmatch(where) and NAME.fullmatch(name):
                    return await self._about_job(request, rest, client, ObjectKey(where, name))
                case ["trainjobs"] if request.method == "POST":
                    return await self._create(request, client)
                case ["trials"] if request.method == "POST":
                    return await self._try(request, client)
            return await self._about_cluster(parts, client, sight) if request.method == "GET" else None
        except _WrongBodyError as error:
            return refusal(HTTPStatus.BAD_REQUEST, str(error))
        except RejectedError as error:
            return refusal(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))

    async def _about_cluster(self, parts: list[str], client: Client, sight: Sight) -> web.Response | None:
        match parts:
            case ["runtimes"]:
                return data(await self._shared(client, "runtimes").get(partial(runtimes, client, sight)))
            case ["clusterruntimes", name, "yaml"] if NAME.fullmatch(name):
                return await self._yaml(client, CLUSTER_TRAINING_RUNTIMES, ObjectKey("", name))
            case ["runtimes", where, name, "yaml"] if NAME.fullmatch(where) and NAME.fullmatch(name):
                return await self._yaml(client, TRAINING_RUNTIMES, ObjectKey(where, name))
            case ["capacity"]:
                return data(await self._shared(client, "capacity").get(partial(capacity, client)))
            case ["queues"]:
                return data(await self._shared(client, "queues").get(partial(queues, client, sight)))
        return None

    def _shared(self, client: Client, question: str) -> SharedAnswer:
        answers = self._answers.setdefault(client, {})
        return answers.setdefault(question, SharedAnswer(self.clock, _SHARED_SECONDS))

    async def _about_job(
        self, request: web.BaseRequest, rest: list[str], client: Client, key: ObjectKey
    ) -> web.Response | None:
        actions = Actions(client)
        match request.method, rest:
            case "GET", ["rights"]:
                return data(await actions.rights(key))
            case "GET", ["explanation"]:
                return data(await Explanations(client, self.clock, self.target, self._turns).of(key))
            case "GET", ["yaml"]:
                return await self._yaml(client, TRAIN_JOBS, key)
            case "GET", ["built"] if self.render is not None:
                return data(await Builds(client, self.served, self.render).of(key))
            case "GET", ["copy"]:
                return data({"yaml": await Submissions(client, self.served).copy_of(key)})
            case "POST", ["suspend" | "resume" as verb]:
                change = await _body(request, _Change, _LONGEST_BODY)
                await actions.set_suspend(key, change.uid, suspend=verb == "suspend")
            case "POST", ["scale"]:
                scale = await _body(request, _Scale, _LONGEST_BODY)
                await actions.scale(key, scale.uid, nodes=scale.nodes)
            case "DELETE", []:
                await actions.delete(key, (await _body(request, _Change, _LONGEST_BODY)).uid)
            case _:
                return None
        return data({})

    async def _yaml(self, client: Client, resource: Resource, key: ObjectKey) -> web.Response:
        return data({"yaml": await manifest(client, self.served.resource(resource), key)})

    async def _create(self, request: web.BaseRequest, client: Client) -> web.Response:
        asked = await _body(request, _Submission, _LONGEST_SUBMISSION)
        created = await Submissions(client, self.served).submit(asked.yaml, dry_run=False)
        return data(created, HTTPStatus.CREATED)

    async def _try(self, request: web.BaseRequest, client: Client) -> web.Response:
        """What would be created, or the `problem` of the text: to find one is no failure of the request."""
        asked = await _body(request, _Submission, _LONGEST_SUBMISSION)
        try:
            return data(await Submissions(client, self.served).submit(asked.yaml, dry_run=True))
        except UnauthorizedError:
            raise
        except (RejectedError, ApiError) as error:
            if isinstance(error, ApiError) and error.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
                raise
            return data({"problem": str(error)})


async def _body(request: web.BaseRequest, shape: type[_B], longest: int) -> _B:
    """The body of a request.

    Raises:
        _WrongBodyError: it is too long, or has another shape.
    """
    body = b""
    while len(body) <= longest and (part := await request.content.read(longest)):
        body += part
    if len(body) > longest:
        raise _WrongBodyError(f"the body must have at most {longest} bytes")
    try:
        return decode_json(msgspec.json.Decoder(shape), body)
    except msgspec.DecodeError as error:
        fields = ", ".join(shape.__struct_fields__)
        raise _WrongBodyError(f"the body must be JSON with {fields}: {error}") from None
