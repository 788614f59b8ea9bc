"""Pod templates: what a schema cannot say about them."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.api.pod_template import pod_template_errors
from trainer.kube.objects import Object


def template(metadata: Object | None = None, **spec: Any) -> Object:
    """A pod template of one container."""
    made: Object = {"spec": {"containers": [{"name": "a", "image": "i"}]} | spec}
    return made if metadata is None else made | {"metadata": metadata}


def container(**fields: Any) -> Object:
    """A pod template of one container with these fields."""
    return template(containers=[{"name": "a", "image": "i"} | fields])


def node_affinity(**expression: Any) -> Object:
    """A pod template that asks for nodes with a label."""
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return template(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}})


EXPRESSION = (
    "t.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
    ".matchExpressions[0]"
)
POD_FIELDS = (
    '"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", '
    '"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs", '
    "\"metadata.labels['KEY']\", \"metadata.annotations['KEY']\""
)
VALUE_SOURCES = "configMapKeyRef, fieldRef, fileKeyRef, resourceFieldRef, secretKeyRef"


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        pytest.param({}, "t.spec: Required value", id="empty"),
        pytest.param(template(contaners=[]), "t.spec.contaners: Unknown field: did you mean containers?", id="typo"),
        pytest.param(
            template(initContainers=[{"name": "a"}]),
            't.spec.containers[0].name: Duplicate value: "a"',
            id="name-of-an-init-container",
        ),
        pytest.param(
            container(env=[{"name": "A", "valueFrom": {}}]),
            "t.spec.containers[0].env[0].valueFrom: Invalid value: "
            f"must have exactly one of {VALUE_SOURCES}; it has none",
            id="no-source",
        ),
        pytest.param(
            container(envFrom=[{"prefix": "P_"}]),
            "t.spec.containers[0].envFrom[0]: Invalid value: "
            "must have exactly one of configMapRef, secretRef; it has none",
            id="env-from-nothing",
        ),
        pytest.param(
            container(envFrom=[{"secretRef": {}}]),
            "t.spec.containers[0].envFrom[0].secretRef.name: Required value",
            id="env-from-nameless",
        ),
        pytest.param(
            container(resources={"limits": {"nvidia.com/gpu": "500m"}}),
            't.spec.containers[0].resources.limits[nvidia.com/gpu]: Invalid value: "500m": '
            "must be an integer: this resource has whole units only",
            id="half-a-gpu",
        ),
        pytest.param(
            container(resources={"limits": {"gpu": 1}}),
            't.spec.containers[0].resources.limits[gpu]: Invalid value: "gpu": '
            "must be a standard resource (cpu, memory ...) or have a domain: nvidia.com/gpu",
            id="resource-name",
        ),
        pytest.param(
            container(ports=[{"name": "p", "containerPort": 1}, {"name": "p", "containerPort": 2}]),
            't.spec.containers[0].ports[1].name: Duplicate value: "p"',
            id="port-name",
        ),
        pytest.param(
            container(ports=[{"name": "8080", "containerPort": 8080}]),
            't.spec.containers[0].ports[0].name: Invalid value: "8080": must contain a letter, and not two - in a row',
            id="number-as-port-name",
        ),
        pytest.param(
            container(envFrom=[{"secretRef": {"name": "A B"}}]),
            't.spec.containers[0].envFrom[0].secretRef.name: Invalid value: "A B": '
            "must consist of lower-case letters, digits, - and ., and start and end with a letter or digit",
            id="secret-name",
        ),
        pytest.param(
            template(volumes=[{"name": "v", "hostPath": {"path": "/data/../etc"}}]),
            "t.spec.volumes[0].hostPath.path: Invalid value: \"/data/../etc\": must not contain '..'",
            id="host-path-backsteps",
        ),
        pytest.param(
            template({"annotations": {"a": "x" * 262144}}),
            "t.metadata.annotations: Too long: may not be more than 262144 bytes",
            id="annotations-together",
        ),
        pytest.param(
            template({"labels": {"my team": "a"}}),
            't.metadata.labels: Invalid value: "my team": '
            "keys must be names of letters, digits, -, _ and ., such as team or example.com/team",
            id="label-key",
        ),
        pytest.param(
            template({"annotations": {"example,com/a": ""}}),
            't.metadata.annotations: Invalid value: "example,com/a": '
            "keys must be names of letters, digits, -, _ and ., such as team or example.com/team",
            id="annotation-key",
        ),
        pytest.param(
            template(nodeSelector={"a/b/c": "d"}),
            't.spec.nodeSelector: Invalid value: "a/b/c": '
            "keys must be names of letters, digits, -, _ and ., such as team or example.com/team",
            id="node-selector-key",
        ),
        pytest.param(
            template(tolerations=[{"value": "v"}]),
            "t.spec.tolerations[0].operator: Invalid value: null: must be Exists when key is empty",
            id="toleration-without-key",
        ),
        pytest.param(
            template(tolerations=[{"key": "k", "operator": "Exists", "value": "v"}]),
            't.spec.tolerations[0].value: Invalid value: "v": must be empty when operator is Exists',
            id="toleration-with-value",
        ),
        pytest.param(
            template(tolerations=[{"key": "k", "tolerationSeconds": 5, "effect": "NoSchedule"}]),
            't.spec.tolerations[0].effect: Invalid value: "NoSchedule": '
            "must be NoExecute when tolerationSeconds is set",
            id="toleration-seconds",
        ),
        pytest.param(
            container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.nam"}}}]),
            't.spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "metadata.nam": '
            f"supported values: {POD_FIELDS}",
            id="field-of-the-pod",
        ),
        pytest.param(
            container(livenessProbe={"periodSeconds": 3}),
            "t.spec.containers[0].livenessProbe: Invalid value: "
            "must have exactly one of exec, grpc, httpGet, tcpSocket; it has none",
            id="probe-of-nothing",
        ),
        pytest.param(
            container(startupProbe={"exec": {"command": ["a"]}, "tcpSocket": {"port": 1}}),
            "t.spec.containers[0].startupProbe: Invalid value: "
            "must have exactly one of exec, grpc, httpGet, tcpSocket; it has exec and tcpSocket",
            id="probe-of-two-things",
        ),
        pytest.param(
            container(lifecycle={"preStop": {}}),
            "t.spec.containers[0].lifecycle.preStop: Invalid value: "
            "must have exactly one of exec, httpGet, sleep, tcpSocket; it has none",
            id="hook-of-nothing",
        ),
        pytest.param(
            container(volumeMounts=[{"name": "v", "mountPath": "/v", "subPath": "a/../../b"}]),
            't.spec.containers[0].volumeMounts[0].subPath: Invalid value: "a/../../b": '
            "must be a relative path without ..",
            id="sub-path",
        ),
        pytest.param(
            container(volumeMounts=[{"name": "v", "mountPath": "/v", "subPath": "a", "subPathExpr": "$(B)"}]),
            't.spec.containers[0].volumeMounts[0].subPathExpr: Invalid value: "$(B)": '
            "subPathExpr and subPath exclude each other",
            id="two-sub-paths",
        ),
        pytest.param(
            container(resources={"claims": [{"name": "gpu"}]}),
            't.spec.containers[0].resources.claims[0].name: Invalid value: "gpu": is not one of the resourceClaims '
            "of the pod",
            id="resource-claim",
        ),
        pytest.param(
            template(dnsPolicy="None"),
            "t.spec.dnsConfig.nameservers: Required value: dnsPolicy None leaves the pod without name servers "
            "otherwise",
            id="no-name-servers",
        ),
        pytest.param(
            node_affinity(key="zone", operator="In"),
            f"{EXPRESSION}.values: Required value: must not be empty when operator is In",
            id="zone-in-nothing",
        ),
        pytest.param(
            node_affinity(key="zone", operator="Exists", values=["a"]),
            f'{EXPRESSION}.values: Invalid value: ["a"]: must be empty when operator is Exists',
            id="exists-with-values",
        ),
        pytest.param(
            node_affinity(key="cores", operator="Gt", values=["many"]),
            f'{EXPRESSION}.values: Invalid value: ["many"]: must be a single integer when operator is Gt',
            id="more-than-many",
        ),
    ],
)
def test_refused(refused: Object, message: str) -> None:
    """What the API server would say about pods of a template is said about the template."""
    assert [str(error) for error in pod_template_errors(refused, "t")] == [message]


@pytest.mark.parametrize(
    "accepted",
    [
        pytest.param(template(), id="shortest"),
        pytest.param(template(volumes=[{"name": "v"}]), id="a-volume-is-an-emptyDir-by-default"),
        pytest.param(container(image=None, volumeMounts=[{"name": "later", "mountPath": "/m"}]), id="unfinished"),
        pytest.param(container(resources={"limits": {"cpu": 2}, "requests": {"cpu": "2000m"}}), id="equal"),
        pytest.param(container(resources={"limits": {"hugepages-2Mi": "4Mi", "ephemeral-storage": 1}}), id="standard"),
        pytest.param(container(resources={"requests": {"nvidia.com/gpu": 2}}), id="gpu-request"),
        pytest.param(
            container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]), id="source"
        ),
        pytest.param(container(envFrom=[{"configMapRef": {"name": "c"}, "prefix": "P_"}]), id="env-from"),
        pytest.param(template({"labels": {"example.com/a.b_c": ""}}), id="labels"),
        pytest.param(
            container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a.b/c']"}}}]),
            id="a-label-of-the-pod",
        ),
        pytest.param(container(imagePullPolicy="", terminationMessagePolicy="", ports=[]), id="empty-is-default"),
        pytest.param(container(livenessProbe={"httpGet": {"port": "http", "scheme": ""}}), id="probe"),
        pytest.param(container(ports=[{"name": "", "containerPort": 1}, {"containerPort": 2}]), id="nameless-ports"),
        pytest.param(
            template(
                containers=[{"name": "a", "resources": {"claims": [{"name": "gpu"}]}}],
                resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}],
            ),
            id="resource-claim",
        ),
        pytest.param(node_affinity(key="cores", operator="Gt", values=["8"]), id="more-than-8-cores"),
        pytest.param(
            template(
                topologySpreadConstraints=[
                    {
                        "maxSkew": 1,
                        "topologyKey": "zone",
                        "whenUnsatisfiable": "DoNotSchedule",
                        "labelSelector": {"matchLabels": {"operator": "In"}},
                    }
                ]
            ),
            id="a-label-called-operator",
        ),
        pytest.param(
            template(serviceAccountName="", priorityClassName="", dnsPolicy="", runtimeClassName="nvidia"),
            id="empty-names",
        ),
    ],
)
def test_accepted(accepted: Object) -> None:
    """A template of a runtime need not be complete: TrainJobs add images, volumes and limits."""
    assert pod_template_errors(accepted, "t") == []


def test_capitals_in_keys_of_annotations() -> None:
    """Kubernetes takes them for small letters in annotations, and refuses them before the slash in labels."""
    metadata = {"annotations": {"Example.com/SomeKey": ""}, "labels": {"example.com/SomeKey": "a"}}
    spec = {"containers": [{"name": "c", "image": "i"}]}
    assert pod_template_errors({"metadata": metadata, "spec": spec}, "t") == []
    metadata["labels"] = {"Example.com/SomeKey": "a"}
    assert [error.field for error in pod_template_errors({"metadata": metadata, "spec": spec}, "t")] == [
        "t.metadata.labels"
    ]
