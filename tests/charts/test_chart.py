"""The Helm chart installs what config/ installs, and its values change what they say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import trainer
from hack.chart import v1_jobs
from hack.chart.manifests import OVERLAYS
from hack.chart.runtimes import value_of
from hack.generate_chart import CHART, files
from tests.charts.helm import NAMESPACE, HelmError, findings, needs_helm, rendered
from tests.config import kustomized
from tests.config.kustomized import of_kind
from tests.config.schemas import VERSIONS, check
from trainer.cli.manifests import runtimes
from trainer.configuration.configuration import load_configuration
from trainer.kube.objects import Object, labels_of, name_of
from trainer.v1alpha1.discovery import Version

IMAGE = f"trainer-operator:{trainer.__version__}"
EVERYTHING = {
    "controllers": {"v1": {"enabled": True}},
    "runtimes": {"defaultEnabled": True},
    "dataCache": {"runtimes": {"torchDistributedWithCache": {"enabled": True}}},
}
NO_RUNTIMES: Object = {"runtimes": {"defaultEnabled": False}}
both_versions = pytest.mark.parametrize("version", OVERLAYS)


def test_generated_files() -> None:
    """What follows from config/ and the code is what the generator writes, and nothing else lies there."""
    expected = dict(files())
    written = (
        CHART / "values.schema.json",
        *(
            CHART / "templates" / f"{name}.yaml"
            for name in ("dashboard", "history", "monitoring", "network-policy", "v1-jobs")
        ),
    )
    generated = [*(CHART / "files").rglob("*.yaml"), *(CHART / "templates").glob("v*/*"), *written]
    assert sorted(generated) == sorted(expected)
    stale = [path.name for path, text in expected.items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run python -m hack.generate_chart"


def test_version() -> None:
    """The chart has the version of the manager, whose image it runs."""
    chart = yaml.load((CHART / "Chart.yaml").read_text(), yaml.CSafeLoader)
    assert chart["version"] == chart["appVersion"] == trainer.__version__


@needs_helm
def test_lint() -> None:
    """`helm lint --strict` finds nothing."""
    assert findings() == []


@needs_helm
@both_versions
def test_it_is_what_kustomize_applies(version: Version) -> None:
    """But for the runtimes, the same objects: names, rights, webhooks, Deployment, configuration and CRDs."""
    (release,) = rendered({"apiVersion": version, **NO_RUNTIMES})
    overlay = [
        obj
        for obj in kustomized.rendered(OVERLAYS[version])
        if obj["kind"] != "Namespace" and labels_of(obj).get("app.kubernetes.io/component") != "runtimes"
    ]
    assert comparable(release) == comparable(overlay)


@needs_helm
def test_defaults() -> None:
    """Without values it is what `kubectl apply -k config/default` applies: the version, and its runtimes."""
    nothing, named = rendered({}, {"apiVersion": "v2alpha1", "runtimes": {"defaultEnabled": True}})
    assert nothing == named
    assert installed(nothing) == runtimes("v2alpha1")


@needs_helm
@both_versions
def test_v1_jobs(version: Version) -> None:
    """It is what kustomize applies, where it is wanted, and the manager serves them; some of it may be left out."""
    nothing, wanted, alone = rendered(
        {"apiVersion": version},
        {"apiVersion": version, "controllers": {"v1": {"enabled": True}}},
        {"apiVersion": version, "controllers": {"v1": {"enabled": True, "crds": False, "roles": False}}},
    )
    before, after = comparable(nothing), comparable(wanted)
    (key,) = (key for key, obj in after.items() if "leaderElection" in obj.get("data", {}))
    assert after[key]["data"].pop("controllers") == {"v1": {"enabled": True}}
    assert after == before | comparable(kustomized.rendered(v1_jobs.OVERLAYS[version]))
    left_out = {name_of(obj) for obj in wanted if obj not in alone}
    roles = {f"kubeflow-training-{name}" for name in ("admin", "edit", "view")}
    assert left_out == {"jaxjobs.kubeflow.org", "pytorchjobs.kubeflow.org"} | roles


@needs_helm
@both_versions
def test_the_dashboard(version: Version) -> None:
    """It is what kustomize applies, where it is wanted; with the right to impersonate where that is wanted as well."""
    nothing, page, all_of_it = rendered(
        {"apiVersion": version},
        {"apiVersion": version, "dashboard": {"enabled": True}},
        {"apiVersion": version, "dashboard": {"enabled": True, "impersonation": True}},
    )
    rights = kustomized.rendered("dashboard-impersonation")
    assert comparable(nothing) | comparable(kustomized.rendered("dashboard")) == comparable(page)
    assert comparable(page) | comparable(rights) == comparable(all_of_it)


@needs_helm
def test_values_of_the_dashboard() -> None:
    """Values reach its Deployment."""
    values = {
        "args": ["--cluster-name", "production"],
        "replicas": 2,
        "tolerations": [{"operator": "Exists"}],
        "podAnnotations": {"a/b": "c"},
        "volumes": [{"name": "x", "emptyDir": {}}],
        "volumeMounts": [{"name": "x", "mountPath": "/x"}],
        "resources": {"limits": {"memory": "1Gi"}},
    }
    (objects,) = rendered({"dashboard": {"enabled": True} | values})
    spec = next(obj["spec"] for obj in of_kind(objects, DEPLOYMENT) if name_of(obj) == "trainer-dashboard")
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert container["args"] == values["args"]
    assert spec["replicas"] == 2
    assert pod["tolerations"] == values["tolerations"]
    assert spec["template"]["metadata"]["annotations"]["a/b"] == "c"
    assert pod["volumes"][1:] == values["volumes"]
    assert container["volumeMounts"][1:] == values["volumeMounts"]
    assert container["resources"]["limits"] == {"memory": "1Gi"}
    assert container["image"] == IMAGE


@needs_helm
@both_versions
def test_the_history(version: Version) -> None:
    """It is what kustomize applies, where it is wanted: on a volume that stays, or with a Secret for PostgreSQL."""
    nothing, sqlite, postgresql = rendered(
        {"apiVersion": version},
        {"apiVersion": version, "history": {"enabled": True}},
        {"apiVersion": version, "history": {"enabled": True, "databaseSecret": "trainer-history-database"}},
    )
    assert comparable(nothing) | comparable(kustomized.rendered("history")) == comparable(sqlite)
    assert comparable(nothing) | comparable(kustomized.rendered("history-postgresql")) == comparable(postgresql)
    (claim,) = of_kind(sqlite, "PersistentVolumeClaim")
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


OPTIONAL: dict[str, Object] = {
    "prometheus": {"monitoring": {"serviceMonitor": {"enabled": True}, "alerts": {"enabled": True}}},
    "grafana": {"monitoring": {"dashboards": {"enabled": True}}},
    "networkpolicy": {"networkPolicy": {"enabled": True}},
}
"""What is off by default, by the directory of config/."""


@needs_helm
@both_versions
@pytest.mark.parametrize("overlay", OPTIONAL)
def test_what_stands_beside_the_manager(overlay: str, version: str) -> None:
    """Monitoring and network policies are what kustomize applies, where they are wanted."""
    nothing, wanted = rendered({"apiVersion": version}, {"apiVersion": version, **OPTIONAL[overlay]})
    directory = overlay if version == "v2alpha1" else f"{version}/{overlay}"
    assert comparable(nothing) | comparable(kustomized.rendered(directory)) == comparable(wanted)


@needs_helm
def test_prometheus_finds_the_metrics_of_the_released_names() -> None:
    """With the names of v1alpha1 the ServiceMonitor selects the one Service, by a name that its certificate has."""
    account = {"name": "prometheus", "namespace": "watch"}
    monitor = {"enabled": True, "labels": {"release": "stack"}, "account": account}
    (objects,) = rendered({"apiVersion": "v1alpha1", "monitoring": {"serviceMonitor": monitor}})
    (found,) = of_kind(objects, "ServiceMonitor")
    (service,) = of_kind(objects, "Service")
    (endpoint,) = found["spec"]["endpoints"]
    assert labels_of(found)["release"] == "stack"
    assert found["spec"]["selector"]["matchLabels"].items() <= labels_of(service).items()
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    assert endpoint["tlsConfig"]["serverName"] == f"{name_of(service)}.{NAMESPACE}.svc"
    assert endpoint["tlsConfig"]["ca"]["secret"]["name"] in {name_of(secret) for secret in of_kind(objects, "Secret")}
    subjects = [subject for obj in objects for subject in obj.get("subjects", ())]
    assert subjects.count({"kind": "ServiceAccount", **account}) == 2


@needs_helm
def test_alerts_link_to_the_page_of_a_value() -> None:
    """Every alert has its heading on the page that a value names, which must be an address."""
    alerts = {"enabled": True, "runbooks": "https://wiki.example.org/trainer"}
    (objects,) = rendered({"monitoring": {"alerts": alerts}})
    rules = [r for o in of_kind(objects, "PrometheusRule") for group in o["spec"]["groups"] for r in group["rules"]]
    links = {r["annotations"]["runbook_url"] for r in rules if "alert" in r}
    assert links == {f"https://wiki.example.org/trainer#{r['alert'].lower()}" for r in rules if "alert" in r}
    with pytest.raises(HelmError, match="runbooks"):
        rendered({"monitoring": {"alerts": alerts | {"runbooks": "wiki"}}})


@needs_helm
def test_values_of_the_history() -> None:
    """Values reach its Deployment and its volume claim."""
    values = {
        "args": ["--retain", "90d"],
        "tolerations": [{"operator": "Exists"}],
        "podAnnotations": {"a/b": "c"},
        "volumes": [{"name": "x", "emptyDir": {}}],
        "volumeMounts": [{"name": "x", "mountPath": "/x"}],
        "resources": {"limits": {"memory": "2Gi"}},
    }
    storage = {"size": "1Gi", "className": "fast"}
    both = rendered(
        {"history": {"enabled": True, "storage": storage} | values},
        {"history": {"enabled": True, "databaseSecret": "database-of-the-team"} | values},
    )
    for objects, own in zip(both, (1, 0), strict=True):
        template = next(o["spec"] for o in of_kind(objects, DEPLOYMENT) if name_of(o) == "trainer-history")["template"]
        pod, (container,) = template["spec"], template["spec"]["containers"]
        assert (container["args"], container["image"]) == (values["args"], IMAGE)
        assert pod["tolerations"] == values["tolerations"]
        assert template["metadata"]["annotations"]["a/b"] == "c"
        assert pod["volumes"][1 + own :] == values["volumes"]
        assert container["volumeMounts"][1 + own :] == values["volumeMounts"]
        assert container["resources"]["limits"] == {"memory": "2Gi"}
    (claim,) = of_kind(both[0], "PersistentVolumeClaim")
    assert (claim["spec"]["resources"]["requests"]["storage"], claim["spec"]["storageClassName"]) == ("1Gi", "fast")
    assert of_kind(both[1], "PersistentVolumeClaim") == []
    assert container["env"][0]["valueFrom"] == {"secretKeyRef": {"key": "url", "name": "database-of-the-team"}}


@needs_helm
@both_versions
def test_the_installer(version: Version) -> None:
    """The Job of the overlay, as a hook, with the runtimes in a file; it has the same account and rights."""
    (release,) = rendered({"apiVersion": version, **EVERYTHING})
    overlay = kustomized.rendered(OVERLAYS[version])
    mine, theirs = (
        comparable(obj for obj in objects if labels_of(obj).get("app.kubernetes.io/component") == "runtimes")
        for objects in (release, overlay)
    )
    (job_key,) = (key for key in theirs if key[0] == "Job")
    job, expected = mine.pop(job_key), theirs.pop(job_key)
    config_map = mine.pop(("ConfigMap", job_key[1]))
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (volume,), (mount,) = pod.pop("volumes"), container.pop("volumeMounts")
    option, file = container["command"][-2:]
    del container["command"][-2:]
    del job["metadata"]["annotations"]
    del expected["spec"]["template"]["spec"]["containers"][0]["env"]

    assert (option, file) == ("--file", f"{mount['mountPath']}/runtimes.yaml")
    assert volume["configMap"]["name"] == config_map["metadata"]["name"]
    assert config_map["data"].keys() == {"runtimes.yaml"}
    assert job == expected
    assert mine == theirs


@needs_helm
@both_versions
def test_schemas(version: Version) -> None:
    """Every field exists in the schema of its kind, in the oldest and the newest Kubernetes."""
    for obj in rendered({"apiVersion": version, **EVERYTHING})[0]:
        for kubernetes in VERSIONS:
            check(obj, kubernetes)


@needs_helm
@both_versions
def test_runtimes(version: Version) -> None:
    """All are installed but those that need more; each can be chosen alone, by the released name where it has one."""
    shipped = {name_of(obj): obj for obj in runtimes(version)}
    choices = [nested(f"{value_of(name)}.enabled", value=True) | {"apiVersion": version} for name in shipped]
    default, nothing, everything, *each = rendered(
        {"apiVersion": version},
        {"apiVersion": version, **NO_RUNTIMES},
        {"apiVersion": version, **EVERYTHING},
        *({**choice, "runtimes": choice.get("runtimes", {}) | NO_RUNTIMES["runtimes"]} for choice in choices),
    )
    assert of_kind(nothing, "Job") == []
    assert installed(default) == [obj for obj in shipped.values() if value_of(name_of(obj)).startswith("runtimes.")]
    assert installed(everything) == list(shipped.values())
    assert [installed(release) for release in each] == [[obj] for obj in shipped.values()]


def test_names_of_released_runtimes() -> None:
    """The values are called as in the released chart."""
    assert {value_of(name_of(obj)) for obj in runtimes("v1alpha1")} == {
        "runtimes.torchDistributed",
        "runtimes.deepspeedDistributed",
        "runtimes.mlxDistributed",
        "runtimes.fluxDistributed",
        "runtimes.jaxDistributed",
        "runtimes.xgboostDistributed",
        "runtimes.torchtuneDistributed.llama3_2_1B",
        "runtimes.torchtuneDistributed.llama3_2_3B",
        "runtimes.torchtuneDistributed.qwen2_5_1_5B",
        "dataCache.runtimes.torchDistributedWithCache",
    }


DIGEST = f"sha256:{'0' * 64}"
DEPLOYMENT = "Deployment"
POD = "spec.template.spec"
CONTAINER = f"{POD}.containers.0"


def case(value: str, given: object, path: str, expected: object = None, kind: str = DEPLOYMENT) -> Any:
    """A value, and what stands in an object of a kind then: the same unless something else is expected."""
    return pytest.param(value, given, kind, path, given if expected is None else expected, id=f"{value}-{kind}")


@needs_helm
@pytest.mark.parametrize(
    ("value", "given", "kind", "path", "expected"),
    [
        case("image.registry", "r.example.com/x", f"{CONTAINER}.image", f"r.example.com/x/{IMAGE}"),
        case("image.repository", "r.example.com/y", f"{CONTAINER}.image", f"r.example.com/y:{trainer.__version__}"),
        case("image.tag", "v9", f"{CONTAINER}.image", "trainer-operator:v9"),
        case("image.tag", "v9", f"{CONTAINER}.image", "trainer-operator:v9", kind="Job"),
        case("image.digest", DIGEST, f"{CONTAINER}.image", f"trainer-operator@{DIGEST}"),
        case("image", {"tag": "v9", "digest": DIGEST}, f"{CONTAINER}.image", f"trainer-operator:v9@{DIGEST}"),
        case("image.pullPolicy", "Always", f"{CONTAINER}.imagePullPolicy"),
        case("image.pullSecrets", [{"name": "x"}], f"{POD}.imagePullSecrets"),
        case("image.pullSecrets", [{"name": "x"}], f"{POD}.imagePullSecrets", kind="Job"),
        case("manager.replicas", 1, "spec.replicas"),
        case("manager.resources.limits.memory", "2Gi", f"{CONTAINER}.resources.limits.memory"),
        case("manager.nodeSelector", {"a": "b"}, f"{POD}.nodeSelector"),
        case("manager.tolerations", [{"operator": "Exists"}], f"{POD}.tolerations"),
        case("manager.affinity", {"nodeAffinity": {}}, f"{POD}.affinity"),
        case("manager.env", [{"name": "A", "value": "1"}], f"{CONTAINER}.env.2.name", "A"),
        case("manager.envFrom", [{"secretRef": {"name": "s"}}], f"{CONTAINER}.envFrom"),
        case("manager.volumes", [{"name": "x", "emptyDir": {}}], f"{POD}.volumes.2.name", "x"),
        case("manager.volumeMounts", [{"name": "x", "mountPath": "/x"}], f"{CONTAINER}.volumeMounts.2.name", "x"),
        case("manager.securityContext.runAsUser", 7, f"{CONTAINER}.securityContext.runAsUser"),
        case("manager.podAnnotations", {"a/b": "c"}, "spec.template.metadata.annotations.a/b", "c"),
        case("manager.labels", {"team": "ml"}, "spec.template.metadata.labels.team", "ml"),
        case("commonLabels", {"team": "ml"}, "metadata.labels.team", "ml", kind="Service"),
        case("webhook.failurePolicy", "Ignore", "webhooks.2.failurePolicy", kind="ValidatingWebhookConfiguration"),
        case("runtimes.installer.tolerations", [{"operator": "Exists"}], f"{POD}.tolerations", kind="Job"),
        case("runtimes.installer.resources.limits.memory", "1Gi", f"{CONTAINER}.resources.limits.memory", kind="Job"),
    ],
)
def test_values(value: str, given: object, kind: str, path: str, expected: object) -> None:
    """A value of the released chart's name is found where it belongs."""
    with_a_runtime = nested("dataCache.runtimes.torchDistributedWithCache.enabled", value=True)
    (objects,) = rendered({**nested(value, given), **with_a_runtime})
    found: Any = of_kind(objects, kind)[0]
    for step in path.split("."):
        found = found[int(step) if step.isdigit() else step]
    assert found == expected


@needs_helm
def test_images_and_labels_of_runtimes() -> None:
    """A mirror for the images of one runtime changes all its containers, and labels are added to its own."""
    image = {"registry": "mirror.example.com", "tag": "v3"}
    chosen = {"deepspeedDistributed": {"enabled": True, "image": image}, "commonLabels": {"a": "b"}}
    values = {"runtimes": NO_RUNTIMES["runtimes"] | chosen}
    ((runtime,),) = (installed(objects) for objects in rendered(values))
    jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    images = [c["image"] for job in jobs for c in job["template"]["spec"]["template"]["spec"]["containers"]]
    assert images == ["mirror.example.com/kubeflow/trainer/deepspeed-runtime:v3"] * 2
    assert labels_of(runtime) == {"trainer.kubeflow.org/framework": "deepspeed", "a": "b"}


@needs_helm
@both_versions
def test_image_of_initializers(version: Version) -> None:
    """One value names it for all steps before and after a training."""
    image = {"registry": "r.example.com", "digest": DIGEST}
    values = {"apiVersion": version, "runtimes": {"defaultEnabled": True, "initializer": {"image": image}}}
    ((*found,),) = (installed(objects) for objects in rendered(values))
    pods = [
        job["template"]["spec"]["template"]["spec"]
        for runtime in found
        for job in runtime["spec"]["template"]["spec"]["replicatedJobs"]
    ]
    steps = [
        container
        for pod in pods
        for container in pod["containers"]
        if "trainer_initializers" in container.get("command", ())
    ]
    assert len(steps) >= 6
    assert {container["image"] for container in steps} == {f"r.example.com/trainer-initializer@{DIGEST}"}


@needs_helm
@pytest.mark.parametrize(
    ("image", "expected"),
    [
        pytest.param({}, f"transformers-runtime:{trainer.__version__}", id="default"),
        pytest.param({"registry": "r.example.com", "tag": "2"}, "r.example.com/transformers-runtime:2", id="tag"),
        pytest.param({"digest": DIGEST}, f"transformers-runtime@{DIGEST}", id="digest"),
    ],
)
def test_image_of_transformers(image: Object, expected: str) -> None:
    """A value names it; without one it has the version of the chart."""
    values = {"runtimes": NO_RUNTIMES["runtimes"] | {"transformersDistributed": {"enabled": True, "image": image}}}
    ((found,),) = (installed(objects) for objects in rendered(values))
    assert f"'image': '{expected}'" in str(found)


@needs_helm
def test_configuration(tmp_path: Path) -> None:
    """What values for the released chart say is merged into the file; the manager reads it, and pods start anew."""
    given = {
        "leaderElection": {"leaseDuration": "30s"},
        "controller": {"groupKindConcurrency": {"trainJob": 7, "trainingRuntime": 1}},
        "certManagement": {"enable": True, "webhookServiceName": "", "webhookSecretName": ""},
        "clientConnection": {"qps": 20},
        "statusServer": {"port": 10443},
        "gangScheduling": "auto",
    }
    before, after = rendered({"apiVersion": "v1alpha1"}, {"apiVersion": "v1alpha1", "manager": {"config": given}})
    file = tmp_path / "configuration.yaml"
    file.write_text(of_kind(after, "ConfigMap")[0]["data"]["configuration.yaml"])
    configuration = load_configuration(file)
    assert configuration.leader_election.lease_duration.total_seconds() == 30
    assert configuration.leader_election.leader_elect
    assert configuration.controller.group_kind_concurrency["TrainJob.trainer.kubeflow.org"] == 7
    assert configuration.cert_management.webhook_service_name == "kubeflow-trainer-controller-manager"
    assert configuration.client_connection.qps == 20
    assert configuration.gang_scheduling == "auto"
    sums = [
        of_kind(objects, DEPLOYMENT)[0]["spec"]["template"]["metadata"]["annotations"]["checksum/configuration"]
        for objects in (before, after)
    ]
    assert sums[0] != sums[1]


@needs_helm
@pytest.mark.parametrize("version", ["v1alpha1", "v2alpha1"])
def test_no_sweeps(version: Version) -> None:
    """Who wants no sweeps gives the manager no rights for them, and has everything else."""
    values = {"apiVersion": version}
    without, whole = rendered(values | {"controllers": {"sweeps": {"enabled": False}}}, values)
    missing = [obj for obj in whole if obj not in without]
    assert without == [obj for obj in whole if obj not in missing]
    assert [obj["kind"] for obj in missing] == ["ClusterRole", "ClusterRoleBinding"]
    assert all(name_of(obj).endswith("-sweeps") for obj in missing)


@needs_helm
def test_definitions_of_somebody_else() -> None:
    """Without its CRDs the chart has everything else; with them, `helm uninstall` leaves them and all TrainJobs."""
    alone, whole = rendered({"crds": {"enabled": False}}, {})
    definitions = of_kind(whole, "CustomResourceDefinition")
    assert [obj["metadata"]["annotations"] for obj in definitions] == [{"helm.sh/resource-policy": "keep"}] * 4
    assert alone == [obj for obj in whole if obj not in definitions]


@needs_helm
@pytest.mark.parametrize(
    ("value", "given", "message"),
    [
        pytest.param("manager.replica", 1, "at '/manager': additional properties 'replica' not allowed", id="typo"),
        pytest.param("jobset.install", True, "at '': additional properties 'jobset' not allowed", id="not-here"),
        pytest.param("apiVersion", "v1", "at '/apiVersion': value must be one of 'v1alpha1', 'v2alpha1'", id="version"),
        pytest.param(
            "manager.config.controllers.v1",
            {"enabled": True},
            "at '/manager/config/controllers': additional properties 'v1' not allowed",
            id="v1-jobs",
        ),
        pytest.param("dashboard.enable", True, "at '/dashboard': additional properties 'enable'", id="dashboard"),
        pytest.param("webhook.failurePolicy", "Maybe", "at '/webhook/failurePolicy': value must be", id="policy"),
        pytest.param("manager.replicas", "two", "at '/manager/replicas': got string, want integer", id="type"),
        pytest.param(
            "manager.config.webhok", {}, "at '/manager/config': additional properties 'webhok'", id="configuration"
        ),
        pytest.param(
            "manager.config.gangScheduling",
            "kueue",
            "at '/manager/config/gangScheduling': value must be one of 'none', 'auto', 'workload', 'coscheduling'",
            id="gang-scheduler",
        ),
        pytest.param(
            "manager.config.certManagement.webhookServiceName",
            "mine",
            "at '/manager/config/certManagement/webhookServiceName': value must be ''",
            id="names",
        ),
    ],
)
def test_what_is_refused(value: str, given: object, message: str) -> None:
    """Values that mean nothing here are refused with their path."""
    with pytest.raises(HelmError) as caught:
        rendered(nested(value, given))
    assert message in str(caught.value)


def nested(path: str, value: object) -> Object:
    """Values in which one is set, by its path."""
    first, _, rest = path.partition(".")
    return {first: nested(rest, value) if rest else value}


def installed(objects: list[Object]) -> list[Object]:
    """The runtimes that the Job of a release applies."""
    (job,) = of_kind(objects, "Job")
    (config_map,) = (obj for obj in of_kind(objects, "ConfigMap") if name_of(obj) == name_of(job))
    return [obj for obj in yaml.load_all(config_map["data"]["runtimes.yaml"], yaml.CSafeLoader) if obj]


def comparable(objects: Any) -> dict[tuple[str, str], Object]:
    """Objects by kind and name, without what the two ways of installation do differently.

    The name of the release is in labels, a hash is in an annotation and not in names, the namespace is another one, the
    configuration has no comments, and what is empty is there or not.
    """
    found = {}
    for obj in objects:
        plain = normal(obj)
        if "configuration.yaml" in plain.get("data", {}):
            plain["data"] = normal(yaml.load(plain["data"]["configuration.yaml"], yaml.CSafeLoader))
        plain["metadata"].get("annotations", {}).pop("helm.sh/resource-policy", None)
        found[plain["kind"], plain["metadata"]["name"]] = without_empty(plain)
    return found


def normal(value: Any) -> Any:
    """The same with the strings of the overlay: its namespace, and its labels."""
    if isinstance(value, dict):
        ignored = {"app.kubernetes.io/instance", "checksum/configuration"}
        return {key: normal(inner) for key, inner in value.items() if key not in ignored}
    if isinstance(value, list):
        return [normal(inner) for inner in value]
    if not isinstance(value, str):
        return value
    for namespace in (NAMESPACE, "trainer-system", "kubeflow-system"):
        value = value.replace(namespace, "NAMESPACE")
    value = re.sub(r"^((?:kubeflow-)?trainer-(?:controller-manager|runtimes))-[a-z0-9]{10}$", r"\1", value)
    return "trainer" if value == "kubeflow-trainer" else value


def without_empty(value: Any) -> Any:
    """The same without fields whose value is empty."""
    if isinstance(value, dict):
        fields = ((key, without_empty(inner)) for key, inner in value.items())
        return {key: inner for key, inner in fields if inner not in ({}, [])}
    return [without_empty(inner) for inner in value] if isinstance(value, list) else value
