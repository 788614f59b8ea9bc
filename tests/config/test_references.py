"""Whatever an object of config/ names exists there, and selectors select what they are meant to."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.config.kustomized import CONFIG, kustomize, of_kind, pod_templates, rendered
from trainer.cli.manifests import runtimes
from trainer.configuration.sections import StatusServerConfiguration
from trainer.kube.objects import Object, labels_of, name_of

NAMESPACES = {"": "trainer-system", "v1alpha1/": "kubeflow-system"}
"""By the folder of config/ that has the manager for a version of the API."""
RELEASED = {
    "trainer-system:trainer-controller-manager": "kubeflow-system:kubeflow-trainer-controller-manager",
    "trainer-webhook-certificates": "kubeflow-trainer-webhook-cert",
    "trainer-system": "kubeflow-system",
}
"""Names of config/default, by what config/v1alpha1/default has instead."""


@pytest.fixture
def default() -> list[Object]:
    """What config/default applies."""
    return rendered("default")


@pytest.fixture(params=["default", "v1alpha1/manager"])
def installed(request: pytest.FixtureRequest) -> list[Object]:
    """The manager for each version of the API, with all that it needs besides the CRDs."""
    return rendered(str(request.param))


def names(objects: list[Object], kind: str) -> set[str]:
    """Of all objects of a kind."""
    return {name_of(obj) for obj in of_kind(objects, kind)}


def only(objects: list[Object], kind: str) -> Object:
    """The only object of a kind."""
    (obj,) = of_kind(objects, kind)
    return obj


def ports(template: Object) -> dict[str, int]:
    """Ports of a pod by name."""
    return {
        port["name"]: port["containerPort"]
        for container in template["spec"]["containers"]
        for port in container.get("ports", ())
    }


def values_of(value: Any, key: str) -> Iterator[Any]:
    """All values that a key has anywhere in an object."""
    if isinstance(value, dict):
        if key in value:
            yield value[key]
        for inner in value.values():
            yield from values_of(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from values_of(inner, key)


def test_pods(installed: list[Object]) -> None:
    """Accounts, ConfigMaps, Secrets, volumes and ports that pods name are there."""
    for owner, template in pod_templates(installed):
        pod = template["spec"]
        assert pod["serviceAccountName"] in names(installed, "ServiceAccount")
        assert {source["name"] for source in values_of(pod, "configMap")} <= names(installed, "ConfigMap")
        assert {source["secretName"] for source in values_of(pod, "secret")} <= names(installed, "Secret")
        mounts = {mount["name"] for mounts in values_of(pod, "volumeMounts") for mount in mounts}
        assert mounts == {volume["name"] for volume in pod.get("volumes", ())}, name_of(owner)
        assert {probe["port"] for probe in values_of(pod, "httpGet")} <= ports(template).keys()


def test_the_configuration_is_where_it_is_read(installed: list[Object]) -> None:
    """--config names the file that the ConfigMap is mounted as."""
    (container,) = only(installed, "Deployment")["spec"]["template"]["spec"]["containers"]
    path = container["command"][container["command"].index("--config") + 1]
    (mount,) = (mount for mount in container["volumeMounts"] if mount["name"] == "configuration")
    assert [f"{mount['mountPath']}/{key}" for key in only(installed, "ConfigMap")["data"]] == [path]


def test_selectors_of_the_manager(installed: list[Object]) -> None:
    """Services, budget and spreading select the manager's pods, and not those of the Job."""
    deployment, job = only(installed, "Deployment"), only(installed, "Job")
    selectors = [
        deployment["spec"]["selector"]["matchLabels"],
        only(installed, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        *(service["spec"]["selector"] for service in of_kind(installed, "Service")),
        *(s["matchLabels"] for s in values_of(deployment["spec"]["template"], "labelSelector")),
    ]
    assert len(selectors) >= 5
    for selector in selectors:
        assert selector.items() <= labels_of(deployment["spec"]["template"]).items()
        assert not selector.items() <= labels_of(job["spec"]["template"]).items()


def test_ports_of_services(default: list[Object]) -> None:
    """Services lead to ports of the manager, by name."""
    known = ports(only(default, "Deployment")["spec"]["template"])
    found = {
        name_of(service): {port["port"]: port["targetPort"] for port in service["spec"]["ports"]}
        for service in of_kind(default, "Service")
    }
    status_port = StatusServerConfiguration().port
    assert found == {
        "trainer-webhook": {443: "webhook", status_port: "status-server"},
        "trainer-controller-manager-metrics": {8443: "metrics"},
    }
    assert known == {"health": 8081, "metrics": 8443, "webhook": 9443, "status-server": status_port}


def test_webhooks_have_their_service(installed: list[Object]) -> None:
    """The API server finds the Service that the configurations name."""
    webhooks = [webhook for obj in installed for webhook in obj.get("webhooks", ())]
    services = {(service["metadata"]["namespace"], name_of(service)) for service in of_kind(installed, "Service")}
    assert webhooks
    for webhook in webhooks:
        reference = webhook["clientConfig"]["service"]
        assert (reference["namespace"], reference["name"]) in services


def test_bindings(installed: list[Object]) -> None:
    """Every binding gives a role that is there to an account that is there, and every role and account is used."""
    bindings = of_kind(installed, "RoleBinding", "ClusterRoleBinding")
    roles = {(obj["kind"], name_of(obj)) for obj in of_kind(installed, "Role", "ClusterRole")}
    accounts = {(obj["metadata"]["namespace"], name_of(obj)) for obj in of_kind(installed, "ServiceAccount")}
    subjects = [subject for binding in bindings for subject in binding["subjects"]]
    assert {(binding["roleRef"]["kind"], binding["roleRef"]["name"]) for binding in bindings} == roles
    assert {(subject["namespace"], subject["name"]) for subject in subjects} == accounts
    assert {subject["kind"] for subject in subjects} == {"ServiceAccount"}


def test_the_installer_may_apply_runtimes(default: list[Object]) -> None:
    """The account of the Job can create and change cluster-wide runtimes and replace those that are shipped."""
    (role,) = (obj for obj in of_kind(default, "ClusterRole") if name_of(obj) == "trainer-runtimes")
    assert role["rules"] == [
        {
            "apiGroups": ["trainer.kubeflow.org"],
            "resources": ["clustertrainingruntimes"],
            "verbs": ["create", "patch"],
        },
        {
            "apiGroups": ["trainer.kubeflow.org"],
            "resources": ["clustertrainingruntimes"],
            "resourceNames": sorted({name_of(each) for each in [*runtimes("v2alpha1"), *runtimes("v1alpha1")]}),
            "verbs": ["get", "delete"],
        },
    ]


def test_another_image_is_another_job(tmp_path: Path) -> None:
    """The template of a Job cannot change: an upgrade is one apply, and applying the same again changes nothing."""
    names = [installer(tmp_path, tag) for tag in ("1.0", "1.1", "1.1")]
    assert names[0] != names[1] == names[2]
    assert all(re.fullmatch(r"trainer-runtimes-[a-z0-9]{10}", name) for name in names)


def installer(directory: Path, tag: str) -> str:
    """Name of the Job in a kustomization as install.md shows it, with an image of this tag."""
    made = directory / f"{tag}-{len(list(directory.iterdir()))}"
    made.mkdir()
    base = os.path.relpath(CONFIG / "default", made.resolve())
    images = [{"name": "trainer-operator", "newName": "registry.example.com/trainer-operator", "newTag": tag}]
    (made / "kustomization.yaml").write_text(yaml.safe_dump({"resources": [base], "images": images}))
    job = only(kustomize(made), "Job")
    assert not job["metadata"].get("annotations")
    return name_of(job)


def test_network_policies(default: list[Object]) -> None:
    """All pods are closed; the manager's are open at the ports that others ask, and all reach the API server."""
    manager, job = (labels_of(template) for _, template in pod_templates(default))
    policies = {name_of(policy): policy["spec"] for policy in rendered("networkpolicy")}
    for policy in policies.values():
        assert policy["podSelector"]["matchLabels"].items() <= manager.items()
    for name in ("trainer-default-deny", "trainer-egress"):
        assert policies[name]["podSelector"]["matchLabels"].items() <= job.items()
    for name in ("trainer-webhook", "trainer-metrics", "trainer-status-server"):
        assert not policies[name]["podSelector"]["matchLabels"].items() <= job.items()
    opened = {
        port["port"] for policy in policies.values() for rule in policy.get("ingress", ()) for port in rule["ports"]
    }
    assert (
        opened
        == {"webhook", "metrics", "status-server"}
        <= ports(only(default, "Deployment")["spec"]["template"]).keys()
    )


@pytest.mark.parametrize(("overlay", "namespace"), NAMESPACES.items())
def test_prometheus_may_find_and_read_the_metrics(overlay: str, namespace: str) -> None:
    """One account gets both roles: to discover what the ServiceMonitor selects, where that is, and to read /metrics."""
    objects = rendered(f"{overlay}prometheus")
    discovery, reading = only(objects, "RoleBinding"), only(objects, "ClusterRoleBinding")
    role, cluster_role = only(objects, "Role"), only(objects, "ClusterRole")
    assert discovery["subjects"] == reading["subjects"]
    assert discovery["roleRef"]["name"] == name_of(role)
    assert reading["roleRef"]["name"] == name_of(cluster_role)
    namespaces = {obj["metadata"]["namespace"] for obj in (discovery, role, only(objects, "ServiceMonitor"))}
    assert namespaces == {namespace}
    discovered = {resource for rule in role["rules"] for resource in rule["resources"]}
    assert discovered == {"services", "endpoints", "endpointslices", "pods"}
    assert all(rule["verbs"] == ["list", "watch"] for rule in role["rules"])


def test_the_installer_ends(default: list[Object]) -> None:
    """The Job waits as long as its command does, and a pod that never starts is not waited for forever."""
    job = only(default, "Job")["spec"]
    (container,) = job["template"]["spec"]["containers"]
    timeout = int(container["command"][container["command"].index("--timeout") + 1])
    assert timeout < job["activeDeadlineSeconds"] <= 3600
    assert job["ttlSecondsAfterFinished"] > 0


def test_the_certificate_has_the_name_that_prometheus_expects(default: list[Object]) -> None:
    """serverName of the ServiceMonitor is one of the further names that the shipped configuration asks for."""
    (endpoint,) = only(rendered("prometheus"), "ServiceMonitor")["spec"]["endpoints"]
    configuration = yaml.safe_load(only(default, "ConfigMap")["data"]["configuration.yaml"])
    assert endpoint["tlsConfig"]["serverName"] in configuration["webhook"]["hosts"]


@pytest.mark.parametrize("overlay", NAMESPACES)
def test_prometheus_finds_the_metrics(overlay: str) -> None:
    """The ServiceMonitor selects the Service of the metrics alone, and trusts the certificate that is served there."""
    monitor = only(rendered(f"{overlay}prometheus"), "ServiceMonitor")["spec"]
    manager = rendered(f"{overlay}default")
    services = of_kind(manager, "Service")
    selected = [each for each in services if monitor["selector"]["matchLabels"].items() <= labels_of(each).items()]
    (endpoint,) = monitor["endpoints"]
    (metrics,) = selected
    assert endpoint["port"] in {port["name"] for port in metrics["spec"]["ports"]}
    assert endpoint["relabelings"] == [{"targetLabel": "job", "replacement": "trainer"}]
    assert endpoint["tlsConfig"]["ca"]["secret"]["name"] in names(manager, "Secret")
    assert endpoint["tlsConfig"]["serverName"] == f"{name_of(metrics)}.{metrics['metadata']['namespace']}.svc"


@pytest.mark.parametrize("overlay", ["admissionpolicy", "grafana", "networkpolicy"])
def test_what_is_applied_besides_has_the_names_of_v1alpha1(overlay: str) -> None:
    """It differs from that for v2alpha1 in the namespace and the names of the manager, and in nothing else."""
    text = json.dumps(rendered(overlay))
    for name, released in RELEASED.items():
        text = text.replace(name, released)
    assert rendered(f"v1alpha1/{overlay}") == json.loads(text)
