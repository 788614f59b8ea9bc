"""`trainer explain`: why a TrainJob does not run, made to happen on a cluster.

What it says of gangs is in `test_scheduling`, whose cluster has schedulers for them.
"""

from __future__ import annotations

import json
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from e2e.cluster import train_job
from e2e.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from e2e.cluster import Cluster

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
HELD = "example.com/keep"
"""A finalizer that nobody removes."""
REFUSED = {"example.com/refused": "true"}
"""Label of pods for which a webhook is called that nobody serves."""
NEVER_READY = {"exec": {"command": ["python", "-c", "raise SystemExit(1)"]}, "periodSeconds": 10}


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


def volume(**source: Any) -> dict[str, Any]:
    """A volume and its mount."""
    mount = {"name": "trainer", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    return {"volumes": [{"name": "data", **source}], "containers": [mount]}


def jobset_of_nobody(name: str) -> dict[str, Any]:
    """A JobSet that is in the way of a TrainJob."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "a"}]}
    jobs = [{"name": "other", "template": {"spec": {"template": {"spec": pod}}}}]
    spec = {"suspend": True, "replicatedJobs": jobs}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name}, "spec": spec}


def beside(name: str) -> dict[str, Any]:
    """A runtime with a container beside the one that trains, which goes on when that one has ended."""
    found = runtime(name, restartPolicy="Never")
    pod = found["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    pod["containers"].append({"name": "cache", "image": "a", "command": ["python", "-c", SLEEP]})
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
        "no-cpu",
        "Unschedulable",
        "Insufficient cpu",
        "ask for at most",
        "kubectl describe nodes",
        asking("no-cpu", requests={"cpu": "100k"}),
        detail="a pod asks for 100k of cpu, and the largest node",
    ),
    Case(
        "no-label",
        "Unschedulable",
        "gpu=imaginary",
        "select by values of gpu that exist",
        "kubectl describe nodes",
        job("no-label", pod={"nodeSelector": {"gpu": "imaginary"}}),
        detail="the pod selects nodes by gpu in imaginary, and no node has this label",
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
        "no-priority",
        "FailedCreate",
        "no PriorityClass with name urgent was found",
        "name a PriorityClass that exists",
        "kubectl get priorityclasses",
        on("no-priority"),
        (runtime("no-priority", priorityClassName="urgent"),),
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
        "taken",
        "JobsCreationFailed",
        "exists and does not belong to this TrainJob; delete it or give",
        "delete the object that is in the way",
        "kubectl describe trainjob taken",
        job("taken"),
        (jobset_of_nobody("taken"),),
    ),
    Case(
        "deleted",
        "Deleted",
        f"waits for its finalizers: {HELD}",
        "the controller that has set it does not run",
        "kubectl describe trainjob deleted",
        job("deleted") | {"metadata": {"name": "deleted", "finalizers": [HELD]}},
    ),
    Case(
        "beside",
        "ContainerFailed",
        "exited with code 4 in pod beside-node-0-0-",
        "its log says why",
        "kubectl logs beside-node-0-0-",
        on("beside", "print('no luck'); raise SystemExit(4)"),
        (beside("beside"),),
        detail="no luck",
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
        "no-config-map",
        "FailedMount",
        'configmap "settings" not found',
        "create the volume's",
        "kubectl describe pod no-config-map-node-0-0-",
        job("no-config-map", pod=volume(configMap={"name": "settings"})),
    ),
    Case(
        "no-claim",
        "FailedMount",
        'persistentvolumeclaim "data" not found',
        "create the volume's",
        "kubectl describe pod no-claim-node-0-0-",
        job("no-claim", pod=volume(persistentVolumeClaim={"claimName": "data"})),
    ),
    Case(
        "gated",
        "SchedulingGated",
        "1 pod cannot start",
        "the gate is example.com/hold",
        "kubectl describe pod gated-node-0-0-",
        on("gated"),
        (runtime("gated", schedulingGates=[{"name": "example.com/hold"}]),),
    ),
    Case(
        "no-scheduler",
        "Unschedulable NoScheduler",  # a dev cluster says it of the pod, and on others nobody says anything
        "no scheduler called gangs ",
        "install the scheduler of this name",
        "kubectl describe pod",
        on("no-scheduler"),
        (runtime("no-scheduler", schedulerName="gangs"),),
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
        "sick",
        "Unhealthy",
        "Readiness probe failed",
        "correct the probe",
        "kubectl describe pod sick-node-0-0-",
        on("sick"),
        (runtime("sick", {"readinessProbe": NEVER_READY}),),
    ),
    Case(
        "no-command",
        "FailedJobs",
        "container trainer exited with code",
        "submit it again",
        "kubectl logs no-command-node-0-0-",
        train_job("no-command", "") | {"spec": {"runtimeRef": {"name": "plain"}, "trainer": {"command": ["/none"]}}},
        code=FAILED,
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
        "no-module",
        "FailedJobs",
        "container trainer exited with code 1",
        "take an image that has the module",
        "kubectl logs no-module-node-0-0-",
        job("no-module", "import nowhere"),
        detail="ModuleNotFoundError: No module named 'nowhere'",
        code=FAILED,
    ),
    Case(
        "late",
        "DeadlineExceeded",
        "spec.activeDeadlineSeconds",
        "raise spec.activeDeadlineSeconds",
        "kubectl describe trainjob late",
        job("late", activeDeadlineSeconds=1),
        code=FAILED,
    ),
    Case(
        "stopped",
        "Suspended",
        "TrainJob stopped is suspended by kubectl-",
        "trainer resume stopped",
        "kubectl get trainjob stopped",
        job("stopped", suspend=True),
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
        "elsewhere",
        "ManagedByOther",
        "spec.managedBy is kueue.x-k8s.io/multikueue",
        "ask who runs that controller",
        "kubectl describe trainjob elsewhere",
        job("elsewhere", managedBy="kueue.x-k8s.io/multikueue"),
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
        own.kubectl("delete", "trainjob", "deleted", "--wait=false")
        yield own
        own.kubectl("patch", "trainjob", "deleted", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')


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


def test_a_limit_range(cluster: Cluster) -> None:
    """Pods that ask for more than a LimitRange allows."""
    limits = [{"type": "Container", "max": {"cpu": "1"}}]
    cluster.apply({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"}, "spec": {"limits": limits}})
    cluster.apply(asking("demo", limits={"cpu": "2"}))

    cause = reason(cluster, "demo", "FailedCreate")

    assert "maximum cpu usage per Container is 1, but limit is 2" in cause["message"]
    assert cause["remedy"] == "ask for what the LimitRange of the namespace allows"
    assert cause["command"].startswith("kubectl describe limitrange")


def test_a_jobset_that_somebody_has_suspended(cluster: Cluster) -> None:
    """It is not the TrainJob that is suspended, and who did it is said."""
    cluster.apply(job("demo"))
    cluster.wait_for_state("demo", "Running")
    cluster.kubectl(
        "patch", "jobset", "demo", "--type=merge", "--field-manager=an-admin", "-p", '{"spec":{"suspend":true}}'
    )

    cause = reason(cluster, "demo", "JobSetSuspended")

    assert "JobSet demo is suspended by an-admin at " in cause["message"]
    assert cause["command"].startswith("kubectl get jobset demo")


def test_a_taint(cluster: Cluster) -> None:
    """The only node that the pod selects has a taint that it does not tolerate."""
    name = f"tainted-{cluster.namespace}"
    taint = {"key": "example.com/team", "value": "other", "effect": "NoSchedule"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"node": name}}}
    cluster.apply(node | {"spec": {"taints": [taint]}})
    try:
        cluster.apply(job("demo", pod={"nodeSelector": {"node": name}}))

        cause = reason(cluster, "demo", "Unschedulable")

        assert "taints that it does not tolerate: example.com/team=other:NoSchedule" in "".join(cause["details"])
        assert cause["remedy"].startswith("tolerate them")
    finally:
        cluster.kubectl("delete", "node", name)


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
            job("demo", "pass", pod=volume(persistentVolumeClaim={"claimName": "data"})),
            WAITS,
            "PersistentVolumeClaim data does not exist",
            id="claim",
        ),
        pytest.param(
            job("demo", "pass", runtimeRef={"name": "nowhere"}), WAITS, "TrainingRuntime nowhere does", id="runtime"
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
