"""Evictions through HTTP: the mark on the pod, dry runs and preconditions."""

from __future__ import annotations

import pytest

from packages.devcluster.tests.apiserver.http_client import MERGE, Answer, Api
from trainer.kube.objects import Object, find_condition

NS = "/api/v1/namespaces/default"
PODS = f"{NS}/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
LABELS = {"app": "train"}


async def start_pod(api: Api, name: str) -> None:
    """Make a pod that is bound to a node and whose finalizer keeps it once it is deleted."""
    metadata = {"name": name, "labels": LABELS, "finalizers": ["batch.kubernetes.io/job-tracking"]}
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
    await api("POST", PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    conditions = [{"type": "Ready", "status": "True"}]
    await api("PATCH", f"{PODS}/{name}/status", {"status": {"phase": "Running", "conditions": conditions}}, MERGE)


def eviction(name: str, **options: object) -> Object:
    body: Object = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    return body | ({"deleteOptions": options} if options else {})


async def evict(api: Api, name: str, **options: object) -> Answer:
    return await api("POST", f"{PODS}/{name}/eviction", eviction(name, **options))


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


async def test_budgets_are_only_stored(api: Api) -> None:
    """A warning says that no eviction is refused for one."""
    await start_pod(api, "p")
    body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}}
    made = await api("POST", BUDGETS, body | {"spec": {"minAvailable": 1, "selector": {"matchLabels": LABELS}}})
    assert (made.code, "evicts pods regardless" in made.warnings[0]) == (201, True)
    assert (await evict(api, "p")).code == 201
