"""The counts, kept by events, equal a count of all TrainJobs."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tests.framework.samples import runtime_object, train_job_object
from trainer.controllers.metrics.state_counts import Frameworks, RecentChanges, StateCounts, Summary
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.objects import ObjectKey

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


def see(state_counts: StateCounts, obj: CachedObject) -> None:
    state_counts.put(obj.key, Summary.of(obj))


def runtimes(*names: str) -> Frameworks:
    frameworks = Frameworks()
    for name in names:
        frameworks.on_add(CachedObject.of(runtime_object() | {"metadata": {"name": name}}), initial=True)
    return frameworks


@given(events=_EVENTS)
def test_counts_what_is_there(events: list[tuple[str, str, str, bool]]) -> None:
    """Whatever the events, each TrainJob is counted once, and no count is 0."""
    state_counts = StateCounts(runtimes("torch", "jax"))
    present: dict[str, CachedObject] = {}
    for name, runtime, state, is_deleted in events:
        old, new = present.pop(name, None), train_job(name, runtime, state)
        if old is not None and is_deleted:
            state_counts.remove(old.key)
            continue
        present[name] = new
        see(state_counts, new)
    places = (
        (obj["spec"]["runtimeRef"]["name"], (obj.get("status") or {}).get("state", "Unknown"))
        for obj in present.values()
    )
    counted = {(runtime, state): count for (_, runtime, _, state), count in state_counts.count().items()}
    assert counted == Counter(places)
    assert {name for _, name, *_ in state_counts.latest()} == set(present)


def test_runtimes_that_do_not_exist_are_none() -> None:
    """A runtime that does not exist is counted as `none`, and by its name once it exists."""
    frameworks = runtimes("torch")
    state_counts = StateCounts(frameworks)
    for number in range(3):
        see(state_counts, train_job(f"a{number}", f"invented-{number}", "Blocked"))
    see(state_counts, train_job("b", "torch", "Blocked"))
    assert state_counts.count() == {
        ("default", "none", "none", "Blocked"): 3,
        ("default", "torch", "none", "Blocked"): 1,
    }
    frameworks.on_add(CachedObject.of(runtime_object() | {"metadata": {"name": "invented-1"}}), initial=False)
    assert state_counts.count()["default", "invented-1", "none", "Blocked"] == 1
    assert state_counts.groups() == {
        ("default", "none"),
        ("default", "torch"),
        ("default", "invented-1"),
        ("default", "other"),
    }


def test_pending_reasons() -> None:
    """TrainJobs are counted by the reason for which their pods wait, as long as they wait."""
    state_counts = StateCounts(runtimes("torch"))
    waiting = train_job("a", "torch", "Pending", "Unschedulable")
    see(state_counts, waiting)
    see(state_counts, train_job("b", "torch", "Pending", "ImagePullBackOff"))
    see(state_counts, train_job("c", "torch", "Running"))
    assert state_counts.pending() == {("default", "Unschedulable"): 1, ("default", "ImagePullBackOff"): 1}
    other = train_job("a", "torch", "Pending", "ImagePullBackOff")
    see(state_counts, other)
    assert state_counts.pending() == {("default", "ImagePullBackOff"): 2}
    see(state_counts, train_job("a", "torch", "Running"))
    assert state_counts.pending() == {("default", "ImagePullBackOff"): 1}


def key(name: str, namespace: str = "team-a") -> ObjectKey:
    return ObjectKey(namespace, name)


def test_the_latest_are_named() -> None:
    """Of a namespace with thousands of TrainJobs the fifty whose state changed last are named."""
    recent_changes = RecentChanges()
    for number in range(5000):
        recent_changes.put(key(f"job-{number}"), has_ended=False)
    recent_changes.put(key("job-7"), has_ended=False)
    names = [each.name for each in recent_changes.latest()]
    assert len(names) == 50
    assert names[:2] == ["job-7", "job-4999"]


def test_a_namespace_takes_no_names_of_another() -> None:
    """One with thousands of TrainJobs leaves room for the others."""
    recent_changes = RecentChanges()
    for number in range(5000):
        recent_changes.put(key(f"job-{number}"), has_ended=False)
    recent_changes.put(key("mine", "team-b"), has_ended=True)
    assert key("mine", "team-b") in recent_changes.latest()


def runtime(name: str, namespace: str = "", **labels: str) -> CachedObject:
    domain = "trainer.kubeflow.org"
    metadata = {
        "name": name,
        "namespace": namespace,
        "labels": {f"{domain}/{label}": text for label, text in labels.items()},
    }
    return CachedObject.of(runtime_object() | {"metadata": metadata})


def test_frameworks_are_few() -> None:
    """The first fifty are named, all others are `other`."""
    frameworks = Frameworks()
    for number in range(100):
        frameworks.on_add(runtime(f"r{number}", framework=f"f{number}"), initial=True)
    shown = [frameworks.labels_of(f"r{number}")[1] for number in (0, 49, 50, 99)]
    assert shown == ["f0", "f49", "other", "other"]


def test_tenants_name_no_frameworks() -> None:
    """The label of a TrainingRuntime counts only if a ClusterTrainingRuntime has the same, added before or after."""
    frameworks = Frameworks()
    for number in range(100):
        frameworks.on_add(runtime(f"r{number}", "team-a", framework=f"invented-{number}"), initial=True)
    frameworks.on_add(runtime("mine", "team-b", framework="torch"), initial=True)
    frameworks.on_add(runtime("torch-distributed", framework="torch"), initial=True)
    assert frameworks.labels_of("team-a/r0") == ("team-a/r0", "other")
    assert frameworks.labels_of("team-b/mine") == ("team-b/mine", "torch")
