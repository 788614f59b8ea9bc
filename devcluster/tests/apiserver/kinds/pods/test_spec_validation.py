"""Validation of pod specifications."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from trainer_devcluster.apiserver.kinds.pods.pod_spec import default_pod_spec
from trainer_devcluster.apiserver.kinds.pods.spec_validation import validate_pod_spec

CONTAINER = {"name": "c", "image": "i"}


@pytest.mark.parametrize(
    ("spec", "messages"),
    [
        pytest.param({"containers": [CONTAINER]}, [], id="valid"),
        pytest.param({}, ["s.containers: Required value"], id="no containers"),
        pytest.param(
            {"containers": [{}]},
            ["s.containers[0].name: Required value", "s.containers[0].image: Required value"],
            id="empty container",
        ),
        pytest.param(
            {"containers": [CONTAINER, CONTAINER]}, ['s.containers[1].name: Duplicate value: "c"'], id="duplicate name"
        ),
        pytest.param(
            {"containers": [CONTAINER], "restartPolicy": "Sometimes"},
            [
                's.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
            ],
            id="restart policy",
        ),
        pytest.param(
            {"containers": [{**CONTAINER, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]},
            ['s.containers[0].volumeMounts[0].name: Not found: "v"'],
            id="mount without volume",
        ),
        pytest.param(
            {"containers": [{**CONTAINER, "env": [{"name": "PORT", "value": 80}]}]},
            ["s.containers[0].env[0].value: Invalid value: 80: must be a string: quote the value"],
            id="number as variable",
        ),
        pytest.param(
            {"containers": [{**CONTAINER, "command": "sleep 1"}]},
            ['s.containers[0].command: Invalid value: "sleep 1": must be a list of strings: quote the values'],
            id="command as text",
        ),
        pytest.param(
            {"containers": ["c"]},
            ['s.containers: Invalid value: ["c"]: must be a list of objects'],
            id="containers as names",
        ),
    ],
)
def test_validation_names_the_field(spec: dict[str, Any], messages: list[str]) -> None:
    """Every problem is reported with its path and, where it is not obvious, the remedy."""
    spec = deepcopy(spec)
    default_pod_spec(spec)
    assert [str(cause) for cause in validate_pod_spec(spec, "s")] == messages


def container(**fields: Any) -> dict[str, Any]:
    """A specification with one container."""
    return {"containers": [{**CONTAINER, **fields}]}


def volume(**source: Any) -> dict[str, Any]:
    """A specification with one volume."""
    return {"containers": [CONTAINER], "volumes": [{"name": "v", **source}]}


def problems(spec: dict[str, Any]) -> list[str]:
    """What is wrong with a specification at `s`, after defaulting."""
    spec = deepcopy(spec)
    default_pod_spec(spec)
    return [str(cause) for cause in validate_pod_spec(spec, "s")]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            {"activeDeadlineSeconds": 0},
            "activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
            id="deadline",
        ),
        pytest.param(
            {"terminationGracePeriodSeconds": -1},
            "terminationGracePeriodSeconds: Invalid value: -1: must be greater than or equal to 0",
            id="grace period",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
            "tolerations[0].operator: Invalid value: \"b\": value must be empty when `operator` is 'Exists'",
            id="toleration with a value",
        ),
        pytest.param(
            {"tolerations": [{"value": "b"}]},
            'tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, which means '
            '"match all values and all keys"',
            id="toleration without a key",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 1}]},
            "tolerations[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when "
            "`tolerationSeconds` is set",
            id="toleration for a time",
        ),
        pytest.param(
            {"hostAliases": [{"ip": "x"}]},
            'hostAliases[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
            id="host alias",
        ),
        pytest.param(
            {"schedulingGates": [{"name": "a"}, {"name": "a"}]},
            'schedulingGates[1]: Duplicate value: "a"',
            id="scheduling gates",
        ),
        pytest.param(
            {"dnsPolicy": "Sometimes"},
            'dnsPolicy: Unsupported value: "Sometimes": supported values: "ClusterFirstWithHostNet", "ClusterFirst", '
            '"Default", "None"',
            id="DNS policy",
        ),
        pytest.param(
            {"initContainers": [{**CONTAINER, "name": "i", "livenessProbe": {"exec": {"command": ["true"]}}}]},
            "initContainers[0].livenessProbe: Forbidden: may not be set for init containers without "
            "restartPolicy=Always",
            id="probe of an init container",
        ),
        pytest.param(
            {"initContainers": [CONTAINER]}, 'initContainers[0].name: Duplicate value: "c"', id="name in both lists"
        ),
    ],
)
def test_pod(spec: dict[str, Any], message: str) -> None:
    """Fields of the pod are refused as Kubernetes words it."""
    assert problems({"containers": [CONTAINER], **spec}) == [f"s.{message}"]


@pytest.mark.parametrize(
    ("fields", "messages"),
    [
        pytest.param(
            {"image": " i"}, ['image: Invalid value: " i": must not have leading or trailing whitespace'], id="image"
        ),
        pytest.param({"ports": [{}]}, ["ports[0].containerPort: Required value"], id="no port"),
        pytest.param(
            {"ports": [{"containerPort": 70000}]},
            ["ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"],
            id="port",
        ),
        pytest.param(
            {"ports": [{"containerPort": 1, "protocol": "IP"}]},
            ['ports[0].protocol: Unsupported value: "IP": supported values: "SCTP", "TCP", "UDP"'],
            id="protocol",
        ),
        pytest.param(
            {"ports": [{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]},
            ['ports[1].name: Duplicate value: "a"'],
            id="port name twice",
        ),
        pytest.param(
            {"ports": [{"containerPort": 1, "name": "a-name-much-too-long"}]},
            ['ports[0].name: Invalid value: "a-name-much-too-long": must be no more than 15 characters'],
            id="long port name",
        ),
        pytest.param({"env": [{"value": "1"}]}, ["env[0].name: Required value"], id="variable without a name"),
        pytest.param(
            {"env": [{"name": "a=b"}]},
            [
                (
                    'env[0].name: Invalid value: "a=b": a valid environment variable name must consist only of '
                    "printable ASCII characters other than '='"
                )
            ],
            id="name of a variable",
        ),
        pytest.param(
            {"env": [{"name": "A", "value": "1", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]},
            ['env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty'],
            id="value and source",
        ),
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {}}]},
            [
                (
                    'env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, '
                    "`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
                )
            ],
            id="no source",
        ),
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.image"}}}]},
            [
                (
                    'env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.image": error converting fieldPath: '
                    "field label not supported: spec.image"
                )
            ],
            id="unknown field",
        ),
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels"}}}]},
            [
                (
                    'env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "metadata.labels": supported values: '
                    '"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", '
                    '"spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"'
                )
            ],
            id="field for volumes only",
        ),
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']"}}}]}, [], id="label"
        ),
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1k"}}}]},
            [
                (
                    'env[0].valueFrom.resourceFieldRef.divisor: Invalid value: "1k": only divisor\'s values 1m and 1 '
                    "are supported with the cpu resource"
                )
            ],
            id="divisor",
        ),
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c"}}}]},
            ["env[0].valueFrom.configMapKeyRef.key: Required value"],
            id="no key",
        ),
        pytest.param(
            {"envFrom": [{}]},
            ['envFrom[0]: Invalid value: "": must specify one of: `configMapRef` or `secretRef`'],
            id="envFrom nothing",
        ),
        pytest.param(
            {"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "500m"}}},
            ['resources.requests: Invalid value: "1": must be less than or equal to cpu limit of 500m'],
            id="more requested than allowed",
        ),
        pytest.param(
            {"resources": {"requests": {"nvidia.com/gpu": "1"}}},
            ["resources.limits: Required value: Limit must be set for non overcommitable resources"],
            id="GPU without a limit",
        ),
        pytest.param(
            {"resources": {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "2"}}},
            ['resources.requests: Invalid value: "1": must be equal to nvidia.com/gpu limit of 2'],
            id="GPU shared",
        ),
        pytest.param(
            {"resources": {"limits": {"nvidia.com/gpu": "500m"}}},
            ['resources.limits[nvidia.com/gpu]: Invalid value: "500m": must be an integer'],
            id="part of a GPU",
        ),
        pytest.param(
            {"resources": {"limits": {"gpu": "1"}}},
            [
                'resources.limits[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified',
                'resources.limits[gpu]: Invalid value: "gpu": must be a standard resource for containers',
            ],
            id="unknown resource",
        ),
        pytest.param(
            {"resources": {"requests": {"memory": "-1Gi"}}},
            ['resources.requests[memory]: Invalid value: "-1Gi": must be greater than or equal to 0'],
            id="negative amount",
        ),
    ],
)
def test_container(fields: dict[str, Any], messages: list[str]) -> None:
    """Fields of a container are refused as Kubernetes words it."""
    assert problems(container(**fields)) == [f"s.containers[0].{message}" for message in messages]


@pytest.mark.parametrize(
    ("mounts", "messages"),
    [
        pytest.param([{"name": "v"}], ["[0].mountPath: Required value"], id="no path"),
        pytest.param(
            [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/a"}],
            ['[1].mountPath: Invalid value: "/a": must be unique'],
            id="path twice",
        ),
        pytest.param(
            [{"name": "v", "mountPath": "/a", "subPath": "/b"}],
            ['[0].subPath: Invalid value: "/b": must be a relative path'],
            id="absolute subPath",
        ),
        pytest.param(
            [{"name": "v", "mountPath": "/a", "subPath": "../b"}],
            ["[0].subPath: Invalid value: \"../b\": must not contain '..'"],
            id="subPath out of the volume",
        ),
        pytest.param(
            [{"name": "v", "mountPath": "/a", "subPath": "b", "subPathExpr": "$(B)"}],
            ['[0].subPathExpr: Invalid value: "$(B)": subPathExpr and subPath are mutually exclusive'],
            id="subPath and subPathExpr",
        ),
        pytest.param(
            [{"name": "v", "mountPath": "/a", "recursiveReadOnly": "Enabled"}],
            ["[0].recursiveReadOnly: Forbidden: may only be specified when readOnly is true"],
            id="recursiveReadOnly without readOnly",
        ),
    ],
)
def test_mounts(mounts: list[dict[str, Any]], messages: list[str]) -> None:
    """volumeMounts are refused as Kubernetes words it."""
    spec = {**container(volumeMounts=mounts), "volumes": [{"name": "v"}]}
    assert problems(spec) == [f"s.containers[0].volumeMounts{message}" for message in messages]


@pytest.mark.parametrize(
    ("source", "messages"),
    [
        pytest.param({"configMap": {}}, [".configMap.name: Required value"], id="configMap"),
        pytest.param({"secret": {}}, [".secret.secretName: Required value"], id="secret"),
        pytest.param({"persistentVolumeClaim": {}}, [".persistentVolumeClaim.claimName: Required value"], id="claim"),
        pytest.param({"hostPath": {}}, [".hostPath.path: Required value"], id="hostPath"),
        pytest.param(
            {"hostPath": {"path": "/a", "type": "Tape"}},
            [
                (
                    '.hostPath.type: Unsupported value: "Tape": supported values: "", "BlockDevice", "CharDevice", '
                    '"Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"'
                )
            ],
            id="hostPath type",
        ),
        pytest.param(
            {"emptyDir": {}, "hostPath": {"path": "/a"}},
            [".hostPath: Forbidden: may not specify more than 1 volume type"],
            id="two types",
        ),
        pytest.param(
            {"configMap": {"name": "a", "defaultMode": 512}},
            [".configMap.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive"],
            id="mode",
        ),
        pytest.param(
            {"secret": {"secretName": "a", "items": [{"key": "a", "path": "..b"}, {"path": "../c"}]}},
            [
                ".secret.items[0].path: Invalid value: \"..b\": must not start with '..'",
                ".secret.items[1].key: Required value",
                ".secret.items[1].path: Invalid value: \"../c\": must not contain '..'",
            ],
            id="items",
        ),
        pytest.param(
            {"downwardAPI": {"items": [{"path": "a"}]}},
            [".downwardAPI.items[0]: Required value: one of fieldRef and resourceFieldRef is required"],
            id="downward API without a field",
        ),
        pytest.param(
            {"projected": {"sources": [{"serviceAccountToken": {"path": "a", "expirationSeconds": 60}}]}},
            [
                (
                    ".projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 60: may not specify a "
                    "duration less than 10 minutes"
                )
            ],
            id="token",
        ),
        pytest.param({"ephemeral": {}}, [".ephemeral.volumeClaimTemplate: Required value"], id="ephemeral"),
    ],
)
def test_volumes(source: dict[str, Any], messages: list[str]) -> None:
    """Volumes are refused as Kubernetes words it."""
    assert problems(volume(**source)) == [f"s.volumes[0]{message}" for message in messages]
