"""Environment variables and command lines."""

from __future__ import annotations

import base64

import pytest

from packages.devcluster.tests.kubelet.fakes import FakeConfigReader, make_pod
from trainer.kube.objects import Object
from trainer_devcluster.kubelet.environment import (
    EnvironmentBuilder,
    PodFacts,
    api_server_variables,
)
from trainer_devcluster.kubelet.errors import ContainerConfigError
from trainer_devcluster.kubelet.network.pod_network import ApiAddress

FACTS = PodFacts("10.88.0.2", "127.0.0.1", {"cpu": "8", "memory": "1Gi"})


async def build(reader: FakeConfigReader, **container: object) -> dict[str, str]:
    """The variables of a container."""
    pod = make_pod("pod", {"name": "main"}, {"name": "other", "resources": {"limits": {"cpu": "3"}}})
    pod["metadata"] |= {"labels": {"app": "x"}, "annotations": {"note/a": "y"}}
    return await EnvironmentBuilder(pod, {"name": "main", **container}, FACTS, reader).build()


@pytest.fixture
def reader() -> FakeConfigReader:
    """A ConfigMap and a Secret."""
    reader = FakeConfigReader()
    reader.add("ConfigMap", "config", data={"A": "config", "B": "b"})
    reader.add("Secret", "secret", data={"A": base64.b64encode(b"secret").decode()})
    return reader


async def test_order(reader: FakeConfigReader) -> None:
    """Sources of envFrom come in their order, then env, and later ones win."""
    env_from = [{"configMapRef": {"name": "config"}}, {"prefix": "S_", "secretRef": {"name": "secret"}}]
    env = [
        {"name": "B", "value": "own"},
        {"name": "C", "value": "$(A) $(B) $(S_A) $(D)"},
        {"name": "D", "value": "late"},
    ]
    variables = await build(reader, envFrom=env_from, env=env)
    assert variables == {"A": "config", "B": "own", "S_A": "secret", "C": "config own secret $(D)", "D": "late"}


@pytest.mark.parametrize(
    ("source", "value"),
    [
        pytest.param({"fieldRef": {"fieldPath": "metadata.annotations['none']"}}, "", id="no annotation"),
        pytest.param({"resourceFieldRef": {"resource": "limits.cpu"}}, "8", id="node's when unlimited"),
        pytest.param({"resourceFieldRef": {"resource": "limits.cpu", "containerName": "other"}}, "3", id="other"),
        pytest.param({"configMapKeyRef": {"name": "config", "key": "A"}}, "config", id="config map"),
    ],
)
async def test_value_from(reader: FakeConfigReader, source: Object, value: str) -> None:
    """Values come from the pod, its resources, ConfigMaps and Secrets."""
    assert await build(reader, env=[{"name": "V", "valueFrom": source}]) == {"V": value}


@pytest.mark.parametrize(
    "container",
    [
        pytest.param({"envFrom": [{"secretRef": {"name": "none", "optional": True}}]}, id="source"),
        pytest.param(
            {
                "env": [
                    _ := {"name": "V", "valueFrom": {"secretKeyRef": {"name": "none", "key": "k", "optional": True}}}
                ]
            },
            id="object",
        ),
    ],
)
async def test_optional(reader: FakeConfigReader, container: Object) -> None:
    """What is optional and missing sets nothing."""
    assert await build(reader, **container) == {}


@pytest.mark.parametrize(
    ("container", "message"),
    [
        pytest.param(
            {"env": [{"name": "V", "valueFrom": {"secretKeyRef": {"name": "secret", "key": "no"}}}]},
            "couldn't find key no in Secret default/secret",
            id="key",
        ),
        pytest.param(
            {"env": [{"name": "V", "valueFrom": {"fieldRef": {"fieldPath": "spec.x"}}}]},
            "environment variable V: fieldPath 'spec.x' is not supported",
            id="field",
        ),
        pytest.param(
            {"env": [{"name": "V", "valueFrom": {"fileKeyRef": {"key": "k"}}}]},
            "environment variable V: the dev cluster does not support valueFrom.fileKeyRef",
            id="unsupported",
        ),
    ],
)
async def test_missing(reader: FakeConfigReader, container: Object, message: str) -> None:
    """What is missing is named."""
    with pytest.raises(ContainerConfigError, match=message):
        await build(reader, **container)


def test_variables_of_the_api_server() -> None:
    """In-cluster clients find it by them; where pods do not reach it there are none."""
    variables = api_server_variables(ApiAddress("10.96.0.1", 443))
    assert (variables["KUBERNETES_SERVICE_HOST"], variables["KUBERNETES_SERVICE_PORT"]) == ("10.96.0.1", "443")
    assert variables["KUBERNETES_PORT_443_TCP"] == "tcp://10.96.0.1:443"
    assert api_server_variables(None) == {}
