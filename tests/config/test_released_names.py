"""config/v1alpha1 goes by the names of Kubeflow Trainer (Go): what clients look up, and what lets it take its place."""

from __future__ import annotations

import pytest

import trainer
from tests.config.kustomized import CONFIG, V1ALPHA1, of_kind, rendered
from tests.config.test_roles import as_texts, grants
from trainer.configuration.configuration import load_configuration
from trainer.kube.objects import Object, labels_of, name_of

MANAGER = "kubeflow-trainer-controller-manager"
AGGREGATE = "rbac.authorization.kubeflow.org/aggregate-to-{}"


@pytest.fixture(scope="module")
def objects() -> list[Object]:
    """What config/v1alpha1/default applies."""
    return rendered(V1ALPHA1)


def find(objects: list[Object], kind: str, name: str) -> Object:
    """The object of a kind and name."""
    (found,) = [obj for obj in of_kind(objects, kind) if name_of(obj) == name]
    return found


def test_the_deployment_takes_the_place_of_the_released_one(objects: list[Object]) -> None:
    """It has the released name and selector, which nobody can change, so that applying it stops the other manager."""
    deployment = find(objects, "Deployment", MANAGER)
    assert deployment["spec"]["selector"]["matchLabels"] == {
        "app.kubernetes.io/name": "trainer",
        "app.kubernetes.io/component": "manager",
        "app.kubernetes.io/part-of": "kubeflow",
    }
    assert [container["name"] for container in deployment["spec"]["template"]["spec"]["containers"]] == ["manager"]


def test_lease_service_and_secret(objects: list[Object]) -> None:
    """The configuration that is mounted names the released Lease, Service and Secret, and the role allows them."""
    configuration = load_configuration(CONFIG / "v1alpha1" / "manager" / "configuration.yaml")
    certificates = configuration.cert_management
    election = configuration.leader_election
    service = find(objects, "Service", certificates.webhook_service_name)
    secret = find(objects, "Secret", certificates.webhook_secret_name)
    assert (election.leader_elect, election.resource_name) == (True, "trainer.kubeflow.org")
    assert (name_of(service), name_of(secret)) == (MANAGER, "kubeflow-trainer-webhook-cert")
    assert {port["port"]: port["targetPort"] for port in service["spec"]["ports"]} == {
        443: "webhook",
        8443: "metrics",
        configuration.status_server.port: "status-server",
    }
    resource_names = {
        (resource, name)
        for role in of_kind(objects, "Role")
        for rule in role["rules"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", ())
    }
    assert {("leases", "trainer.kubeflow.org"), ("secrets", name_of(secret))} <= resource_names


def test_webhook_configurations(objects: list[Object]) -> None:
    """They replace the released ones, and call the released Service."""
    configurations = of_kind(objects, "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    assert {name_of(obj) for obj in configurations} == {
        "defaulter.trainer.kubeflow.org",
        "validator.trainer.kubeflow.org",
    }
    webhooks = [webhook for obj in configurations for webhook in obj["webhooks"]]
    assert {webhook["clientConfig"]["service"]["name"] for webhook in webhooks} == {MANAGER}


def test_the_namespace_is_shared(objects: list[Object]) -> None:
    """Pods of others in it, such as JobSet's, are not restricted."""
    labels = labels_of(find(objects, "Namespace", "kubeflow-system"))
    assert [label for label in labels if label.startswith("pod-security.kubernetes.io/")] == []


def test_roles_for_people(objects: list[Object]) -> None:
    """Kubeflow's roles take them up by their labels; editing is TrainJobs and sweeps, and never runtimes."""
    admin, edit, view = (find(objects, "ClusterRole", f"kubeflow-trainer-{name}") for name in ("admin", "edit", "view"))
    (selector,) = admin["aggregationRule"]["clusterRoleSelectors"]
    assert selector["matchLabels"].items() <= labels_of(edit).items()
    for role, target in ((admin, "kubeflow-admin"), (edit, "kubeflow-edit"), (view, "kubeflow-view")):
        assert labels_of(role)[AGGREGATE.format(target)] == "true"
    changes = {verb for verb in as_texts(grants(edit)) if verb.split()[0] not in {"get", "list", "watch"}}
    assert changes == {
        f"{verb} {kind}.trainer.kubeflow.org"
        for verb in ("create", "update", "patch", "delete")
        for kind in ("trainjobs", "optimizationjobs")
    }
    assert {verb for _, _, verb in grants(view)} == {"get", "list", "watch"}


def test_what_everybody_may_read(objects: list[Object]) -> None:
    """Authenticated users may read the version of the control plane and ClusterTrainingRuntimes, and nothing else."""
    bound = {
        (binding["roleRef"]["kind"], binding["roleRef"]["name"])
        for binding in of_kind(objects, "RoleBinding", "ClusterRoleBinding")
        for subject in binding["subjects"]
        if subject["kind"] == "Group"
    }
    assert bound == {("Role", "kubeflow-trainer-public"), ("ClusterRole", "kubeflow-trainer-view-cluster-runtimes")}
    given = [obj for obj in objects if (obj["kind"], name_of(obj)) in bound]
    assert as_texts(grants(*given)) == {
        f"{verb} {resource}"
        for verb in ("get", "list", "watch")
        for resource in ("configmaps", "clustertrainingruntimes.trainer.kubeflow.org")
    }


def test_version(objects: list[Object]) -> None:
    """The image, and the version that the SDK reads, are those of this manager."""
    images = {
        container["image"]
        for obj in of_kind(objects, "Deployment", "Job")
        for container in obj["spec"]["template"]["spec"]["containers"]
    }
    assert images == {f"trainer-operator:{trainer.__version__}"}
    data = find(objects, "ConfigMap", "kubeflow-trainer-public")["data"]
    assert data == {"kubeflow_trainer_version": f"trainer-operator-{trainer.__version__}"}
