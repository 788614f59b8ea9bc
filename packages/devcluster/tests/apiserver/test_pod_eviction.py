"""Evictions through HTTP: the mark on the pod, disruption budgets, dry runs and preconditions."""

from __future__ import annotations

import pytest

from packages.devcluster.tests.apiserver.http_client import MERGE, Answer, Api
from trainer.kube.objects import Object, find_condition

NS = "/api/v1/namespaces/default"
PODS = f"{NS}/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
VIOLATION = "Cannot evict pod as it would violate the pod's disruption budget."
LABELS = {"app": "train"}


async def start_pod(api: Api, name: str, *, phase: str = "Running", ready: bool = True, job: bool = True) -> None:
    """Make a pod that is bound to a node and whose finalizer keeps it once it is deleted."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    metadata = {"name": name, "labels": LABELS, "finalizers": ["batch.kubernetes.io/job-tracking"]}
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
    await api(
        "POST",
        PODS,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata | ({"ownerReferences": [owner]} if job else {}),
            "spec": spec,
        },
    )
    conditions = [{"type": "Ready", "status": str(ready)}]
    await api("PATCH", f"{PODS}/{name}/status", {"status": {"phase": phase, "conditions": conditions}}, MERGE)


def eviction(name: str, **options: object) -> Object:
    body: Object = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    return body | ({"deleteOptions": options} if options else {})


async def evict(api: Api, name: str, **options: object) -> Answer:
    return await api("POST", f"{PODS}/{name}/eviction", eviction(name, **options))


async def make_budget(api: Api, name: str = "b", **spec: object) -> Answer:
    body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}}
    return await api("POST", BUDGETS, body | {"spec": {"selector": {"matchLabels": LABELS}} | spec})


async def test_a_pod_is_marked_before_it_goes(api: Api) -> None:
    """The pod has the condition by which its Job knows a disruption, and its grace period."""
    await start_pod(api, "p")
    answer = await evict(api, "p", gracePeriodSeconds=7)
    assert (answer.code, answer.body["status"]) == (201, "Success")
    pod = (await api("GET", f"{PODS}/p")).body
    condition = find_condition(pod, "DisruptionTarget")
    assert condition is not None
    assert {name: condition[name] for name in ("status", "reason", "message")} == {
        "status": "True", "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
    }  # fmt: skip
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 7
    assert (await evict(api, "p")).code == 201


@pytest.mark.parametrize(
    ("path", "options"),
    [
        pytest.param(f"{PODS}/p/eviction?dryRun=All", {}, id="in the query"),
        pytest.param(f"{PODS}/p/eviction", {"dryRun": ["All"]}, id="in the body"),
    ],
)
async def test_a_dry_run_changes_nothing(api: Api, path: str, options: Object) -> None:
    """A dry run answers like the eviction, and leaves the pod as it is."""
    await start_pod(api, "p")
    before = (await api("GET", f"{PODS}/p")).body
    assert (await api("POST", path, eviction("p", **options))).code == 201
    assert (await api("GET", f"{PODS}/p")).body == before


@pytest.mark.parametrize(
    ("url", "named", "options", "code"),
    [
        pytest.param("missing", "missing", {}, 404, id="no such pod"),
        pytest.param("p", "q", {}, 400, id="names differ"),
        pytest.param("p", "p", {"preconditions": {"uid": "other"}}, 409, id="another uid"),
        pytest.param("p", "p", {"preconditions": {"resourceVersion": "1"}}, 409, id="an older version"),
        pytest.param("p", "p", {"gracePeriodSeconds": -1}, 422, id="grace period"),
    ],
)
async def test_refusals(api: Api, url: str, named: str, options: Object, code: int) -> None:
    """An eviction of something else than the client means leaves the pod unmarked."""
    await start_pod(api, "p")
    assert (await api("POST", f"{PODS}/{url}/eviction", eviction(named, **options))).code == code
    assert find_condition((await api("GET", f"{PODS}/p")).body, "DisruptionTarget") is None


async def test_the_version_that_the_client_has_seen_may_be_a_precondition(api: Api) -> None:
    """The mark on the pod does not make the precondition fail."""
    await start_pod(api, "p")
    version = (await api("GET", f"{PODS}/p")).body["metadata"]["resourceVersion"]
    assert (await evict(api, "p", preconditions={"resourceVersion": version})).code == 201


@pytest.mark.parametrize(
    ("spec", "pods", "cause"),
    [
        pytest.param({"minAvailable": 1}, [{}, {}], "", id="room"),
        pytest.param(
            {"minAvailable": 2}, [{}, {}], "b needs 2 healthy pods and has 2 currently", id="no room"
        ),
        pytest.param(
            {"minAvailable": 1}, [{}, {"ready": False}], "b needs 1 healthy pods and has 1 currently", id="not ready"
        ),
        pytest.param({"minAvailable": 5}, [{"phase": "Failed"}], "", id="an ended pod needs no room"),
        pytest.param({"minAvailable": 5, "selector": {"matchLabels": {"app": "x"}}}, [{}], "", id="other pods"),
        pytest.param({"minAvailable": 5, "selector": None}, [{}], "", id="no selector selects nothing"),
        pytest.param(
            {"minAvailable": 2},
            [{"ready": False}, {}],
            "b needs 2 healthy pods and has 1 currently",
            id="an unhealthy pod of a disrupted program",
        ),
        pytest.param({"minAvailable": 1}, [{"ready": False}, {}], "", id="an unhealthy pod that nobody needs"),
        pytest.param(
            {"minAvailable": 2, "unhealthyPodEvictionPolicy": "AlwaysAllow"}, [{"ready": False}, {}], "", id="always"
        ),
        pytest.param(
            {"maxUnavailable": 1},
            [{}],
            "b does not allow evicting pods currently because it failed sync: jobs.batch does not implement the scale "
            "subresource",
            id="relative to a Job",
        ),
        pytest.param(
            {"minAvailable": "50%"},
            [{"job": False}],
            'b does not allow evicting pods currently because it failed sync: found no controller ref for pod "p0"',
            id="relative to nothing",
        ),
    ],
)  # fmt: skip
async def test_budgets(api: Api, spec: Object, pods: list[dict[str, object]], cause: str) -> None:
    """The first pod goes only when its budget has room, which is counted from the pods."""
    for index, pod in enumerate(pods):
        await start_pod(api, f"p{index}", **pod)  # type: ignore[arg-type]
    assert (await make_budget(api, **spec)).code == 201
    answer = await evict(api, "p0")
    if not cause:
        assert answer.code == 201
        return
    assert (answer.code, answer.body["reason"], answer.body["message"]) == (429, "TooManyRequests", VIOLATION)
    assert answer.body["details"]["causes"] == [
        {"reason": "DisruptionBudget", "message": f"The disruption budget {cause}"}
    ]
    assert find_condition((await api("GET", f"{PODS}/p0")).body, "DisruptionTarget") is None


async def test_evictions_use_up_the_budget(api: Api) -> None:
    """A pod that is going is not healthy any more."""
    await start_pod(api, "p")
    await start_pod(api, "q")
    await make_budget(api, minAvailable=1)
    assert [(await evict(api, name)).code for name in ("p", "q", "p")] == [201, 429, 201]


async def test_a_pod_of_two_budgets_stays(api: Api) -> None:
    """Nobody knows which of the two counts."""
    await start_pod(api, "p")
    for name in ("a", "b"):
        await make_budget(api, name, minAvailable=0)
    answer = await evict(api, "p")
    assert (answer.code, "more than one PodDisruptionBudget" in answer.body["message"]) == (500, True)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"minAvailable": 1, "maxUnavailable": 1}, id="two ways to count"),
        pytest.param({"selector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}, id="selector"),
    ],
)
async def test_budgets_that_nobody_understands_are_refused(api: Api, spec: Object) -> None:
    """What could not be counted later is refused at once."""
    assert (await make_budget(api, **spec)).code == 422
