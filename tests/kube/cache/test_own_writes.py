"""Read your own writes: what readers of a cache see between a write and the watch event that shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.kube.objects import owned_by, pod
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.informer import Informer
from trainer.kube.cache.own_writes import EXPIRY
from trainer.kube.cache.store import CONTROLLER_UID
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import PODS
from trainer.kube.selection import Selection
from trainer_kube_testing import FakeClient, ManualClock

KEY = ObjectKey("ns", "a")


def state(version: int, *, uid: str = "u", value: str = "", **metadata: Any) -> Object:
    """The pod ns/a at some resource version."""
    return pod("a", uid=uid, resourceVersion=str(version), **metadata) | {"value": value}


def cached(version: int, **fields: Any) -> CachedObject:
    return CachedObject.of(state(version, **fields))


@pytest.fixture
def informer(clock: ManualClock) -> Informer:
    """An informer that is fed by hand in place of a reflector."""
    return Informer(FakeClient(), PODS, Selection(label_selector="hidden!=true"), clock=clock)


def shown(informer: Informer) -> str | None:
    """The value that a reader sees; all ways of reading agree."""
    obj = informer.lister.get(KEY)
    listed = informer.lister.list("ns")
    assert listed == ([] if obj is None else [obj])
    assert informer.lister.list() == listed
    assert informer.lister.list("other") == []
    assert informer.lister.keys() == {KEY for _ in listed}
    return None if obj is None else obj["value"]


DELETED: dict[str, Any] = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
WAITING: dict[str, Any] = DELETED | {"finalizers": ["example.com/wait"]}


@pytest.mark.parametrize(
    ("happens", "expected"),
    [
        pytest.param([("wrote", state(5, value="w"))], "w", id="created"),
        pytest.param([("put", 3), ("wrote", state(5, value="w"))], "w", id="changed"),
        pytest.param([("put", 3), ("wrote", state(5, value="w")), ("put", 4)], "w", id="watch-is-behind"),
        pytest.param([("put", 3), ("wrote", state(5, value="w")), ("put", 5)], "5", id="watch-shows-it"),
        pytest.param([("put", 3), ("wrote", state(5, value="w")), ("put", 6)], "6", id="watch-shows-newer"),
        pytest.param([("put", 6), ("wrote", state(5, value="w"))], "6", id="answer-comes-late"),
        pytest.param([("wrote", state(5, value="w")), ("wrote", state(7, value="v"))], "v", id="two-writes"),
        pytest.param([("wrote", state(7, value="v")), ("wrote", state(5, value="w"))], "v", id="answers-cross"),
        pytest.param([("wrote", state(5, value="w")), ("remove", 6)], None, id="deleted-by-others"),
        pytest.param([("put", 5), ("remove", 6), ("wrote", state(5, value="w"))], None, id="late-and-deleted"),
        pytest.param([("wrote", state(5, value="w")), ("bookmark", 4)], "w", id="bookmark-before"),
        pytest.param([("wrote", state(5, value="w")), ("bookmark", 5)], None, id="created-and-deleted-unseen"),
        pytest.param([("wrote", state(5, value="w")), ("list", 4)], "w", id="list-before"),
        pytest.param([("wrote", state(5, value="w")), ("list", 9)], None, id="list-after"),
        pytest.param([("put", 3), ("deleted", None)], None, id="gone-at-once"),
        pytest.param([("put", 3), ("deleted", None), ("put", 4)], None, id="gone-and-watch-behind"),
        pytest.param([("put", 3), ("deleted", None), ("remove", 6)], None, id="gone-and-shown"),
        pytest.param([("put", 3), ("deleted", None), ("wrote", state(8, uid="v", value="w"))], "w", id="made-anew"),
        pytest.param([("put", 3), ("deleted", state(5, value="d", **WAITING))], "d", id="waits-for-finalizers"),
        pytest.param([("put", 3), ("deleted", state(5, value="d", **WAITING)), ("put", 4)], "d", id="and-behind"),
        pytest.param([("put", 3), ("deleted", state(5, value="d"))], None, id="answered-with-the-last-state"),
        pytest.param(
            [("put", 3), ("deleted", state(5, value="d", deletionGracePeriodSeconds=30, **DELETED))],
            "d",
            id="waits-for-its-grace-period",
        ),
        pytest.param(
            [("put", 3), ("deleted", state(5, deletionGracePeriodSeconds=0, **DELETED))], None, id="waits-for-nothing"
        ),
        pytest.param(
            [("put", 3), ("deleted", state(5, **WAITING)), ("wrote", state(6, **DELETED))],
            None,
            id="last-finalizer-goes",
        ),
        pytest.param(
            [("put-other", 9), ("wrote", state(6, **DELETED))],
            "9",
            id="last-finalizer-goes-and-the-name-is-taken-again",
        ),
        pytest.param([("deleted", None)], None, id="deleted-what-is-not-known"),
        pytest.param([("put", 3), ("deleted", None), ("list", 9)], None, id="deleted-and-listed"),
        pytest.param([("put", 3), ("deleted", None), ("remove", 4), ("put-other", 6)], "6", id="made-anew-by-others"),
        pytest.param(
            [("put-other", 6), ("deleted", None)], "6", id="answer-to-a-deletion-comes-after-the-name-is-taken-again"
        ),
        pytest.param(
            [("wrote", state(6, uid="other", value="w")), ("deleted", state(5, **WAITING))],
            "w",
            id="and-so-does-one-with-the-object",
        ),
        pytest.param(
            [("put", 6), ("deleted", state(5, value="d", **WAITING))],
            "6",
            id="watch-has-shown-the-deletion-and-more",
        ),
        pytest.param(
            [("put", 3), ("deleted", state(5, value="d", **WAITING)), ("deleted", None), ("put", 5)],
            None,
            id="gone-after-waiting",
        ),
        pytest.param([("put", 3), ("deleted", None), ("wrote", state(4, value="w"))], None, id="gone-before-an-answer"),
        pytest.param([("put", 3), ("deleted", None), ("list-other", 9)], "9", id="made-anew-while-not-watched"),
        pytest.param([("put", 3), ("deleted", None), ("list", 2), ("put", 3)], None, id="gone-and-list-behind"),
        pytest.param([("list", 9), ("wrote", state(5, value="w"))], None, id="late-and-not-on-the-list"),
        pytest.param([("bookmark", 9), ("wrote", state(5, value="w"))], None, id="late-and-not-watched"),
        pytest.param([("put", 3), ("wrote", state(5, labels={"hidden": "true"}))], None, id="leaves-the-selection"),
        pytest.param([("wrote", state(5, labels={"hidden": "true"}))], None, id="never-in-the-selection"),
        pytest.param(
            [("wrote", state(5, labels={"hidden": "true"})), ("wrote", state(6, value="w"))], "w", id="enters-again"
        ),
    ],
)
async def test_readers_see_own_writes_or_newer(
    informer: Informer, happens: list[tuple[str, Any]], expected: str | None
) -> None:
    """Whatever the order of answers and watch events, a reader never sees a state that our own write has overtaken."""
    actions: dict[str, Callable[[Any], object]] = {
        "put": lambda version: informer.put(cached(version, value=str(version))),
        "put-other": lambda version: informer.put(cached(version, uid="other", value=str(version))),
        "remove": lambda version: informer.remove(cached(version)),
        "wrote": informer.wrote,
        "deleted": lambda answer: informer.deleted(KEY, "u", answer),
        "bookmark": lambda version: informer.caught_up(str(version)),
    }
    for action, argument in happens:
        if action == "list":
            await informer.replace([], str(argument))
        elif action == "list-other":
            await informer.replace([cached(argument, uid="other", value=str(argument))], str(argument))
        else:
            actions[action](argument)
    assert shown(informer) == expected


def test_index_finds_what_was_written(informer: Informer) -> None:
    """A child that was just created is found by its owner, and no longer when it was just given away."""
    informer.wrote(state(5, ownerReferences=[owned_by("Job", "j", uid="1")]))
    assert len(informer.lister.by_index(CONTROLLER_UID, "1")) == 1
    informer.put(cached(5, ownerReferences=[owned_by("Job", "j", uid="1")]))
    informer.wrote(state(6, ownerReferences=[owned_by("Job", "j", uid="2")]))
    assert informer.lister.by_index(CONTROLLER_UID, "1") == []
    assert len(informer.lister.by_index(CONTROLLER_UID, "2")) == 1


def test_index_function_reads_a_write_once(informer: Informer) -> None:
    """However often readers ask the index: the object may be large, and the watch may lag."""
    read: list[CachedObject] = []

    def values_of(obj: CachedObject) -> tuple[str, ...]:
        read.append(obj)
        return (obj["value"],)

    informer.add_index("value", values_of)
    for version, value in ((5, "a"), (6, "b")):
        informer.wrote(state(version, value=value))
        for _ in range(3):
            assert informer.lister.keys_by_index("value", value) == {KEY}
    assert informer.lister.keys_by_index("value", "a") == set()
    assert len(read) == 2


async def test_deletion_that_never_shows_is_forgotten(informer: Informer, clock: ManualClock) -> None:
    """A deletion of another incarnation than the known one does not hide the object forever, nor from an index."""
    informer.add_index("value", lambda obj: (obj["value"],))
    informer.put(cached(3, value="3"))
    informer.deleted(KEY, "u", None)
    await clock.advance(EXPIRY)
    assert informer.lister.keys_by_index("value", "3") == set()
    assert shown(informer) is None
    await clock.advance(1)
    assert informer.lister.keys_by_index("value", "3") == {KEY}
    assert shown(informer) == "3"


def test_versions_that_are_no_numbers_are_not_laid_over(informer: Informer) -> None:
    """Where writes cannot be ordered, the watch alone decides."""
    informer.wrote(pod("a", uid="u", resourceVersion="opaque") | {"value": "w"})
    assert shown(informer) is None
