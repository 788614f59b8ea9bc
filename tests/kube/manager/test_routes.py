"""Routes of a manager's HTTP server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from http import HTTPStatus

import aiohttp
import pytest
from structlog.testing import capture_logs

from tests.kube.conftest import Background
from trainer.kube.manager.manager import Manager
from trainer.kube.manager.metrics_server import MetricsServer, MetricsServerOptions
from trainer.kube.manager.routes import HttpRequest, HttpResponse, Routes
from trainer_kube_testing import FakeClient, ManualClock


async def echo(request: HttpRequest) -> HttpResponse:
    """Says what it was asked."""
    query = {name: list(values) for name, values in request.query.items()}
    return HttpResponse.text(f"{dict(request.parameters)} {query}")


def routes_of(*paths: str) -> Routes:
    """Routes whose answers tell by which path they were found."""
    routes = Routes(reserved=("metrics", "healthz"))

    def add(path: str) -> None:
        async def handler(request: HttpRequest) -> HttpResponse:
            return HttpResponse.text(f"{path} {dict(request.parameters)}")

        routes.add(path, handler)

    for path in paths:
        add(path)
    return routes


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param("/jobs", "/jobs {}", id="literal"),
        pytest.param("/", None, id="root"),
        pytest.param("/jobs/", None, id="empty-part"),
        pytest.param("/jobs/a", "/jobs/{name} {'name': 'a'}", id="placeholder"),
        pytest.param("/jobs/all", "/jobs/all {}", id="literal-before-placeholder"),
        pytest.param("/jobs/a/b", "/jobs/{namespace}/{name} {'namespace': 'a', 'name': 'b'}", id="two-placeholders"),
        pytest.param("/jobs/all/b", "/jobs/all/{name} {'name': 'b'}", id="earlier-literal"),
        pytest.param("/jobs//b", None, id="empty-placeholder"),
        pytest.param("/jobs/a%2Fb", "/jobs/{name} {'name': 'a/b'}", id="encoded-slash"),
        pytest.param("/jobs/%C3%A4", "/jobs/{name} {'name': 'ä'}", id="encoded"),
        pytest.param("/j%6Fbs", "/jobs {}", id="encoded-literal"),
        pytest.param("/jobs/{name}", "/jobs/{name} {'name': '{name}'}", id="braces"),
        pytest.param("/others", None, id="nothing"),
        pytest.param("/jobs/a/b/c", None, id="too-long"),
    ],
)
async def test_paths(path: str, text: str | None) -> None:
    """A path finds the route that says most about it, or nothing."""
    routes = routes_of("/jobs/{namespace}/{name}", "/jobs/{name}", "/jobs/all", "/jobs/all/{name}", "/jobs")
    response = await routes.answer(path, {})
    if text is None:
        assert response == HttpResponse.text("there is nothing at this path", HTTPStatus.NOT_FOUND)
    else:
        assert response.body.decode() == f"{text}\n"


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        pytest.param("", "must begin with a /", id="empty"),
        pytest.param("jobs", "must begin with a /", id="no-slash"),
        pytest.param("/", "has the part ''", id="root"),
        pytest.param("/jobs/", "has the part ''", id="slash-at-the-end"),
        pytest.param("/a b", "has the part 'a b'", id="blank"),
        pytest.param("/a/{b", "has the part '{b'", id="half-a-placeholder"),
        pytest.param("/a/x{b}", "has the part 'x{b}'", id="part-of-a-part"),
        pytest.param("/a/{}", "has the part '{}'", id="no-name"),
        pytest.param("/{a}/{a}", "two placeholders of the same name", id="same-name"),
        pytest.param("/metrics", "part of /metrics, which the manager serves itself", id="reserved"),
        pytest.param("/healthz/mine", "part of /healthz, which the manager serves itself", id="below-reserved"),
        pytest.param("/jobs", "is taken by '/jobs'", id="taken"),
        pytest.param("/jobs/{other}", "is taken by '/jobs/{name}'", id="taken-under-another-name"),
    ],
)
def test_unusable_paths(path: str, problem: str) -> None:
    """What could not be found, or is somebody else's, is refused with the reason."""
    with pytest.raises(ValueError, match="the path ") as caught:
        routes_of("/jobs", "/jobs/{name}").add(path, echo)
    assert problem in str(caught.value)


async def test_handler_that_fails() -> None:
    """The answer has no details; they are logged once."""

    async def fail(_: HttpRequest) -> HttpResponse:
        raise OSError("the database is away")

    routes = Routes()
    routes.add("/jobs/{name}", fail)
    with capture_logs() as logs:
        response = await routes.answer("/jobs/a", {})
    assert response.status == 500
    assert b"database" not in response.body
    assert [(entry["event"], entry["path"], entry["exc_info"]) for entry in logs] == [
        ("could not answer request", "/jobs/{name}", True)
    ]


@pytest.fixture
async def session(background: Background) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of a manager that serves something, once its server listens."""
    clock = ManualClock()
    manager = Manager(FakeClient(clock=clock), clock=clock)
    options = MetricsServerOptions("127.0.0.1", 0, secure=False, authorize=False)
    server = MetricsServer(manager, options)
    manager.serve("/jobs/{namespace}/{name}", echo)
    manager.serve("/broken", broken)
    background(manager.run())
    await server.wait_for_start()
    manager.serve("/late", echo)
    host, port = server.address
    async with aiohttp.ClientSession(f"http://{host}:{port}") as session:
        yield session


async def broken(_: HttpRequest) -> HttpResponse:
    raise ValueError("odd")


@pytest.mark.parametrize(
    ("method", "path", "status", "text"),
    [
        pytest.param("GET", "/jobs/a/b", 200, "{'namespace': 'a', 'name': 'b'} {}\n", id="parameters"),
        pytest.param("GET", "/jobs/a/b?x=1&y=&x=2", 200, "'x': ['1', '2'], 'y': ['']}\n", id="query"),
        pytest.param("GET", "/late", 200, "{} {}\n", id="added-while-it-runs"),
        pytest.param("HEAD", "/late", 200, "", id="head"),
        pytest.param("POST", "/late", 405, "", id="other-method"),
        pytest.param("GET", "/broken", 500, "the log of the manager says why\n", id="failing"),
        pytest.param("GET", "/metrics", 200, "process_open_fds", id="metrics"),
    ],
)
async def test_manager_serves(session: aiohttp.ClientSession, method: str, path: str, status: int, text: str) -> None:
    """Routes are served beside metrics, whichever came first, and a failing one is in nobody's way."""
    async with session.request(method, path) as response:
        assert response.status == status
        assert text in await response.text()
        if path != "/metrics":
            assert response.headers["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize("path", ["/metrics", "/healthz/mine", "/readyz"])
def test_manager_keeps_its_own_paths(path: str) -> None:
    """Probes and Prometheus always find what they look for."""
    manager = Manager(FakeClient(clock=ManualClock()))
    with pytest.raises(ValueError, match="which the manager serves itself"):
        manager.serve(path, echo)
