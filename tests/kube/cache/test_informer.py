"""Informer: local copy and handlers."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import anyio.lowlevel
import pytest
from structlog.testing import capture_logs

from tests.kube.conftest import Background
from tests.kube.objects import pod
from trainer.kube import pager
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.informer import Informer
from trainer.kube.cache.registration import Registration
from trainer.kube.cache.transform import Transform
from trainer.kube.errors import ForbiddenError, InvalidError, KubeError, NotFoundError, TransportError
from trainer.kube.objects import Object, ObjectKey, name_of, uid_of
from trainer.kube.resource import PODS
from trainer.kube.selection import Selection
from trainer_kube_testing import FakeClient, ManualClock, settle, statuses


class RecordingHandler:
    """Writes down its calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def on_add(self, obj: CachedObject, *, initial: bool) -> None:
        self.calls.append(f"{'initial ' if initial else ''}add {obj.key.name}")

    def on_update(self, old: CachedObject, new: CachedObject) -> None:
        self.calls.append(f"update {new.key.name} {old.labels} {new.labels}" if old is not new else f"resync {new.key}")

    def on_delete(self, obj: CachedObject, *, stale: bool) -> None:
        self.calls.append(f"{'stale ' if stale else ''}delete {obj.key.name}")

    def take(self) -> list[str]:
        calls, self.calls = self.calls, []
        return calls


class FailingHandler(RecordingHandler):
    """Raises on every add."""

    def on_add(self, obj: CachedObject, *, initial: bool) -> None:
        super().on_add(obj, initial=initial)
        raise RuntimeError("broken handler")


@pytest.fixture
def client(clock: ManualClock) -> FakeClient:
    return FakeClient(pod("a", labels={"app": "x"}), pod("b"), pod("c", "other"), clock=clock)


@pytest.fixture
def handler() -> RecordingHandler:
    return RecordingHandler()


@pytest.fixture
async def informer(
    client: FakeClient, clock: ManualClock, handler: RecordingHandler, background: Background
) -> Informer:
    """A running informer that has synced."""
    informer = Informer(client, PODS, clock=clock)
    informer.add_handler(handler)
    assert not informer.has_synced
    background(informer.run())
    await informer.wait_for_sync()
    return informer


async def test_changes_are_delivered(informer: Informer, handler: RecordingHandler, client: FakeClient) -> None:
    """Adds, updates and deletes reach the handler after the store."""
    handler.take()
    await client.create(PODS, pod("d"))
    await client.patch(PODS, "a", {"metadata": {"labels": {"app": "y"}}}, "ns")
    await client.delete(PODS, "b", "ns")
    await settle()
    assert handler.take() == ["add d", "update a {'app': 'x'} {'app': 'y'}", "delete b"]
    assert sorted(name_of(obj) for obj in informer.lister.list()) == ["a", "c", "d"]


async def test_gap_in_the_watch_is_made_good(
    informer: Informer, handler: RecordingHandler, client: FakeClient, clock: ManualClock
) -> None:
    """A relist yields the deletes, adds and updates that were missed, and nothing for what is as it was."""
    handler.take()
    client.faults.drop_watches(TransportError("connection lost"))
    await client.delete(PODS, "b", "ns")
    await client.create(PODS, pod("d"))
    await client.patch(PODS, "a", {"metadata": {"labels": {"app": "y"}}}, "ns")
    client.compact()
    await clock.advance(60)
    assert sorted(handler.take()) == ["add d", "stale delete b", "update a {'app': 'x'} {'app': 'y'}"]


async def test_recreated_object_is_a_delete_and_an_add(
    informer: Informer, handler: RecordingHandler, client: FakeClient, clock: ManualClock
) -> None:
    """Another object under a known name is not taken for an update."""
    handler.take()
    client.faults.drop_watches(TransportError("connection lost"))
    await client.delete(PODS, "b", "ns")
    await client.create(PODS, pod("b"))
    client.compact()
    await clock.advance(60)
    assert handler.take() == ["stale delete b", "add b"]


@pytest.mark.parametrize("is_replaced", [pytest.param(False, id="gone"), pytest.param(True, id="another-of-its-name")])
@pytest.mark.parametrize("is_late", [pytest.param(False, id="answer-first"), pytest.param(True, id="list-first")])
async def test_own_write_that_ends_while_no_watch_is_open(
    informer: Informer,
    handler: RecordingHandler,
    client: FakeClient,
    clock: ManualClock,
    *,
    is_late: bool,
    is_replaced: bool,
) -> None:
    """Who has created an object, and reads it back, learns that it is gone although no watch has ever shown it."""
    handler.take()
    client.faults.drop_watches(TransportError("connection lost"))
    answer = await client.create(PODS, pod("d"))
    if not is_late:
        informer.wrote(answer)
    await client.delete(PODS, "d", "ns")
    if is_replaced:
        await client.create(PODS, pod("d"))
    client.compact()
    await clock.advance(60)
    if is_late:
        informer.wrote(answer)
    # To tell of its end after the other has come would sound as if that had ended.
    own = [] if is_late and is_replaced else ["add d", "stale delete d"]
    assert handler.take() == [*own, *(["add d"] if is_replaced else [])]
    shown = informer.lister.get(ObjectKey("ns", "d"))
    assert (shown is not None and uid_of(shown) != uid_of(answer)) is is_replaced


async def test_late_handler_is_reported_what_is_known(
    informer: Informer, handler: RecordingHandler, client: FakeClient
) -> None:
    """A handler added after the sync gets all objects as initial adds, then changes; others notice nothing."""
    handler.take()
    late = RecordingHandler()
    registration = informer.add_handler(late)
    assert not registration.has_synced
    await registration.wait_for_sync()
    client.add(pod("d"))
    await settle()
    assert sorted(late.calls[:3]) == ["initial add a", "initial add b", "initial add c"]
    assert late.calls[3:] == ["add d"]
    assert handler.take() == ["add d"]


async def test_changes_while_a_late_handler_is_reported_come_after(informer: Informer) -> None:
    """A late handler never sees a change before the add of its object."""

    class Changing(RecordingHandler):
        def on_add(self, obj: CachedObject, *, initial: bool) -> None:
            super().on_add(obj, initial=initial)
            if obj.key.name == "a":
                informer.remove(CachedObject.of(pod("c", "other", resourceVersion="9")))

    late = Changing()
    await informer.add_handler(late).wait_for_sync()
    assert late.calls == ["initial add a", "initial add b", "initial add c", "delete c"]


async def test_handler_added_while_the_first_list_is_reported_misses_nothing(
    client: FakeClient, clock: ManualClock, background: Background
) -> None:
    """It gets all objects, also those that others got before it was added."""
    informer = Informer(client, PODS, clock=clock)
    late = RecordingHandler()

    class Adding(RecordingHandler):
        def on_add(self, obj: CachedObject, *, initial: bool) -> None:
            super().on_add(obj, initial=initial)
            if obj.key.name == "b":
                registrations.append(informer.add_handler(late))

    registrations = [informer.add_handler(Adding())]
    background(informer.run())
    await informer.wait_for_sync()
    await registrations[1].wait_for_sync()
    assert sorted(late.calls) == ["initial add a", "initial add b", "initial add c"]


@pytest.fixture
def sliced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tasks run between any two objects."""
    monkeypatch.setattr(pager, "SLICE", -1.0)


@pytest.mark.usefixtures("sliced")
async def test_handler_that_comes_while_a_later_list_is_reported(informer: Informer) -> None:
    """It gets what is on the list once, and nothing that the list shows to be gone."""
    late = RecordingHandler()

    class Adding(RecordingHandler):
        def on_delete(self, obj: CachedObject, *, stale: bool) -> None:
            if not registrations:
                registrations.append(informer.add_handler(late))

    registrations: list[Registration] = []
    await informer.add_handler(Adding()).wait_for_sync()
    await informer.replace([CachedObject.of(pod(f"p{number}", resourceVersion="9")) for number in range(20)], "9")
    await registrations[0].wait_for_sync()
    assert late.calls == [f"initial add p{number}" for number in range(20)]


@pytest.mark.usefixtures("sliced")
async def test_resync_leaves_out_what_is_deleted_meanwhile(informer: Informer, clock: ManualClock) -> None:
    """No update comes after the deletion of an object."""

    class Deleting(RecordingHandler):
        def on_update(self, old: CachedObject, new: CachedObject) -> None:
            super().on_update(old, new)
            informer.remove(CachedObject.of(pod("c", "other", resourceVersion="9")))

    handler = Deleting()
    await informer.add_handler(handler).wait_for_sync()
    handler.take()
    await clock.advance(11 * 3600)
    assert handler.calls[:3] == ["resync ns/a", "delete c", "resync ns/b"]
    assert "resync other/c" not in handler.calls


@pytest.mark.usefixtures("sliced")
async def test_replacement_gives_way_to_other_tasks(informer: Informer) -> None:
    """Neither storing a long list nor telling of it holds up the event loop, and readers see all or nothing of it."""
    sizes: list[int] = []

    async def look() -> None:
        while True:
            sizes.append(len(informer.lister.keys()))
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(look)
        await informer.replace([CachedObject.of(pod(f"p{number}", resourceVersion="9")) for number in range(50)], "9")
        tasks.cancel_scope.cancel()
    assert set(sizes) == {3, 50}
    assert sizes.count(3) >= 50
    assert sizes.count(50) >= 50


async def test_handler_may_leave_while_it_is_reported_what_is_known(informer: Informer) -> None:
    """It does not get the rest."""

    class Leaving(RecordingHandler):
        def on_add(self, obj: CachedObject, *, initial: bool) -> None:
            super().on_add(obj, initial=initial)
            informer.remove_handler(registration)

    leaving = Leaving()
    registration = informer.add_handler(leaving)
    await settle()
    assert leaving.calls == ["initial add a"]


async def test_handler_removed_by_another_is_not_reported_of_the_same_change(
    informer: Informer, client: FakeClient
) -> None:
    """Once `remove_handler` has returned, the handler is never called."""
    leaving = RecordingHandler()

    class Removing(RecordingHandler):
        def on_add(self, obj: CachedObject, *, initial: bool) -> None:
            if not initial:
                informer.remove_handler(registration)

    informer.add_handler(Removing())
    registration = informer.add_handler(leaving)
    await registration.wait_for_sync()
    leaving.take()
    client.add(pod("d"))
    await settle()
    assert leaving.take() == []


async def test_resync_tells_of_every_object_again(
    informer: Informer, handler: RecordingHandler, client: FakeClient, clock: ManualClock
) -> None:
    """About every ten hours handlers see each object as an update to itself, without a request."""
    handler.take()
    before = len(client.requests)
    await clock.advance(11 * 3600)
    assert sorted(handler.take())[:3] == ["resync ns/a", "resync ns/b", "resync other/c"]
    assert {request.verb for request in client.requests[before:]} <= {"watch"}


async def test_repeated_and_overtaken_states_are_ignored(informer: Informer, handler: RecordingHandler) -> None:
    """A watch that is opened anew at an earlier version may repeat itself; the copy never goes back."""
    handler.take()
    informer.put(CachedObject.of(pod("a", resourceVersion="9")))
    informer.put(CachedObject.of(pod("a", resourceVersion="9")))
    informer.put(CachedObject.of(pod("a", resourceVersion="8", labels={"old": "state"})))
    informer.remove(CachedObject.of(pod("a", resourceVersion="7")))
    assert len(handler.take()) == 2
    informer.put(CachedObject.of(pod("b", resourceVersion="9")))
    informer.remove(CachedObject.of(pod("b", resourceVersion="9")))
    assert handler.take()[-1] == "delete b"
    cached = informer.lister.peek(ObjectKey("ns", "a"))
    assert cached is not None
    assert cached.resource_version == "9"


async def test_transform_sees_objects_before_they_are_stored(
    client: FakeClient, clock: ManualClock, background: Background
) -> None:
    """What a transform drops is in no list, no watch event and no answer to a write of ours."""

    def drop_labels(obj: Object) -> Object:
        obj["metadata"].pop("labels", None)
        return obj

    informer = Informer(client, PODS, clock=clock, transform=Transform(drop_labels))
    background(informer.run())
    await informer.wait_for_sync()
    client.add(pod("watched", labels={"x": "y"}))
    await settle()
    informer.wrote(pod("written", labels={"x": "y"}, resourceVersion="99", uid="u"))
    assert len(informer.lister.list()) == 5
    assert not any("labels" in obj["metadata"] for obj in informer.lister.list())


async def test_transform_of_large_objects(client: FakeClient, clock: ManualClock, background: Background) -> None:
    """A transform with a size limit changes only the objects above it."""
    transform = Transform(lambda obj: obj | {"spec": {}}, larger_than=2000)
    informer = Informer(client, PODS, clock=clock, transform=transform)
    background(informer.run())
    await informer.wait_for_sync()
    for name, size in (("small", 1000), ("large", 3000)):
        client.add(pod(name) | {"spec": {"hostname": "x" * size}})
    await settle()
    specs = {name: informer.lister.get(ObjectKey("ns", name)) for name in ("small", "large")}
    assert {name: bool((obj or {}).get("spec")) for name, obj in specs.items()} == {"small": True, "large": False}


def _fail(_: Object) -> Object:
    raise KeyError("spec")


def _rename(obj: Object) -> Object:
    return obj | {"metadata": obj["metadata"] | {"name": "renamed"}}


@pytest.mark.parametrize(
    ("transform", "reason"),
    [
        pytest.param(_fail, "the transform of ns/odd failed: KeyError('spec')", id="raises"),
        pytest.param(_rename, "the transform of ns/odd must keep its namespace, name, uid and", id="renames"),
    ],
)
async def test_failing_transform_harms_one_object(
    client: FakeClient,
    clock: ManualClock,
    background: Background,
    transform: Callable[[Object], Object],
    reason: str,
) -> None:
    """Event and own write of that object are skipped with a warning, all others go on."""
    informer = Informer(
        client, PODS, clock=clock, transform=Transform(lambda obj: transform(obj) if name_of(obj) == "odd" else obj)
    )
    background(informer.run())
    await informer.wait_for_sync()
    with capture_logs() as logs:
        client.add(pod("odd"))
        client.add(pod("d"))
        await settle()
        informer.wrote(pod("odd", resourceVersion="99"))
    assert {name_of(obj) for obj in informer.lister.list()} == {"a", "b", "c", "d"}
    assert [entry["event"] for entry in logs] == ["skipped watch event", "cannot show own write"]
    assert all(entry["reason"].startswith(reason) for entry in logs)


async def test_metadata_only_copy(client: FakeClient, clock: ManualClock, background: Background) -> None:
    """Only metadata is asked for and kept, under the kind of the resource; the same of our own writes."""
    client.add(pod("d") | {"spec": {"nodeName": "n"}})
    informer = Informer(client, PODS, Selection(metadata_only=True), clock=clock)
    background(informer.run())
    await informer.wait_for_sync()
    obj = informer.lister.get(ObjectKey("ns", "d"))
    assert obj is not None
    assert set(obj) == {"apiVersion", "kind", "metadata"}
    assert (obj["apiVersion"], obj["kind"]) == ("v1", "Pod")
    informer.wrote(pod("e", resourceVersion="99", uid="u") | {"spec": {"nodeName": "n"}})
    written = informer.lister.get(ObjectKey("ns", "e"))
    assert written is not None
    assert "spec" not in written


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        pytest.param(
            NotFoundError(404, "the server could not find the requested resource"),
            "pods is not served by the API server: install the Pod CRD",
            id="not-served",
        ),
        pytest.param(
            ForbiddenError(403, "pods is forbidden: User cannot list"),
            "pods: pods is forbidden: User cannot list: grant list and watch on pods in a Role or ClusterRole",
            id="forbidden",
        ),
    ],
)
async def test_problem_says_why_there_is_no_copy(
    client: FakeClient, clock: ManualClock, background: Background, error: KubeError, problem: str
) -> None:
    """Until the first list has come, and while the server is silent, the informer says what is wrong; then it heals."""
    client.faults.fail(error)
    informer = Informer(client, PODS, clock=clock)
    background(informer.run())
    await settle()
    assert informer.problem == problem
    await clock.advance(2)
    assert informer.problem is None


async def test_dead_server_is_a_problem_after_a_while(
    informer: Informer, client: FakeClient, clock: ManualClock
) -> None:
    """A copy stays usable through a short outage and is reported as out of date after a longer one."""
    client.faults.drop_watches(TransportError("connection lost"))
    for _ in range(40):
        client.faults.fail(TransportError("connection refused"))
    await clock.advance(60)
    assert informer.problem is None
    await clock.advance(200)
    assert informer.problem == "pods could not be listed or watched: connection refused"


class Server:
    """The server of an informer of an optional kind, and what the informer tells of it."""

    def __init__(self, clock: ManualClock, handler: RecordingHandler, background: Background) -> None:
        self.clock = clock
        self.handler = handler
        self.client = FakeClient(clock=clock)
        self.client.withdraw(PODS)
        self.informer = Informer(self.client, PODS, clock=clock, optional=True)
        self.informer.add_index("app", lambda obj: [obj.labels.get("app", "")])
        self.informer.add_handler(handler)
        self.informer.add_listener(self._tell)
        self.reported: list[bool] = []
        background(self.informer.run())

    async def install(self) -> None:
        self.client.serve(PODS)
        self.client.add(pod("a", labels={"app": "x"}))
        await self.clock.advance(40)

    async def uninstall(self) -> None:
        self.client.withdraw(PODS)
        await self.clock.advance(40)

    def _tell(self) -> None:
        self.reported.append(self.informer.is_served)


@pytest.fixture
async def server(clock: ManualClock, handler: RecordingHandler, background: Background) -> Server:
    return Server(clock, handler, background)


async def test_optional_kind_that_is_installed_and_removed_and_installed(
    server: Server, handler: RecordingHandler, clock: ManualClock
) -> None:
    """Handlers, listeners and readers learn of each turn, and nobody has to start anything anew."""
    informer = server.informer
    await informer.wait_for_sync()
    for _ in range(2):
        await server.install()
        assert handler.take() == ["initial add a"]
        assert (informer.is_served, informer.problem) == (True, None)
        assert informer.lister.keys_by_index("app", "x") == {ObjectKey("ns", "a")}
        server.client.add(pod("b"))
        await settle()
        assert handler.take() == ["add b"]
        await server.uninstall()
        assert sorted(handler.take()) == ["delete a", "delete b"]
        assert (informer.is_served, informer.problem) == (False, None)
        assert informer.lister.keys_by_index("app", "x") == set()
    assert server.reported == [True, False, True, False]


async def test_objects_that_vanish_with_their_kind(server: Server, handler: RecordingHandler) -> None:
    """What no watch event has reported is a stale delete, and what this process wrote itself is gone as well."""
    informer = server.informer
    await server.install()
    handler.take()
    server.client.faults.hold_watches(PODS)
    informer.wrote(pod("mine", uid="u", resourceVersion="99"))
    assert len(informer.lister.list()) == 2
    await server.uninstall()
    assert handler.take() == ["stale delete a"]
    assert informer.lister.list() == []


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        pytest.param(ForbiddenError(403, "no"), "pods: no: grant list and watch on pods in a Role", id="forbidden"),
        pytest.param(statuses.unavailable(), "pods could not be listed or watched: the server is", id="unavailable"),
    ],
)
async def test_unreadable_optional_kind_is_a_problem(
    server: Server, clock: ManualClock, error: KubeError, problem: str
) -> None:
    """The server may serve it by now: what was known a while ago cannot be relied on any more."""
    await server.informer.wait_for_sync()
    fault = server.client.faults.fail(error, times=None)
    await clock.advance(300)
    assert (server.informer.problem or "").startswith(problem)
    fault.end()
    await clock.advance(100)
    assert server.informer.problem is None


async def test_kind_that_is_required_after_all(server: Server, clock: ManualClock) -> None:
    """From then on its absence is a problem."""
    await server.informer.wait_for_sync()
    server.informer.require()
    await clock.advance(300)
    assert server.informer.problem == "pods is not served by the API server: install the Pod CRD"


async def test_failing_handler_harms_nobody(informer: Informer, handler: RecordingHandler, client: FakeClient) -> None:
    """An exception in one handler is logged; others and later changes are delivered."""
    failing = FailingHandler()
    with capture_logs() as logs:
        await informer.add_handler(failing).wait_for_sync()
        handler.take()
        await client.create(PODS, pod("d"))
        await client.delete(PODS, "d", "ns")
        await settle()
    assert handler.take() == ["add d", "delete d"]
    assert failing.calls[-2:] == ["add d", "delete d"]
    assert {entry["event"] for entry in logs} == {"handler failed"}
    assert (logs[0]["handler"], logs[0]["resource"]) == ("FailingHandler", "pods")
    assert logs[-1]["object"] == "ns/d"


async def test_index_is_added_before_the_start(informer: Informer) -> None:
    """A late index is refused: others may already rely on what exists."""
    with pytest.raises(RuntimeError, match="index 'node' must be added before the informer of pods starts"):
        informer.add_index("node", lambda _: [])


async def test_informer_runs_once(informer: Informer) -> None:
    """A second run would write to the same store."""
    with pytest.raises(RuntimeError, match="started before"):
        await informer.run()


@pytest.mark.parametrize("streams", [True, False])
async def test_namespaces_have_a_limit(
    client: FakeClient, clock: ManualClock, background: Background, *, streams: bool
) -> None:
    """Objects on top are not kept, be they listed or new, and others of the namespace change and go as ever."""
    if not streams:
        client.faults.fail(InvalidError(422, "sendInitialEvents is forbidden"), verb="watch", resource=PODS)
    informer = Informer(client, PODS, clock=clock, namespace_limit=2)
    for name in "de":
        client.add(pod(name))
    background(informer.run())
    await informer.wait_for_sync()
    assert sorted(map(name_of, informer.lister.list())) == ["a", "b", "c"]

    client.add(pod("f"))
    client.add(pod("a", labels={"app": "y"}))
    await settle()
    assert sorted(map(name_of, informer.lister.list("ns"))) == ["a", "b"]
    changed = informer.lister.peek(ObjectKey("ns", "a"))
    assert changed is not None
    assert changed.labels == {"app": "y"}

    await client.delete(PODS, "f", "ns")
    await client.delete(PODS, "a", "ns")
    client.add(pod("g"))
    await settle()
    assert sorted(map(name_of, informer.lister.list())) == ["b", "c", "g"]
