"""The population, kept by events, is what a count of all TrainJobs would give."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tests.framework.samples import train_job_object
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


def train_job(name: str, runtime: str, state: str) -> CachedObject:
    status = {"state": state} if state else None
    return CachedObject.of(train_job_object(name, status=status, runtimeRef={"name": runtime}))


@given(events=_EVENTS)
def test_counts_what_is_there(events: list[tuple[str, str, str, bool]]) -> None:
    """However TrainJobs come, change and go: each is in one place, and no place is empty."""
    census = Census(Frameworks(), Milestones(ManualClock()))
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
    counted = {(group.runtime, state): count for (group, state), count in census.count().items()}
    assert counted == Counter(places)


def test_a_resync_moves_nothing() -> None:
    """An object that is only told again counts once."""
    census = Census(Frameworks(), Milestones(ManualClock()))
    obj = train_job("a", "torch", "Running")
    census.on_add(obj, initial=True)
    census.on_update(obj, obj)
    assert list(census.count().values()) == [1]
