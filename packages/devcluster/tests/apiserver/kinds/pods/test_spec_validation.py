"""Validation of pod specifications."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from trainer.kube.names import subdomain_problems
from trainer_devcluster.apiserver.kinds.pods.pod_spec import default_pod_spec
from trainer_devcluster.apiserver.kinds.pods.spec_validation import validate_pod_spec

CONTAINER = {"name": "c", "image": "i"}


@pytest.mark.parametrize(
    ("spec", "messages"),
    [
        pytest.param(
            {"containers": [{}]},
            ["s.containers[0].name: Required value", "s.containers[0].image: Required value"],
            id="empty container",
        ),
        pytest.param(
            {"containers": [{**CONTAINER, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]},
            ['s.containers[0].volumeMounts[0].name: Not found: "v"'],
            id="mount without volume",
        ),
        pytest.param(
            {"containers": [CONTAINER], "schedulingGroup": {"podGroupName": "A"}},
            [f's.schedulingGroup.podGroupName: Invalid value: "A": {problem}' for problem in subdomain_problems("A")],
            id="name of a pod group",
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
        pytest.param({"hostAliases": [{"hostnames": ["a"]}]}, "hostAliases[0].ip: Required value", id="host alias"),
        pytest.param(
            {"schedulingGates": [{"name": "a"}, {"name": "a"}]},
            'schedulingGates[1]: Duplicate value: "a"',
            id="scheduling gates",
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
            {"envFrom": [{}]},
            ['envFrom[0]: Invalid value: "": must specify one of: `configMapRef` or `secretRef`'],
            id="envFrom nothing",
        ),
        pytest.param(
            {"envFrom": [{"configMapRef": {"name": "c"}, "secretRef": {"name": "s"}}]},
            ['envFrom[0]: Invalid value: "": may not have more than one field specified at a time'],
            id="envFrom two objects",
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
            ['resources.limits[gpu]: Invalid value: "gpu": must be a standard resource for containers'],
            id="unknown resource",
        ),
        pytest.param(
            {"livenessProbe": {"periodSeconds": 1}},
            ["livenessProbe: Required value: must specify a handler type"],
            id="probe without an action",
        ),
        pytest.param(
            {"startupProbe": {"exec": {}}}, ["startupProbe.exec.command: Required value"], id="probe without a command"
        ),
        pytest.param(
            {"livenessProbe": {"tcpSocket": {"port": 65536}}},
            ["livenessProbe.tcpSocket.port: Invalid value: 65536: must be between 1 and 65535, inclusive"],
            id="port of a probe",
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
            [{"name": "v", "mountPath": "/a", "subPath": "b", "subPathExpr": "$(B)"}],
            ['[0].subPathExpr: Invalid value: "$(B)": subPathExpr and subPath are mutually exclusive'],
            id="subPath and subPathExpr",
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
        pytest.param({"hostPath": {}}, [".hostPath.path: Required value"], id="hostPath"),
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
            {"downwardAPI": {"items": [{"path": "a", "fieldRef": {}}]}},
            [".downwardAPI.items[0].fieldRef.fieldPath: Required value"],
            id="downward API without a path",
        ),
        pytest.param(
            {"configMap": {"name": "a", "defaultMode": 644, "items": [{"key": "a", "path": "a", "mode": -1}]}},
            [
                f".configMap.{field} must be a number between 0 and 0777 (octal), both inclusive"
                for field in ("defaultMode: Invalid value: 644:", "items[0].mode: Invalid value: -1:")
            ],
            id="decimal mode",
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
    ],
)
def test_volumes(source: dict[str, Any], messages: list[str]) -> None:
    """Volumes are refused as Kubernetes words it."""
    assert problems(volume(**source)) == [f"s.volumes[0]{message}" for message in messages]
