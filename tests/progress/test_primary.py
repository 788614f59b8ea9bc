from __future__ import annotations

import pytest

from tests.progress.pods import jobset, pod, running, terminated
from trainer.api.jobset_labels import COMPLETION_INDEX, JOB_INDEX, JOBSET_NAME, JOBSET_UID, RESTART_ATTEMPT
from trainer.api.progress import CONTAINER, PRIMARY_POD
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.objects import Object, ObjectKey, name_of
from trainer.kube.podlogs.instant import Instant
from trainer.progress.primary import candidates, candidates_of, container_state, is_made_of, primary_pod

PRIMARY = {PRIMARY_POD: "true"}


def being_deleted(name: str, created: str = "10:00") -> Object:
    metadata = pod(name, created=f"2026-01-02T{created}:00Z")["metadata"]
    return {"metadata": metadata | {"deletionTimestamp": "2026-01-02T10:06:00Z"}}


@pytest.mark.parametrize(
    ("pods", "of", "expected"),
    [
        pytest.param([pod("a", index=1), pod("b", index=0)], jobset(), "b", id="first pod"),
        pytest.param([pod("a", "init"), pod("b", "node")], jobset("init", "node"), "b", id="the Job named node"),
        pytest.param(
            [pod("a", "node"), pod("b", "worker")],
            jobset("node", "worker", trainer="worker"),
            "b",
            id="the labelled Job",
        ),
        pytest.param(
            [pod("a", "first"), pod("b", "second")], jobset("first", "second"), "a", id="else the first Job of all"
        ),
        pytest.param(
            [pod("a", "node"), pod("b", "launcher", annotations=PRIMARY)],
            jobset("node", "launcher", trainer="node"),
            "b",
            id="annotated",
        ),
        pytest.param(
            [pod("a", index=2, annotations=PRIMARY), pod("b", index=1, annotations=PRIMARY), pod("c")],
            jobset(),
            "b",
            id="first of several annotated",
        ),
        pytest.param(
            [pod("a", annotations={PRIMARY_POD: "false"}, index=1), pod("b")], jobset(), "b", id="annotated false"
        ),
        pytest.param([pod("a", labels={JOB_INDEX: "1"})], jobset(), None, id="second Job of the trainer"),
        pytest.param([pod("a", index=1)], jobset(), None, id="first pod not there yet"),
        pytest.param([], jobset(), None, id="no pod"),
        pytest.param(
            [pod("a", created="2026-01-02T10:00:00Z"), pod("b", created="2026-01-02T10:05:00Z")],
            jobset(),
            "b",
            id="newest after a failure",
        ),
        pytest.param(
            [
                pod("a", labels={RESTART_ATTEMPT: "9"}),
                pod("b", labels={RESTART_ATTEMPT: "10"}),
            ],
            jobset(),
            "b",
            id="newest after a restart of the JobSet within a second",
        ),
        pytest.param([pod("a", labels={JOBSET_UID: "another"})], jobset(), None, id="of a JobSet that is gone"),
        pytest.param([pod("b") | being_deleted("b"), pod("a")], jobset(), "a", id="deleted within the same second"),
        pytest.param([pod("b", phase="Failed"), pod("a")], jobset(), "a", id="failed within the same second"),
        pytest.param(
            [pod("a", phase="Failed"), pod("b", created="2026-01-02T10:05:00Z") | being_deleted("b", "10:05")],
            jobset(),
            "b",
            id="the newest is being deleted",
        ),
    ],
)
def test_primary_pod(pods: list[Object], of: Object, expected: str | None) -> None:
    """The primary pod is the annotated one, else the newest first pod of the Job that trains."""
    found = primary_pod(pods, of)
    assert (name_of(found) if found else None) == expected


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(pod(), True, id="its own"),
        pytest.param(pod(owner="other-node-0"), False, id="of a Job of another"),
        pytest.param(pod(owner="digits-node-1"), False, id="of another of its Jobs"),
        pytest.param(pod(job="more", owner="digits-more-0"), False, id="of a Job that it does not have"),
        pytest.param(pod(labels={JOB_INDEX: "1"}, owner="digits-node-1"), False, id="of one Job more than it has"),
        pytest.param(pod() | {"metadata": pod()["metadata"] | {"ownerReferences": []}}, False, id="of no Job"),
    ],
)
def test_made_by_the_jobset(obj: Object, *, expected: bool) -> None:
    """Labels that say that a pod belongs to the JobSet are not enough: anybody may write them."""
    assert is_made_of(jobset(), obj) == expected


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(pod(index=0), True, id="first"),
        pytest.param(pod(index=1), False, id="second"),
        pytest.param(pod(index=10), False, id="ten"),
        pytest.param(pod(index=1, annotations=PRIMARY), True, id="annotated"),
        pytest.param(
            pod(labels={COMPLETION_INDEX: ""}, annotations={COMPLETION_INDEX: "0"}), True, id="before Kubernetes 1.28"
        ),
        pytest.param(pod(labels={JOBSET_NAME: ""}), False, id="of no JobSet"),
    ],
)
def test_candidates(obj: Object, *, expected: bool) -> None:
    """Of thousands of pods only those are indexed that may be primary."""
    found = candidates(CachedObject.of(obj))
    assert found == ((candidates_of(ObjectKey("team-a", "digits")),) if expected else ())


@pytest.mark.parametrize(
    ("containers", "annotations", "expected"),
    [
        pytest.param(["trainer"], {}, "trainer", id="only one"),
        pytest.param(["proxy", "main"], {}, "proxy", id="else the first"),
        pytest.param(["trainer", "a", "b"], {"pod": "a", "trainjob": "b"}, "a", id="the pod wins"),
    ],
)
def test_container(containers: list[str], annotations: dict[str, str], expected: str) -> None:
    """The container is the annotated one, else that which trains."""
    on = {where: {CONTAINER: name} for where, name in annotations.items()}
    obj = pod(containers=containers, annotations=on.get("pod", {}))
    train_job = {"metadata": {"name": "digits", "annotations": on.get("trainjob", {})}}
    state = container_state(obj, jobset(annotations=on.get("jobset")), train_job)
    assert state.container == expected


STARTED = Instant.parse("2026-01-02T10:00:05Z")
LATER = Instant.parse("2026-01-02T10:30:00Z")


@pytest.mark.parametrize(
    ("obj", "started", "has_ended"),
    [
        pytest.param(pod(), None, False, id="pending"),
        pytest.param(
            pod(state=terminated(0), phase="Running", restart_policy="Always"), STARTED, False, id="always restarted"
        ),
        pytest.param(
            pod(state=running("2026-01-02T10:30:00Z"), last_state=terminated(1), restart_policy="OnFailure"),
            LATER,
            False,
            id="second run",
        ),
        pytest.param(pod(phase="Failed"), None, False, id="evicted before it started"),
        pytest.param(
            pod(state={"terminated": {"exitCode": 128, "startedAt": None}}, phase="Failed"),
            Instant(0),
            True,
            id="could not be started",
        ),
    ],
)
def test_state(obj: Object, started: Instant | None, *, has_ended: bool) -> None:
    """The state of the container says since when its run goes on, and whether there will be another."""
    state = container_state(obj, jobset(), {})
    assert (state.started, state.has_ended) == (started, has_ended)
