"""PyTorchJobs and JAXJobs become TrainJobs, and their status follows."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from packages.v1_jobs.tests.controllers.conftest import Cluster, pod
from packages.v1_jobs.tests.controllers.samples import elastic_job, jax_job, parted_job, pytorch_job, replica
from trainer.api.kubeflow_v1 import JAX_JOBS, PYTORCH_JOBS
from trainer.api.trainingruntime import TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.errors import ForbiddenError, NamespaceTerminatingError
from trainer.kube.objects import Object, is_controlled_by, labels_of
from trainer.kube.resource import HORIZONTAL_POD_AUTOSCALERS, LEASES, PODS, VALIDATING_WEBHOOK_CONFIGURATIONS
from trainer.v1alpha1.discovery import Served
from trainer.workloads import JOBSETS
from trainer_v1_jobs.controllers import pod_labels

LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "1ca428e5.training-operator.kubeflow.org", "namespace": "kubeflow"},
    "spec": {"holderIdentity": "operator", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"},
}
WEBHOOKS = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "validator.training-operator.kubeflow.org"},
    "webhooks": [],
}


@pytest.mark.parametrize(
    ("job", "resource", "policy"),
    [
        pytest.param(pytorch_job(), PYTORCH_JOBS, "torch", id="PyTorchJob"),
        pytest.param(jax_job(), JAX_JOBS, "jax", id="JAXJob"),
    ],
)
async def test_from_submission_to_success(cluster: Cluster, job: Object, resource: Any, policy: str) -> None:
    """A job has a TrainJob and a runtime of its own, which it owns, and conditions as they come."""
    async with cluster.managed():
        await cluster.put(job)
        owner, train_job, runtime = (cluster.only(each) for each in (resource, TRAIN_JOBS, TRAINING_RUNTIMES))
        assert is_controlled_by(train_job, owner)
        assert is_controlled_by(runtime, owner)
        assert policy in runtime["spec"]["mlPolicy"]
        assert train_job["spec"]["runtimeRef"]["name"] == "job"
        assert cluster.conditions(resource) == ["Created"]
        await cluster.run_pods()
        assert cluster.conditions(resource) == ["Created", "Running"]
        await cluster.end("Completed")
        assert cluster.conditions(resource) == ["Created", "!Running", "Succeeded"]
        assert cluster.only(resource)["status"]["completionTime"]
        cluster.client.requests.clear()
        await cluster.put(cluster.only(resource))
        assert cluster.writes == []


async def test_labels_of_pods(cluster: Cluster) -> None:
    """Pods have the labels of their role from the template, and get those of their index."""
    async with cluster.managed():
        await cluster.put(pytorch_job())
        template = cluster.only(JOBSETS)["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
        assert template["metadata"]["labels"]["training.kubeflow.org/job-name"] == "job"
        await cluster.run_pods(count=3)
        replicas = [
            tuple(
                labels_of(pod).get(f"training.kubeflow.org/{name}")
                for name in ("replica-type", "replica-index", "job-role")
            )
            for pod in cluster.objects(PODS)
        ]
        assert replicas == [("master", "0", "master"), ("worker", "0", None), ("worker", "1", None)]


TRIAL = {"apiVersion": "kubeflow.org/v1beta1", "kind": "Trial", "name": "job", "uid": "t", "controller": True}


def of_trial(job: Object) -> Object:
    """The job as Katib makes it."""
    return job | {"metadata": job["metadata"] | {"ownerReferences": [TRIAL]}}


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        pytest.param(pytorch_job(), {"node": (None, None, None)}, id="equal-pods"),
        pytest.param(jax_job(), {"node": ("worker", None, None)}, id="workers"),
        pytest.param(elastic_job(1), {"node": ("worker", None, None)}, id="one-worker-and-perhaps-more"),
        pytest.param(pytorch_job(0), {"node": ("master", "0", "master")}, id="one-pod"),
        pytest.param(jax_job(1), {"node": ("worker", "0", "master")}, id="one-worker"),
        pytest.param(
            of_trial(pytorch_job()),
            {"master": ("master", "0", "master"), "worker": ("worker", None, None)},
            id="a-trial-of-Katib",
        ),
        pytest.param(
            of_trial(pytorch_job(1)),
            {"master": ("master", "0", "master"), "worker": ("worker", "0", None)},
            id="a-trial-with-one-worker",
        ),
        pytest.param(of_trial(pytorch_job(0)), {"node": ("master", "0", "master")}, id="a-trial-of-one-pod"),
        pytest.param(of_trial(jax_job()), {"node": ("worker", None, None)}, id="a-trial-without-a-master"),
    ],
)
async def test_labels_of_templates(cluster: Cluster, job: Object, expected: dict[str, tuple[str | None, ...]]) -> None:
    """Pods have from their beginning what all pods of a Job have; Katib finds its Master by that."""
    async with cluster.managed():
        await cluster.put(job)
        jobs = cluster.only(JOBSETS)["spec"]["replicatedJobs"]
        names = ("replica-type", "replica-index", "job-role")
        found = {each["name"]: labels_of(each["template"]["spec"]["template"]) for each in jobs}
        assert {
            name: tuple(labels.get(f"training.kubeflow.org/{each}") for each in names) for name, labels in found.items()
        } == expected
        (resource,) = (each for each in (PYTORCH_JOBS, JAX_JOBS) if each.kind == job["kind"])
        assert cluster.only(resource)["spec"] == job["spec"]


def labelled(cluster: Cluster) -> list[str]:
    """The names of the pods that were patched, in this order."""
    return [each.name or "" for each in cluster.client.requests if each.verb == "patch" and each.resource == PODS]


async def test_labels_of_many_pods(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pod takes one request; after a few of them the other jobs have their turn, and the leader is the first."""
    monkeypatch.setattr(pod_labels, "MOST_AT_ONCE", 4)
    async with cluster.managed():
        await cluster.put(jax_job(10, name="large"), jax_job(2, name="small"))
        labels = {"training.kubeflow.org/operator-name": "jaxjob-controller"}
        for name, index in (*(("large", index) for index in reversed(range(10))), ("small", 0), ("small", 1)):
            own = labels | {"training.kubeflow.org/job-name": name}
            cluster.client.add(pod(name, "node", index, "Running", own))
        await cluster.pass_time(1)
        found = labelled(cluster)
        assert sorted(found) == sorted(each["metadata"]["name"] for each in cluster.objects(PODS))
        large, small = ([n for n, name in enumerate(found) if name.startswith(job)] for job in ("large", "small"))
        assert found[large[0]].startswith("large-node-0-0-")
        assert max(small) < large[4]
        writes = len(cluster.writes)
        await cluster.pass_time(60)
        assert len(cluster.writes) == writes


async def test_labels_that_are_refused(cluster: Cluster) -> None:
    """A pod that a policy keeps from being changed holds up no other, and is tried again."""
    async with cluster.managed():
        await cluster.put(jax_job(3))
        refused = cluster.client.faults.fail(
            ForbiddenError(403, "a policy says no"), times=None, verb="patch", name="job-node-0-0-abcde"
        )
        await cluster.run_pods(count=3)
        assert indexes(cluster) == [None, "1", "2"]
        refused.end()
        await cluster.pass_time(60)
        assert indexes(cluster) == ["0", "1", "2"]


def indexes(cluster: Cluster) -> list[str | None]:
    """The index that each pod has as a label."""
    return [labels_of(pod).get("training.kubeflow.org/replica-index") for pod in cluster.objects(PODS)]


async def test_labels_after_the_end(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that ends at once has labels on all its pods, too, whose logs are read by them."""
    monkeypatch.setattr(pod_labels, "MOST_AT_ONCE", 2)
    async with cluster.managed():
        await cluster.put(jax_job(5))
        await cluster.end("Completed")
        await cluster.run_pods("Succeeded", count=5)
        assert cluster.conditions(JAX_JOBS)[-1] == "Succeeded"
        assert len(labelled(cluster)) == len({*labelled(cluster)}) == 5


async def test_a_master_whose_workers_are_none(cluster: Cluster) -> None:
    """It trains alone."""
    job = pytorch_job(1)
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = 0
    async with cluster.managed():
        await cluster.put(job)
        assert cluster.only(TRAIN_JOBS)["spec"]["trainer"]["numNodes"] == 1
        await cluster.run_pods(count=1)
        assert cluster.conditions() == ["Created", "Running"]
        assert cluster.only(PYTORCH_JOBS)["status"]["replicaStatuses"].keys() == {"Master"}


async def test_scaling(elastic_cluster: Cluster) -> None:
    """A new number of workers is that of the nodes of the TrainJob."""
    cluster = elastic_cluster
    async with cluster.managed():
        await cluster.put(elastic_job(2))
        assert cluster.only(TRAIN_JOBS)["spec"]["trainer"]["numNodes"] == 2
        worker = cluster.only(PYTORCH_JOBS)["spec"]["pytorchReplicaSpecs"]["Worker"]
        await cluster.change(PYTORCH_JOBS, pytorchReplicaSpecs={"Worker": worker | {"replicas": 3}})
        assert cluster.only(TRAIN_JOBS)["spec"]["trainer"]["numNodes"] == 3


async def test_autoscaler(elastic_cluster: Cluster) -> None:
    """An elastic job with metrics has an autoscaler of its own, and its TrainJob has none."""
    cluster = elastic_cluster
    async with cluster.managed():
        await cluster.put(elastic_job(2, metrics=True))
        autoscaler = cluster.only(HORIZONTAL_POD_AUTOSCALERS)
        assert autoscaler["spec"]["scaleTargetRef"]["kind"] == "PyTorchJob"
        assert (autoscaler["spec"]["minReplicas"], autoscaler["spec"]["maxReplicas"]) == (1, 4)
        await cluster.change(PYTORCH_JOBS, runPolicy={"suspend": True})
        assert cluster.objects(HORIZONTAL_POD_AUTOSCALERS) == []


async def test_no_autoscaler_where_roles_differ(elastic_cluster: Cluster) -> None:
    """The number of pods is that of the runtime then, and an autoscaler would change what nobody reads."""
    async with elastic_cluster.managed():
        await elastic_cluster.put(parted_job(metrics=True))
        assert len(elastic_cluster.objects(TRAIN_JOBS)) == 1
        assert elastic_cluster.objects(HORIZONTAL_POD_AUTOSCALERS) == []


async def test_an_elastic_job_of_fixed_size() -> None:
    """TrainJobs of v1alpha1 have a fixed size; the author learns which field has no effect, once."""
    cluster = Cluster(Served("v1alpha1"))
    async with cluster.managed():
        await cluster.put(elastic_job(2, metrics=True))
        await cluster.run_pods(count=2)
        assert cluster.conditions() == ["Created", "Running"]
        assert cluster.objects(HORIZONTAL_POD_AUTOSCALERS) == []
        message = "spec.elasticPolicy: has no counterpart: the number of nodes is fixed"
        assert cluster.warnings == [("FieldsWithoutEffect", message)]
        runtime = cluster.only(TRAINING_RUNTIMES)
        assert runtime["spec"]["mlPolicy"] == {"torch": {}, "numNodes": 1}


async def test_suspension(cluster: Cluster) -> None:
    """A suspended job has no TrainJob; resumed, it has one of what it says by then."""
    async with cluster.managed():
        await cluster.put(pytorch_job(suspend=True))
        assert cluster.conditions() == ["Created", "Suspended"]
        assert cluster.objects(TRAIN_JOBS) == []
        specs = {"Master": replica(), "Worker": replica(replicas=4)}
        await cluster.change(PYTORCH_JOBS, runPolicy={"suspend": False}, pytorchReplicaSpecs=specs)
        assert cluster.conditions() == ["Created", "!Suspended"]
        assert cluster.only(TRAIN_JOBS)["spec"]["trainer"]["numNodes"] == 5
        await cluster.run_pods()
        await cluster.change(PYTORCH_JOBS, runPolicy={"suspend": True})
        assert cluster.conditions() == ["Created", "!Running", "Suspended"]
        assert cluster.objects(TRAIN_JOBS) == []
        assert cluster.objects(TRAINING_RUNTIMES) == []
        assert cluster.only(PYTORCH_JOBS)["status"]["replicaStatuses"]["Master"]["active"] == 1
        await cluster.put(*(each | {"status": {"phase": "Failed"}} for each in cluster.objects(PODS)))
        assert cluster.only(PYTORCH_JOBS)["status"]["replicaStatuses"]["Master"]["active"] == 0


async def test_pods_of_the_run_before(cluster: Cluster) -> None:
    """They neither make the next run Running nor count in it."""
    async with cluster.managed():
        await cluster.put(pytorch_job())
        await cluster.run_pods(count=3)
        await cluster.change(PYTORCH_JOBS, runPolicy={"suspend": True})
        await cluster.change(PYTORCH_JOBS, runPolicy={"suspend": False})
        await cluster.pass_time(1)
        assert len(cluster.objects(TRAIN_JOBS)) == 1
        assert cluster.conditions() == ["Created", "!Running", "!Suspended"]
        assert cluster.only(PYTORCH_JOBS)["status"]["replicaStatuses"]["Worker"]["active"] == 0


async def test_pods_of_another_train_job(cluster: Cluster) -> None:
    """Pods of a TrainJob that has the name of the job and is none of its own get no labels and do not count."""
    async with cluster.managed():
        await cluster.put(pytorch_job(suspend=True), pod("job", "node", 0, "Running", {"team": "a"}))
        assert cluster.only(PYTORCH_JOBS)["status"]["replicaStatuses"]["Master"]["active"] == 0
        assert "training.kubeflow.org/replica-index" not in labels_of(cluster.only(PODS))


async def test_what_queues_read_stays_with_the_job(cluster: Cluster) -> None:
    """Labels of Kueue do not go on to TrainJob and JobSet, which would be counted as well."""
    job = pytorch_job()
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "queue", "team": "a"}
    async with cluster.managed():
        await cluster.put(job)
        train_job = cluster.only(TRAIN_JOBS)
        assert (labels_of(train_job), train_job["spec"].get("labels")) == ({"team": "a"}, None)


@pytest.mark.parametrize(
    "policy", [pytest.param({}, id="right"), pytest.param({"ttlSecondsAfterFinished": "soon"}, id="cannot-be-read")]
)
async def test_a_job_of_another_manager(cluster: Cluster, policy: Object) -> None:
    """A job of MultiKueue is left alone, whatever else it says."""
    async with cluster.managed():
        await cluster.put(pytorch_job(managedBy="kueue.x-k8s.io/multikueue", **policy))
        assert cluster.objects(TRAIN_JOBS) == []
        assert cluster.conditions() == []


@pytest.mark.parametrize("evidence", [pytest.param(LEASE, id="lease"), pytest.param(WEBHOOKS, id="webhooks")])
async def test_beside_the_training_operator(cluster: Cluster, evidence: Object) -> None:
    """All jobs are the operator's while it is there; one that it does not take is said to be nobody's."""
    cluster.client.add(evidence)
    with capture_logs() as logs:
        async with cluster.managed():
            await cluster.put(pytorch_job())
            assert cluster.objects(TRAIN_JOBS) == []
            assert cluster.conditions() == []
    (warning,) = [line for line in logs if line["event"] == "leaves PyTorchJobs and JAXJobs to the Training Operator"]
    assert evidence["metadata"]["name"] in warning["evidence"]


async def test_a_job_that_the_operator_does_not_take(cluster: Cluster) -> None:
    """After a minute without a condition it is Unmanaged, and taken up when the operator is removed."""
    cluster.client.add(WEBHOOKS)
    async with cluster.managed():
        await cluster.put(pytorch_job())
        await cluster.pass_time(95)
        assert cluster.conditions() == ["Unmanaged"]
        cluster.client.remove(VALIDATING_WEBHOOK_CONFIGURATIONS, WEBHOOKS["metadata"]["name"])  # type: ignore[index]
        await cluster.pass_time(31)
        assert cluster.conditions() == ["Created"]
        assert len(cluster.objects(TRAIN_JOBS)) == 1


async def test_a_lease_that_nobody_renews(cluster: Cluster) -> None:
    """After a minute the operator counts as gone, whatever the clock of its machine says."""
    cluster.client.add(LEASE)
    async with cluster.managed():
        await cluster.put(pytorch_job())
        spec = LEASE["spec"] | {"renewTime": "2026-01-01T00:00:30.000000Z"}  # type: ignore[operator]
        await cluster.put(LEASE | {"spec": spec})
        await cluster.pass_time(50)
        assert cluster.objects(TRAIN_JOBS) == []
        await cluster.pass_time(60)
        assert len(cluster.objects(TRAIN_JOBS)) == 1
    assert cluster.objects(LEASES)


def pod_of_operator(job: Object) -> Object:
    """A pod that the Training Operator has made."""
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "job", "uid": job["metadata"]["uid"]}
    metadata = {
        "name": "job-master-0",
        "namespace": "default",
        "labels": {"training.kubeflow.org/job-name": "job"},
        "ownerReferences": [owner | {"controller": True}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"phase": "Running"}}


async def test_a_job_that_the_operator_runs(cluster: Cluster) -> None:
    """Nothing is written to it while the operator is there."""
    cluster.client.add(pytorch_job())
    cluster.client.add(pod_of_operator(cluster.only(PYTORCH_JOBS)))
    cluster.client.add(WEBHOOKS)
    async with cluster.managed():
        await cluster.pass_time(95)
        assert cluster.conditions() == []


async def test_a_job_that_the_operator_has_left(cluster: Cluster) -> None:
    """What it has counted is replaced by one write."""
    created = {"type": "Created", "status": "True", "reason": "PyTorchJobCreated", "message": ""}
    counts = {"Master": {"active": 1}, "Worker": {"active": 2}}
    status = {"conditions": [created], "replicaStatuses": counts, "lastReconcileTime": "2026-01-01T00:00:00Z"}
    cluster.client.add(pytorch_job() | {"status": status})
    async with cluster.managed():
        await cluster.pass_time(1)
        found = cluster.only(PYTORCH_JOBS)["status"]
        assert [each["active"] for each in found["replicaStatuses"].values()] == [0, 0]
        assert found["lastReconcileTime"] == "2026-01-01T00:00:00Z"
        cluster.client.requests.clear()
        await cluster.put(cluster.only(PYTORCH_JOBS))
        assert cluster.writes == []


async def test_a_finished_job_of_the_operator(cluster: Cluster) -> None:
    """It is cleaned up when the operator is removed before its time is over."""
    ended = {"type": "Succeeded", "status": "True", "reason": "PyTorchJobSucceeded", "message": ""}
    status = {"conditions": [ended], "completionTime": "2026-01-01T00:00:00Z"}
    cluster.client.add(pytorch_job(ttlSecondsAfterFinished=60) | {"status": status})
    cluster.client.add(WEBHOOKS)
    async with cluster.managed():
        await cluster.pass_time(31)
        assert len(cluster.objects(PYTORCH_JOBS)) == 1
        cluster.client.remove(VALIDATING_WEBHOOK_CONFIGURATIONS, WEBHOOKS["metadata"]["name"])  # type: ignore[index]
        await cluster.pass_time(61)
        assert cluster.objects(PYTORCH_JOBS) == []


async def test_pods_of_the_training_operator(cluster: Cluster) -> None:
    """A job that the operator has begun is not begun again while its pods are there."""
    cluster.client.add(pytorch_job())
    cluster.client.add(pod_of_operator(cluster.only(PYTORCH_JOBS)))
    async with cluster.managed():
        await cluster.pass_time(1)
        assert cluster.conditions() == ["Unmanaged"]
        assert cluster.objects(TRAIN_JOBS) == []
        cluster.client.remove(PODS, "job-master-0", "default")
        await cluster.pass_time(1)
        assert cluster.conditions() == ["Created"]


async def test_a_taken_name(cluster: Cluster) -> None:
    """A TrainJob of somebody else is left alone, and the author of the job learns of it."""
    async with cluster.managed():
        await cluster.put({"apiVersion": cluster.served(TRAIN_JOBS).api_version, "kind": "TrainJob",
                           "metadata": {"name": "job", "namespace": "default"},
                           "spec": {"runtimeRef": {"name": "none"}}})  # fmt: skip
        await cluster.put(pytorch_job())
        rule = "delete it, or give the PyTorchJob another name"
        message = f"TrainJob default/job exists and does not belong to PyTorchJob job: {rule}"
        assert ("FailedCreate", message) in cluster.warnings
        assert cluster.conditions() == ["Created"]


async def test_an_autoscaler_of_somebody_else(elastic_cluster: Cluster) -> None:
    """It is left alone, which the author of the job sees, until it is deleted."""
    cluster = elastic_cluster
    spec = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "job"}, "maxReplicas": 9}
    autoscaler = {
        "apiVersion": HORIZONTAL_POD_AUTOSCALERS.api_version,
        "kind": HORIZONTAL_POD_AUTOSCALERS.kind,
        "metadata": {"name": "job", "namespace": "default"},
        "spec": spec,
    }
    async with cluster.managed():
        await cluster.put(autoscaler, elastic_job(2, metrics=True))
        assert cluster.only(HORIZONTAL_POD_AUTOSCALERS)["spec"] == spec
        rule = "delete it, or give the PyTorchJob another name"
        name = "HorizontalPodAutoscaler default/job"
        assert cluster.warnings == [("FailedCreate", f"{name} exists and does not belong to PyTorchJob job: {rule}")]
        cluster.client.remove(HORIZONTAL_POD_AUTOSCALERS, "job", "default")
        await cluster.pass_time(60)
        assert cluster.only(HORIZONTAL_POD_AUTOSCALERS)["spec"]["scaleTargetRef"]["kind"] == "PyTorchJob"


async def test_an_autoscaler_without_its_label(elastic_cluster: Cluster) -> None:
    """It still belongs to the job, and gets its label back."""
    cluster = elastic_cluster
    async with cluster.managed():
        await cluster.put(elastic_job(2, metrics=True))
        autoscaler = cluster.only(HORIZONTAL_POD_AUTOSCALERS)
        labels = autoscaler["metadata"]["labels"]
        await cluster.put(autoscaler | {"metadata": autoscaler["metadata"] | {"labels": {}}})
        assert labels_of(cluster.only(HORIZONTAL_POD_AUTOSCALERS)) == labels
        assert cluster.warnings == []


EARLIER = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "job", "uid": "earlier", "controller": True}


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"ownerReferences": [EARLIER]}, id="of-an-earlier-job"),
        pytest.param({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}, id="being-deleted"),
    ],
)
@pytest.mark.parametrize("resource", [TRAIN_JOBS, TRAINING_RUNTIMES], ids=lambda resource: resource.kind)
async def test_what_still_goes_away(cluster: Cluster, resource: Any, metadata: Object) -> None:
    """A job that is deleted and submitted again waits without a warning for what the first one had."""
    metadata = {"name": "job", "namespace": "default"} | metadata
    served = cluster.served(resource)
    cluster.client.add({"apiVersion": served.api_version, "kind": served.kind, "metadata": metadata, "spec": {}})
    async with cluster.managed():
        await cluster.put(pytorch_job())
        assert cluster.warnings == []
        assert cluster.only(resource)["spec"] == {}
        cluster.client.remove(served, "job", "default")
        await cluster.pass_time(10)
        assert is_controlled_by(cluster.only(TRAIN_JOBS), cluster.only(PYTORCH_JOBS))
        assert cluster.warnings == []


async def test_what_the_cluster_refuses(cluster: Cluster) -> None:
    """The author learns why, and it is tried again."""
    async with cluster.managed():
        cluster.client.faults.fail(
            ForbiddenError(403, "exceeded quota"), verb="create", resource=cluster.served(TRAIN_JOBS)
        )
        await cluster.put(pytorch_job())
        assert ("FailedCreate", "exceeded quota") in cluster.warnings
        assert len(cluster.objects(TRAIN_JOBS)) == 1


async def test_a_namespace_that_is_being_deleted(cluster: Cluster) -> None:
    """What is to be created there is asked for once, and its author learns nothing new."""
    refusal = NamespaceTerminatingError(403, "unable to create new content in namespace default")
    async with cluster.managed():
        cluster.client.faults.fail(refusal, verb="create", times=None)
        await cluster.put(pytorch_job())
        await cluster.pass_time(25)
        assert cluster.warnings == []
        assert [request.verb for request in cluster.client.requests if not request.dry_run].count("create") == 1


async def test_a_job_that_is_wrong(cluster: Cluster) -> None:
    """Stored without the webhook, it fails with field and remedy."""
    job = jax_job()
    job["spec"]["jaxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["name"] = "main"
    async with cluster.managed():
        await cluster.put(job)
        assert cluster.conditions(JAX_JOBS) == ["Failed"]
        message = cluster.only(JAX_JOBS)["status"]["conditions"][0]["message"]
        assert "spec.jaxReplicaSpecs[Worker].template.spec.containers: Required value" in message


async def test_cleaning(cluster: Cluster) -> None:
    """With cleanPodPolicy All the TrainJob goes with its pods, and with a time to live the job itself."""
    async with cluster.managed():
        await cluster.put(pytorch_job(cleanPodPolicy="All", ttlSecondsAfterFinished=60))
        await cluster.end("Completed")
        assert cluster.objects(TRAIN_JOBS) == []
        assert len(cluster.objects(PYTORCH_JOBS)) == 1
        await cluster.pass_time(61)
        assert cluster.objects(PYTORCH_JOBS) == []


async def test_cleaning_of_workers_that_run_on(cluster: Cluster) -> None:
    """All that is set after the end deletes the TrainJob with the workers that still run."""
    async with cluster.managed():
        await cluster.put(pytorch_job())
        await cluster.run_pods(count=3)
        await cluster.run_pods("Succeeded")
        assert cluster.conditions() == ["Created", "!Running", "Succeeded"]
        assert len(cluster.objects(TRAIN_JOBS)) == 1
        await cluster.change(PYTORCH_JOBS, runPolicy={"cleanPodPolicy": "All"})
        assert cluster.objects(TRAIN_JOBS) == []


@pytest.mark.parametrize(
    ("job", "is_deleted"),
    [
        pytest.param(pytorch_job(), False, id="default"),
        pytest.param(pytorch_job(cleanPodPolicy="None"), False, id="None"),
        pytest.param(pytorch_job(cleanPodPolicy="All"), False, id="All"),
        pytest.param(pytorch_job(cleanPodPolicy="Running"), True, id="Running"),
    ],
)
async def test_workers_that_run_on(cluster: Cluster, job: Object, is_deleted: bool) -> None:
    """The job succeeds with its Master; a success policy deletes workers that still run, where they are not to stay."""
    async with cluster.managed():
        await cluster.put(job)
        await cluster.run_pods(count=3)
        (nodes,) = cluster.only(JOBSETS)["spec"]["replicatedJobs"]
        assert ("successPolicy" in nodes["template"]["spec"]) is is_deleted
        await cluster.run_pods("Succeeded")
        assert cluster.conditions() == ["Created", "!Running", "Succeeded"]
        counts = cluster.only(PYTORCH_JOBS)["status"]["replicaStatuses"]
        assert [counts[role]["succeeded"] for role in ("Master", "Worker")] == [1, 2]
        assert len(cluster.objects(TRAIN_JOBS)) == (job["spec"].get("runPolicy") != {"cleanPodPolicy": "All"})


async def test_workers_of_another_kind_run_on(cluster: Cluster) -> None:
    """The same where Master and workers differ, and are Jobs of their own."""
    job = pytorch_job()
    job["spec"]["pytorchReplicaSpecs"]["Worker"] = replica(replicas=2, metadata={"labels": {"team": "a"}})
    async with cluster.managed():
        await cluster.put(job)
        assert "successPolicy" not in cluster.only(JOBSETS)["spec"]
        await cluster.run_pods("Succeeded", job="master")
        assert cluster.conditions() == ["Created", "Succeeded"]


async def test_trouble_with_pods(cluster: Cluster) -> None:
    """The author of the job sees why pods wait, as an event of the job."""
    async with cluster.managed():
        await cluster.put(pytorch_job())
        waiting = {"name": "pytorch", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
        await cluster.run_pods("Pending")
        pod = cluster.only(PODS)
        await cluster.put(pod | {"status": {"phase": "Pending", "containerStatuses": [waiting]}})
        await cluster.pass_time(5)
        assert [reason for reason, _ in cluster.warnings] == ["ImagePullBackOff"]


async def test_definitions_that_are_not_there(cluster: Cluster) -> None:
    """The manager starts without them, and serves the jobs once they are installed."""
    cluster.client.withdraw(JAX_JOBS)
    async with cluster.managed():
        cluster.client.serve(JAX_JOBS)
        await cluster.pass_time(60)
        await cluster.put(jax_job())
        assert cluster.conditions(JAX_JOBS) == ["Created"]


async def test_a_master_that_ends_well_when_it_is_stopped(cluster: Cluster) -> None:
    """A worker has failed, so that JobSet deletes the Master, which exits with 0 on SIGTERM: the job has failed."""
    async with cluster.managed():
        await cluster.put(pytorch_job())
        await cluster.run_pods(count=3)
        master = cluster.objects(PODS)[0]
        deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["batch.kubernetes.io/job-tracking"]}
        await cluster.put(master | {"metadata": master["metadata"] | deleted, "status": {"phase": "Succeeded"}})
        assert cluster.conditions() == ["Created", "Running"]
        await cluster.end("Failed")
        assert cluster.conditions() == ["Created", "!Running", "Failed"]
