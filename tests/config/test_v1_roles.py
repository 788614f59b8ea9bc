"""What config/v1 lets the manager do besides, compared with what it does for v1 jobs."""

from __future__ import annotations

from itertools import product

from packages.v1_jobs.tests.controllers.conftest import Cluster
from packages.v1_jobs.tests.controllers.samples import elastic_job, jax_job, pytorch_job
from tests.config.kustomized import V1ALPHA1, of_kind, rendered
from tests.config.test_roles import VERBS, as_texts, grants, role
from trainer.api.kubeflow_v1 import JAX_JOBS, PYTORCH_JOBS
from trainer.kube.objects import Object, labels_of, name_of
from trainer.kube.resource import LEASES, VALIDATING_WEBHOOK_CONFIGURATIONS
from trainer_kube_testing import StreamingLists

ACCOUNT = "trainer-controller-manager-v1"
OF_ADMISSION = {"get pytorchjobs.kubeflow.org", "get jaxjobs.kubeflow.org"}
OF_SERVERS = {"patch validatingwebhookconfigurations.admissionregistration.k8s.io"}
OF_THE_API_SERVER = {"update pytorchjobs/finalizers.kubeflow.org", "update jaxjobs/finalizers.kubeflow.org"}


def v1_role() -> Object:
    """The role."""
    return role("v1", "ClusterRole", ACCOUNT)


async def test_the_role_allows_what_the_manager_does() -> None:
    """What it does for v1 jobs is allowed, and nothing is that it does not do."""
    used: set[tuple[str, str, str]] = set()
    for streaming in (StreamingLists.SERVED, StreamingLists.REFUSED):
        used |= await requests_of_lives(streaming)
    allowed, anyway = grants(v1_role()), grants(role("rbac", "ClusterRole"))
    assert as_texts(used - allowed - anyway) == set()
    assert as_texts(allowed - used) == OF_ADMISSION | OF_SERVERS | OF_THE_API_SERVER


async def requests_of_lives(streaming: StreamingLists) -> set[tuple[str, str, str]]:
    """Group, resource and verb of all requests for jobs that meet whatever jobs meet."""
    cluster = Cluster()
    cluster.client.faults.streaming_lists = streaming
    await live(cluster)
    found = set()
    for request in cluster.client.requests:
        if request.verb == "update":  # the user's
            continue
        subresource = request.subresource and f"/{request.subresource}"
        making = {"create"} if request.verb == "apply" and not subresource else set()
        verbs = VERBS.get(request.verb, {request.verb}) | making
        found |= set(product([request.resource.group], [f"{request.resource.plural}{subresource}"], verbs))
    return found


async def live(cluster: Cluster) -> None:
    """Jobs meet whatever jobs meet."""
    async with cluster.managed():
        for job, resource in ((elastic_job(metrics=True), PYTORCH_JOBS), (jax_job(name="jax"), JAX_JOBS)):
            policy = {"ttlSecondsAfterFinished": 1, "cleanPodPolicy": "All"}
            await cluster.put(job | {"spec": job["spec"] | {"runPolicy": policy}})
            await cluster.run_pods()
            if resource == PYTORCH_JOBS:
                worker = cluster.only(resource)["spec"]["pytorchReplicaSpecs"]["Worker"]
                await cluster.change(resource, pytorchReplicaSpecs={"Worker": worker | {"replicas": 3}})
                elastic = cluster.only(resource)["spec"]["elasticPolicy"]
                await cluster.change(resource, elasticPolicy=elastic | {"maxReplicas": 5})
            await cluster.end("Completed")
            await cluster.pass_time(5)
            cluster.forget_workloads()
        await cluster.put(pytorch_job(name="suspended"))
        await cluster.change(PYTORCH_JOBS, runPolicy={"suspend": True})


PEOPLE = ("kubeflow-training-admin", "kubeflow-training-edit", "kubeflow-training-view")


def test_roles_for_people() -> None:
    """Kubeflow's roles take them up by their labels, as the Training Operator's; editing is jobs and their size."""
    admin, edit, view = (role("v1", "ClusterRole", name) for name in PEOPLE)
    (selector,) = admin["aggregationRule"]["clusterRoleSelectors"]
    assert selector["matchLabels"].items() <= labels_of(edit).items()
    for each, target in zip((admin, edit, view), ("admin", "edit", "view"), strict=True):
        assert labels_of(each)[f"rbac.authorization.kubeflow.org/aggregate-to-kubeflow-{target}"] == "true"
    changes = {text for text in as_texts(grants(edit)) if text.split()[0] not in {"get", "list", "watch"}}
    kinds = ("pytorchjobs", "jaxjobs")
    assert changes == {
        *(f"{verb} {kind}.kubeflow.org" for kind in kinds for verb in ("create", "update", "patch", "delete")),
        *(f"{verb} {kind}/scale.kubeflow.org" for kind in kinds for verb in ("update", "patch")),
    }
    assert {verb for _, _, verb in grants(view)} == {"get", "list", "watch"}
    assert as_texts(grants(view)) < as_texts(grants(edit))


def test_the_names_of_the_released_trainer() -> None:
    """For v1alpha1 all of it is the same but for the names and the namespace of the manager, which exists."""
    manager = rendered(V1ALPHA1)
    found = rendered("v1alpha1/v1")
    account = {"kind": "ServiceAccount", "name": f"kubeflow-{ACCOUNT[:-3]}", "namespace": "kubeflow-system"}
    (binding,) = of_kind(found, "ClusterRoleBinding")
    assert binding["subjects"] == [account]
    assert binding["roleRef"]["name"] in {name_of(obj) for obj in of_kind(found, "ClusterRole")}
    assert account["name"] in {name_of(obj) for obj in of_kind(manager, "ServiceAccount")}
    (webhooks,) = of_kind(found, "ValidatingWebhookConfiguration")
    services = [each["clientConfig"]["service"] for each in webhooks["webhooks"]]
    names = {(each["name"], each["namespace"]) for each in services}
    assert names == {(name_of(obj), "kubeflow-system") for obj in of_kind(manager, "Service")}
    rules = [obj["rules"] for obj in of_kind(found, "ClusterRole") if name_of(obj) not in PEOPLE]
    assert rules == [v1_role()["rules"]]


def test_nothing_is_granted_wholesale() -> None:
    """Leases and webhook configurations are named; pods get labels, and can neither be made nor deleted."""
    rules = v1_role()["rules"]
    for resource in (LEASES, VALIDATING_WEBHOOK_CONFIGURATIONS):
        found = [rule for rule in rules if resource.plural in rule["resources"]]
        assert found
        assert all(rule.get("resourceNames") for rule in found)
        changed = [name for rule in found if "patch" in rule["verbs"] for name in rule["resourceNames"]]
        assert [name for name in changed if not name.endswith(".trainer.kubeflow.org")] == []
    assert [rule["verbs"] for rule in rules if "pods" in rule["resources"]] == [["patch"]]
    assert not [rule for rule in rules if "*" in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]]


def test_the_default_installation_has_no_right_for_them() -> None:
    """Nothing of config/default knows the kinds."""
    texts = [str(obj) for obj in of_kind(rendered("default"), "ClusterRole", "Role")]
    assert texts
    assert not [text for text in texts if "jaxjobs" in text or "pytorchjobs" in text]
