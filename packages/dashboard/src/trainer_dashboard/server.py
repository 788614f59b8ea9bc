"""The server of the dashboard: its paths, and who may ask for them."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, NamedTuple

import anyio
import anyio.to_thread
from aiohttp import web

from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.api.trainjob import TRAIN_JOBS
from trainer.explain.target import NO_OPTIONS, CommandOptions
from trainer.framework.deploying.transforms import bounded_cache
from trainer.kube.cache.informer import Informer
from trainer.kube.client import Client
from trainer.kube.clock import Clock, SystemClock
from trainer.kube.errors import KubeError, UnauthorizedError
from trainer.kube.metrics import Metrics
from trainer.kube.objects import ObjectKey
from trainer.kube.resource import PODS
from trainer.kube.selection import Selection
from trainer.kube.serving.connection import ConnectionLimits
from trainer.kube.serving.http_server import HttpServer, HttpServerOptions
from trainer.v1alpha1.discovery import Served
from trainer_dashboard.access.actions import may
from trainer_dashboard.access.authenticator import Authenticator
from trainer_dashboard.access.parties import CONNECTIONS, REQUESTS_OF_ONE, STREAMS_OF_ONE, Parties, Party, Stream
from trainer_dashboard.access.viewer import Viewer, may_list
from trainer_dashboard.access.visible import NamespaceScope
from trainer_dashboard.live.board import Board, JobRows
from trainer_dashboard.live.comparison import COMPARED, Comparisons
from trainer_dashboard.live.job_page import JobPages
from trainer_dashboard.live.log_stream import SOURCES, LogSource, LogStreams
from trainer_dashboard.live.metric_feed import MetricFeeds
from trainer_dashboard.live.namespace_informers import NamespaceInformers
from trainer_dashboard.live.sweeps import Sweeps
from trainer_dashboard.past.past_trainings import PastTrainings
from trainer_dashboard.past.recording import Recording
from trainer_dashboard.requests.user_requests import NAME, Shown, UserRequests
from trainer_dashboard.serving.answers import data, failure, refusal, unauthorized
from trainer_dashboard.serving.bundle import Bundle

HOST = "127.0.0.1"
_NOT_FOUND = "there is nothing at this path"


class OtherCluster(NamedTuple):
    """A cluster that this dashboard does not show."""

    name: str
    """That of its context."""
    command: str
    """Opens its page."""


@dataclass(frozen=True, slots=True)
class DashboardOptions:
    """What is shown, and where."""

    namespace: str = ""
    """Only TrainJobs of this namespace. Default: of all, or of `home` where the user may not list all."""
    home: str = "default"
    """The namespace of the user's context."""
    cluster: str = ""
    """The address of the cluster."""
    name: str = ""
    """What its users call the cluster, such as a context. Default: its address."""
    port: int = 0
    """Default: a free one."""
    host: str = HOST
    """Address to listen on; "" is all of them. Default: loopback."""
    tls: ssl.SSLContext | None = None
    """For HTTPS. Default: none, plain HTTP, which is for loopback."""
    target: CommandOptions = NO_OPTIONS
    """Options of the commands that the page shows. Default: none."""
    others: Sequence[OtherCluster] = ()
    """The clusters that the page says how to open. Default: none."""


@dataclass(frozen=True, slots=True)
class _Views:
    """What is shown, once the namespaces are known."""

    namespace: str
    jobs: Informer
    board: Board
    pages: JobPages
    comparisons: Comparisons
    logs: LogStreams
    sweeps: Sweeps | None
    """None where the dashboard may not list them."""


@dataclass(frozen=True, slots=True)
class _Push:
    """A stream that its viewer may have."""

    stream: Callable[[Stream], Awaitable[web.StreamResponse]]
    logs: int = 0
    """Logs that it follows at most."""


class Dashboard:
    """Serves the page and its API while `run` does.

    Args:
        client: reads what several viewers are shown, each after a question whether they may see it; all else is asked
            with the client of the viewer. Its users see TrainJobs converted to v2alpha1.
        served: the version that the cluster serves.
        options: what is shown, and where.
        authenticator: who may ask.
        clock: for pauses and limits of time.
        bundle: the page; default: that of the package.
        past: answers from the history. Default: there is none, so that trainings that are gone are not shown.
        recording: records what is shown while the page is served. Default: nobody does so here.
        parties: what each party may take of the process. Default: as `trainer_dashboard.access.parties` has it.
    """

    def __init__(
        self,
        client: Client,
        served: Served,
        options: DashboardOptions,
        *,
        authenticator: Authenticator,
        clock: Clock | None = None,
        bundle: Bundle | None = None,
        past: PastTrainings | None = None,
        recording: Recording | None = None,
        parties: Parties | None = None,
    ) -> None:
        self._past = past
        self._recording = recording
        self._authenticator = authenticator
        self._clock = clock or SystemClock()
        self._served = served
        self._requests = UserRequests(served, self._clock, options.target)
        self._reader = client
        self._options = options
        self._bundle = bundle
        self._views: _Views | None = None
        self._parties = parties or Parties()
        limits = ConnectionLimits(max_connections=CONNECTIONS)
        where = HttpServerOptions(options.host, options.port, limits, options.tls)
        self._server = HttpServer("dashboard", self._answer, where, clock=self._clock, metrics=Metrics())

    @property
    def address(self) -> str:
        """Where it listens; known when it has started."""
        host, port = self._server.address
        return f"{'http' if self._options.tls is None else 'https'}://{host}:{port}/"

    async def check(self) -> None:
        """Ready check: raises a KubeError until it listens and knows the TrainJobs."""
        if self._views is None or not self._server.started.is_set():
            raise KubeError("the dashboard has not started yet")
        if self._views.jobs.problem is not None:
            raise KubeError(self._views.jobs.problem)

    async def run(self, *, started: Callable[[], Awaitable[None]]) -> None:
        """Serve until cancelled; `started` is called when it listens.

        Raises:
            ConfigurationError: the port is in use, or there is no page.
            KubeError: the API server does not say what the user may see.
        """
        self._bundle = self._bundle or await anyio.to_thread.run_sync(Bundle.read)
        cache = bounded_cache(self._reader, self._clock)
        async with anyio.create_task_group() as tasks:
            namespace = await self._namespace()
            jobs = cache.informer(TRAIN_JOBS, Selection(namespace or None))
            sweeps = await Sweeps.in_namespace(
                namespace, self._reader, self._served, cache=cache, jobs=jobs, clock=self._clock
            )
            namespaces = NamespaceInformers(cache)
            feeds = MetricFeeds(self._reader, self._clock, tasks)
            self._views = _Views(
                namespace,
                jobs,
                Board(jobs, JobRows(), self._clock),
                JobPages(jobs, namespaces, feeds, self._clock),
                Comparisons(jobs, namespaces, feeds, self._clock),
                LogStreams(namespaces, self._clock),
                sweeps,
            )
            tasks.start_soon(cache.run)
            tasks.start_soon(self._parties.run)
            if self._recording is not None:
                tasks.start_soon(self._recording.run, namespace)
            tasks.start_soon(partial(self._server.run, anyio.sleep_forever))
            await self._server.started.wait()
            await started()

    async def _namespace(self) -> str:
        """The one whose TrainJobs are shown; "" for all."""
        if self._options.namespace:
            return self._options.namespace
        may_list_all = await may(self._reader, "list", TRAIN_JOBS, ObjectKey("", ""))
        return "" if may_list_all else self._options.home

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        assert self._bundle is not None
        if (refused := self._authenticator.refusal_of_host(request, self._server.address[1])) is not None:
            return refused
        parts = request.path.removeprefix("/").split("/")
        if parts[0] != "api":
            if request.method not in {"GET", "HEAD"}:
                return refusal(HTTPStatus.METHOD_NOT_ALLOWED, "pages are only read", Allow="GET, HEAD")
            return self._bundle.answer(request) or refusal(HTTPStatus.NOT_FOUND, _NOT_FOUND)
        if parts[1:] == ["session"] and request.method == "POST":
            return self._authenticator.exchange_code(request)
        viewer = await self._authenticator.viewer(request)
        if isinstance(viewer, web.Response):
            return viewer
        party = self._parties.of(viewer.name)
        try:
            answer = await self._answer_api(request, parts[1:], viewer, party)
        except UnauthorizedError as error:
            return unauthorized(str(error), self._authenticator.login)
        except KubeError as error:
            return failure(error)
        if isinstance(answer, web.Response):
            return await party.send(request, answer, partial(self._server.drop, request))
        return answer

    async def _answer_api(
        self, request: web.BaseRequest, parts: list[str], viewer: Viewer, party: Party
    ) -> web.StreamResponse:
        with party.asking() as is_allowed:
            if not is_allowed:
                text = f"{REQUESTS_OF_ONE} of your requests are being answered: wait for their answers"
                return refusal(HTTPStatus.TOO_MANY_REQUESTS, text)
            answer = await self._answer_once(request, parts, viewer, party)
        if isinstance(answer, _Push):
            return await self._stream(request, party, answer)
        return answer if answer is not None else refusal(HTTPStatus.NOT_FOUND, _NOT_FOUND)

    async def _answer_once(
        self, request: web.BaseRequest, parts: list[str], viewer: Viewer, party: Party
    ) -> web.Response | _Push | None:
        """The answer to a request, or the stream that is to follow; None where there is nothing at its path."""
        views = self._views
        assert views is not None
        match request.method, parts:
            case "GET", ["trainjobs"]:
                return _Push(partial(views.board.stream, request, viewer))
            case "GET", ["metrics"]:
                return self._comparison(request, views.comparisons, viewer)
            case "GET", ["logs", namespace] if NAME.fullmatch(namespace):
                return await self._logs(request, namespace, views, viewer)
            case "GET", ["trainjobs", namespace, name] if NAME.fullmatch(namespace) and NAME.fullmatch(name):
                key = ObjectKey(namespace, name)
                if not await viewer.may("get", TRAIN_JOBS, key):
                    return refusal(HTTPStatus.FORBIDDEN, f"you may not get TrainJobs in the namespace {namespace}")
                return _Push(partial(views.pages.stream, request, key, viewer), logs=1)
            case "GET", ["sweeps"] if views.sweeps is not None:
                return _Push(partial(views.sweeps.board.stream, request, viewer))
            case "GET", ["sweeps", namespace, name] if NAME.fullmatch(namespace) and NAME.fullmatch(name):
                return await self._sweep(request, ObjectKey(namespace, name), views, viewer)
            case "GET", ["cluster"]:
                return data(
                    {
                        "cluster": self._options.cluster,
                        "name": self._options.name,
                        "namespace": views.namespace,
                        "user": viewer.name,
                        "login": self._authenticator.login,
                        "isWhole": await may_list(viewer, views.namespace),
                        "hasHistory": self._past is not None,
                        "hasSweeps": await self._has_sweeps(views, viewer),
                        "others": [each._asdict() for each in self._options.others],
                    }
                )
            case _, ["history", *rest] if self._past is not None:
                return await self._past.answer(request, rest, viewer, party, views.namespace)
            case _, ["past", "sweeps", *rest] if self._past is not None:
                return await self._past.sweeps.answer(request, rest, viewer, party, views.namespace)
        scope = NamespaceScope(views.namespace, partial(views.board.namespaces, viewer))
        shown = Shown(scope, views.jobs.lister, self._options.home)
        return await self._requests.answer(request, parts, viewer, party, shown)

    async def _has_sweeps(self, views: _Views, viewer: Viewer) -> bool:
        return views.sweeps is not None and await views.sweeps.are_shown_to(viewer, views.namespace)

    async def _sweep(
        self, request: web.BaseRequest, key: ObjectKey, views: _Views, viewer: Viewer
    ) -> web.Response | _Push | None:
        if views.sweeps is None:
            return None
        if not await viewer.may("get", OPTIMIZATION_JOBS, key):
            text = f"you may not get OptimizationJobs in the namespace {key.namespace}"
            return refusal(HTTPStatus.FORBIDDEN, text)
        return _Push(partial(views.sweeps.pages.stream, request, key, viewer))

    def _comparison(self, request: web.BaseRequest, comparisons: Comparisons, viewer: Viewer) -> web.Response | _Push:
        keys = [_key(text) for text in request.query.getall("job", [])]
        known = tuple(key for key in keys if key is not None)
        if not 0 < len(keys) <= COMPARED or len(set(known)) < len(keys):
            message = f"job must be NAMESPACE/NAME, 1 to {COMPARED} times, each another"
            return refusal(HTTPStatus.BAD_REQUEST, message)
        return _Push(partial(comparisons.stream, request, known, viewer), logs=len(known))

    async def _logs(
        self, request: web.BaseRequest, namespace: str, views: _Views, viewer: Viewer
    ) -> web.Response | _Push:
        asked = request.query.getall("source", [])
        parts = [tuple(source.split("/")) for source in asked]
        is_valid = 0 < len(parts) <= SOURCES and len(set(parts)) == len(parts) and all(map(_is_source, parts))
        if not is_valid:
            return refusal(HTTPStatus.BAD_REQUEST, f"source must be POD/CONTAINER, 1 to {SOURCES} times, each another")
        if views.namespace not in {"", namespace}:
            text = f"only the namespace {views.namespace} is shown here"
            return refusal(HTTPStatus.NOT_FOUND, text)
        sources = tuple(LogSource(*source) for source in parts)
        for pod in {source.pod for source in sources}:
            if not await viewer.may("get", PODS, ObjectKey(namespace, pod), subresource="log"):
                return refusal(HTTPStatus.FORBIDDEN, f"you may not get pods/log in the namespace {namespace}")
        return _Push(partial(views.logs.stream, request, namespace, sources, viewer), logs=len(sources))

    async def _stream(self, request: web.BaseRequest, party: Party, push: _Push) -> web.StreamResponse:
        """Answer a request with a stream, where its party may have another one."""
        with party.streaming(partial(self._server.drop, request), logs=push.logs) as stream:
            if stream is None:
                text = f"close pages: there are too many open streams; you may have {STREAMS_OF_ONE}"
                return refusal(HTTPStatus.TOO_MANY_REQUESTS, text)
            self._server.unlimit(request)
            return await push.stream(stream)


def _key(text: str) -> ObjectKey | None:
    namespace, _, name = text.partition("/")
    return ObjectKey(namespace, name) if NAME.fullmatch(namespace) and NAME.fullmatch(name) else None


def _is_source(parts: tuple[Any, ...]) -> bool:
    return len(parts) == len(LogSource._fields) and all(NAME.fullmatch(part) for part in parts)
