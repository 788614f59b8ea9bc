"""`trainer explain`: why a TrainJob does not run, made to happen on a cluster.

What it says of gangs is in `test_scheduling`, whose cluster has schedulers for them.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
import yaml

from e2e.cluster import Cluster, train_job
from e2e.waiting import until

WAITS, FAILED = 3, 4
GPU = "example.com/imaginary"
SLEEP = "import time; time.sleep(600)"
REPORT_AND_WAIT = """
import json, time
report = {"currentStep": 4, "totalSteps": 10}
print("[trainer.kubeflow.org/v2alpha1/trainjob/trainerStatus]", json.dumps(report), flush=True)
time.sleep(600)
"""
IN_QUEUE = {"kueue.x-k8s.io/queue-name": "team-a"}
REFUSED = {"example.com/refused": "true"}
"""Label of pods for which a webhook is called that nobody serves."""


@dataclass(frozen=True)
class Case:
    """A TrainJob that does not run, and what is said about it."""

    name: str
    reason: str
    """Of the first cause; several words where it depends on the cluster."""
    message: str
    """A part of its sentence."""
    remedy: str
    """A part of the remedy."""
    command: str
    """What the command that shows more begins with."""
    job: dict[str, Any]
    needs: tuple[dict[str, Any], ...] = ()
    """Objects that are there before."""
    detail: str = ""
    """A part of its details."""
    code: int = WAITS


def job(name: str, script: str = SLEEP, *, nodes: int = 1, pod: dict[str, Any] | None = None, **spec: Any) -> Any:
    """A TrainJob, perhaps with an override of its pods."""
    found = train_job(name, script, nodes=nodes, **spec)
    if pod:
        found["spec"]["podSpecOverrides"] = [{"targetJobs": [{"name": "node"}], **pod}]
    return found


def asking(name: str, **resources: dict[str, str]) -> Any:
    """A TrainJob with resources."""
    found = job(name)
    found["spec"]["trainer"]["resourcesPerNode"] = resources
    return found


def runtime(name: str, container: dict[str, Any] | None = None, **pod: Any) -> dict[str, Any]:
    """A runtime of the namespace whose pods are special."""
    spec = {"restartPolicy": "OnFailure", **pod, "containers": [{"name": "trainer", "image": "a", **(container or {})}]}
    jobs = [{"name": "node", "template": {"spec": {"backoffLimit": 9, "template": {"spec": spec}}}}]
    return {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": name},
        "spec": {"mlPolicy": {"numNodes": 1}, "template": {"spec": {"replicatedJobs": jobs}}},
    }


def on(name: str, script: str = SLEEP) -> Any:
    """A TrainJob on the runtime of its name."""
    found = job(name, script)
    found["spec"]["runtimeRef"] = {"kind": "TrainingRuntime", "name": name}
    return found


CASES = [
    Case(
        "no-gpu",
        "Unschedulable",
        f"spec.trainer.resourcesPerNode.limits[{GPU}]: 8 requested",
        f"device plugin for {GPU}",
        "kubectl describe nodes",
        asking("no-gpu", limits={GPU: "8"}),
        detail=f"no node that the pod may run on has {GPU}",
    ),
    Case(
        "no-account",
        "FailedCreate",
        'serviceaccount "nobody" not found',
        "kubectl create serviceaccount nobody",
        "kubectl get serviceaccounts",
        job("no-account", pod={"serviceAccountName": "nobody"}),
    ),
    Case(
        "no-webhook",
        "FailedCreate",
        'failed calling webhook "policy.example.com"',
        "have the server of the webhook policy.example.com repaired",
        "kubectl get validatingwebhookconfigurations",
        job("no-webhook", labels=REFUSED),
    ),
    Case(
        "no-secret",
        "CreateContainerConfigError",
        'secret "credentials" not found',
        "create the Secret or ConfigMap",
        "kubectl describe pod no-secret-node-0-0-",
        on("no-secret"),
        (
            runtime(
                "no-secret",
                {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "credentials", "key": "a"}}}]},
            ),
        ),
    ),
    Case(
        "crash-loop",
        "CrashLoopBackOff",
        "container trainer exited with code 3 in pod crash-loop-node-0-0-",
        "its log says why",
        "kubectl logs crash-loop-node-0-0-",
        on("crash-loop", "print('no data'); raise SystemExit(3)"),
        (runtime("crash-loop"),),
        detail="no data",
    ),
    Case(
        "fails",
        "FailedJobs",
        "container trainer exited with code 7",
        "its log says why",
        "kubectl logs fails-node-0-0-",
        job("fails", "print('ValueError: no data'); raise SystemExit(7)"),
        detail="ValueError: no data",
        code=FAILED,
    ),
    Case(
        "queued",
        "Suspended",
        "is suspended in Kueue's queue team-a",
        "have Kueue checked",
        "kubectl get workloads,localqueues",
        job("queued", suspend=True) | {"metadata": {"name": "queued", "labels": IN_QUEUE}},
    ),
    Case(
        "no-runtime",
        "JobsBuildFailed",
        "there is no ClusterTrainingRuntime",
        "name a runtime that exists",
        "trainer runtimes",
        train_job("no-runtime", SLEEP, runtime="nowhere"),
    ),
]


@pytest.fixture(scope="module")
def troubled(session_cluster: Cluster) -> Iterator[Cluster]:
    """A namespace with all the TrainJobs, which get into trouble at the same time."""
    with namespace(session_cluster) as own, unserved_webhook(own):
        own.apply(*(obj for case in CASES for obj in case.needs))
        own.apply(*(case.job for case in CASES))
        yield own


@contextmanager
def unserved_webhook(cluster: Cluster) -> Iterator[None]:
    """Have a webhook called for marked pods of the namespace, at an address where nothing listens."""
    name = f"policy-{cluster.namespace}"
    hook = {
        "name": "policy.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": cluster.namespace}},
        "objectSelector": {"matchLabels": REFUSED},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}],
    }
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    cluster.apply({**kind, "metadata": {"name": name}, "webhooks": [hook]})
    try:
        yield
    finally:
        cluster.kubectl("delete", "validatingwebhookconfiguration", name)


@pytest.fixture(scope="module")
def limited(session_cluster: Cluster) -> Iterator[Cluster]:
    """A namespace for two pods."""
    with namespace(session_cluster) as own:
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"}}
        own.apply(quota | {"spec": {"hard": {"pods": "2"}}})
        yield own


@contextmanager
def namespace(cluster: Cluster) -> Iterator[Cluster]:
    """An empty namespace, deleted afterwards; the deletion may take longer than the test."""
    own = replace(cluster, namespace=f"e2e-{uuid.uuid4().hex[:8]}")
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": own.namespace}})
    yield own
    cluster.kubectl("delete", "namespace", own.namespace, "--wait=false")


def answer(cluster: Cluster, name: str) -> tuple[int, dict[str, Any]]:
    """Exit code and JSON."""
    result = cluster.trainer("explain", name, "-o", "json")
    assert result.stdout, result.stderr
    return result.returncode, json.loads(result.stdout)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_causes(troubled: Cluster, case: Case) -> None:
    """The first cause, its remedy and the command that shows more, once the cluster is in this state."""

    def found() -> tuple[int, dict[str, Any]] | None:
        code, said = answer(troubled, case.name)
        is_there = said["causes"] and said["causes"][0]["reason"] in case.reason.split()
        return (code, said) if is_there and case.detail in "".join(said["causes"][0]["details"]) else None

    code, said = until(found, f"{case.name} is explained by {case.reason}", pause=0.5)

    cause = said["causes"][0]
    assert code == case.code
    assert case.message in cause["message"]
    assert case.remedy in cause["remedy"]
    assert cause["command"].startswith(case.command)
    assert said["unread"] == []


def test_a_quota(cluster: Cluster) -> None:
    """A pod that the quota of the namespace refuses, beside one that runs and waits for it."""
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"}, "spec": {"hard": {"pods": "1"}}}
    cluster.apply(quota)
    cluster.apply(job("demo", nodes=2))

    def reasons() -> list[str] | None:
        found = [cause["reason"] for cause in answer(cluster, "demo")[1]["causes"]]
        return found if len(found) == 2 else None

    assert until(reasons, "the node that runs waits for the other", pause=0.5) == ["FailedCreate", "NodesMissing"]
    _, said = answer(cluster, "demo")
    assert said["causes"][0]["command"].startswith("kubectl describe resourcequota team")
    assert "1 of 2 nodes are up, and wait for 1 without a pod" in said["causes"][1]["message"]


def reason(cluster: Cluster, name: str, expected: str) -> dict[str, Any]:
    """The first cause, once it has this reason."""

    def found() -> dict[str, Any] | None:
        causes: list[dict[str, Any]] = answer(cluster, name)[1]["causes"]
        return causes[0] if causes and causes[0]["reason"] == expected else None

    return until(found, f"{name} is explained by {expected}", pause=0.5)


def test_progress(cluster: Cluster) -> None:
    """A training that runs is running, one that stalls says how far it was, and one that is complete has succeeded."""
    stall = {"trainer.kubeflow.org/trainer-status-stall-seconds": "2"}
    cluster.apply(job("demo", REPORT_AND_WAIT) | {"metadata": {"name": "demo", "annotations": stall}})
    cluster.apply(job("done", "pass"))

    cluster.wait_for_state("demo", "Stalled")
    code, said = answer(cluster, "demo")
    assert (code, said["verdict"]) == (WAITS, "waiting")
    assert said["causes"][0]["reason"] == "NoProgress"
    assert "step 4 of 10" in "".join(said["causes"][0]["details"])

    cluster.wait_for_condition("done", "Complete")
    result = cluster.trainer("explain", "done")
    assert (result.returncode, result.stdout) == (0, "TrainJob done has succeeded\n")


def test_a_user_with_few_rights(cluster: Cluster) -> None:
    """Who may read TrainJobs only gets what the manager has seen, and a list of what could not be read."""
    cluster.apply(job("demo", pod={"nodeSelector": {"gpu": "imaginary"}}))
    cluster.wait_for_state("demo", "Pending")
    reader = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reader"}}
    rules = [{"apiGroups": ["trainer.kubeflow.org"], "resources": ["trainjobs"], "verbs": ["get", "list"]}]
    cluster.apply(reader, role | {"rules": rules})
    cluster.kubectl("create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={cluster.namespace}:reader")
    token = cluster.kubectl("create", "token", "reader").stdout.strip()
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"] = [{"name": each["name"], "user": {"token": token}} for each in config["users"]]
    kubeconfig = cluster.kubeconfig.with_name(f"reader-of-{cluster.namespace}")
    kubeconfig.write_text(yaml.safe_dump(config))

    code, said = answer(replace(cluster, kubeconfig=kubeconfig), "demo")

    assert (code, said["causes"][0]["reason"]) == (WAITS, "Unschedulable")
    assert "gpu=imaginary" in said["causes"][0]["message"]
    assert sorted(each["what"] for each in said["unread"]) == ["jobsets", "pods"]
    assert all("cannot" in each["why"] for each in said["unread"])


@pytest.mark.parametrize(
    ("manifest", "code", "words"),
    [
        pytest.param(job("demo", "pass"), 0, "would run, by what is known", id="runs"),
        pytest.param(
            job("demo", "pass", pod={"serviceAccountName": "nobody"}),
            WAITS,
            'serviceaccount "nobody" not found',
            id="account",
        ),
        pytest.param(
            job(
                "demo",
                runtimeRef={"name": "torch-distributed"},
                trainer={"env": [{"name": "PET_NNODES", "value": "1"}]},
            ),
            FAILED,
            "would be refused",
            id="refused",
        ),
    ],
)
def test_before_submission(limited: Cluster, manifest: dict[str, Any], code: int, words: str) -> None:
    """What would hold it is found by dry runs, and nothing is stored."""
    result = limited.trainer("explain", "-f", "-", stdin=json.dumps(manifest))
    assert result.returncode == code, result.stdout + result.stderr
    assert words in result.stdout
    assert limited.list("trainjob,pod") == []
