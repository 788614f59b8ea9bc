"""The population, kept by events, is what a count of all TrainJobs would give."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tests.framework.samples import runtime_object, train_job_object
from trainer.controllers.metrics.census import Census
from trainer.controllers.metrics.frameworks import Frameworks
from trainer.controllers.metrics.milestones import Milestones
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.testing import ManualClock

_EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["torch", "jax"]),
        st.sampled_from(["", "Created", "Running", "Complete"]),
        st.booleans(),
    )
)


def train_job(name: str, runtime: str, state: str, reason: str = "") -> CachedObject:
    conditions = [{"type": "Pending", "status": "True", "reason": reason}] if reason else []
    status = {"state": state, "conditions": conditions} if state else None
    return CachedObject.of(train_job_object(name, status=status, runtimeRef={"name": runtime}))


def runtimes(*names: str) -> Frameworks:
    frameworks = Frameworks()
    for name in names:
        frameworks.on_add(CachedObject.of(runtime_object() | {"metadata": {"name": name}}), initial=True)
    return frameworks


@given(events=_EVENTS)
def test_counts_what_is_there(events: list[tuple[str, str, str, bool]]) -> None:
    """However TrainJobs come, change and go: each is in one place, and no place is empty."""
    census = Census(runtimes("torch", "jax"), Milestones(ManualClock()))
    present: dict[str, CachedObject] = {}
    for name, runtime, state, is_deleted in events:
        old, new = present.pop(name, None), train_job(name, runtime, state)
        if old is not None and is_deleted:
            census.on_delete(old, stale=False)
            continue
        present[name] = new
        if old is None:
            census.on_add(new, initial=False)
        else:
            census.on_update(old, new)
    places = (
        (obj["spec"]["runtimeRef"]["name"], (obj.get("status") or {}).get("state", "Unknown"))
        for obj in present.values()
    )
    counted = {(runtime, state): count for (_, runtime, _, state), count in census.count().items()}
    assert counted == Counter(places)
    assert {name for _, name, *_ in census.latest()} == set(present)


def test_a_resync_moves_nothing() -> None:
    """An object that is only told again counts once."""
    census = Census(Frameworks(), Milestones(ManualClock()))
    obj = train_job("a", "torch", "Running")
    census.on_add(obj, initial=True)
    census.on_update(obj, obj)
    assert list(census.count().values()) == [1]


def test_runtimes_that_do_not_exist_are_none() -> None:
    """Whatever name people invent; once there is such a runtime, the TrainJobs that wait for it are its own."""
    frameworks = runtimes("torch")
    census = Census(frameworks, Milestones(ManualClock()))
    for number in range(3):
        census.on_add(train_job(f"a{number}", f"invented-{number}", "Blocked"), initial=False)
    census.on_add(train_job("b", "torch", "Blocked"), initial=False)
    assert census.count() == {
        ("default", "none", "none", "Blocked"): 3,
        ("default", "torch", "none", "Blocked"): 1,
    }
    frameworks.on_add(CachedObject.of(runtime_object() | {"metadata": {"name": "invented-1"}}), initial=False)
    assert census.count()["default", "invented-1", "none", "Blocked"] == 1
    assert census.groups() == {
        ("default", "none"),
        ("default", "torch"),
        ("default", "invented-1"),
        ("default", "other"),
    }


def test_pending_reasons() -> None:
    """TrainJobs whose pods wait are counted by the reason, as long as they wait."""
    census = Census(runtimes("torch"), Milestones(ManualClock()))
    waiting = train_job("a", "torch", "Pending", "Unschedulable")
    census.on_add(waiting, initial=False)
    census.on_add(train_job("b", "torch", "Pending", "ImagePullBackOff"), initial=False)
    census.on_add(train_job("c", "torch", "Running"), initial=False)
    assert census.pending() == {("default", "Unschedulable"): 1, ("default", "ImagePullBackOff"): 1}
    other = train_job("a", "torch", "Pending", "ImagePullBackOff")
    census.on_update(waiting, other)
    assert census.pending() == {("default", "ImagePullBackOff"): 2}
    census.on_update(other, train_job("a", "torch", "Running"))
    assert census.pending() == {("default", "ImagePullBackOff"): 1}
