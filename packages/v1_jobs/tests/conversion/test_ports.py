"""Ports at which pods meet: honoured, or lost where a plugin chooses another one."""

from __future__ import annotations

from typing import Any

import pytest

from packages.v1_jobs.tests.conversion.jobs import converted, fields, job, pods, variables
from trainer.kube.objects import Object
from trainer.v1alpha1.discovery import Version

SHARED = {"Master": 1, "Worker": 1}
PORTS: dict[Version, int] = {"v2alpha1": 29400, "v1alpha1": 29500}


def port(name: str, number: int) -> Object:
    """A container with a port."""
    return {"ports": [{"name": name, "containerPort": number}]}


def bound(address: str) -> Object:
    """A JAX container whose coordinator listens at an address."""
    return {"env": [{"name": "JAX_COORDINATOR_BIND_ADDRESS", "value": address}]}


@pytest.mark.parametrize("version", ["v2alpha1", "v1alpha1"])
@pytest.mark.parametrize(
    ("kind", "roles", "name", "number", "spec"),
    [
        pytest.param("PyTorchJob", SHARED, "pytorchjob-port", 23456, {}, id="torch-default"),
        pytest.param("PyTorchJob", SHARED, "pytorchjob-port", 4242, {}, id="torch"),
        pytest.param("JAXJob", {"Worker": 2}, "jaxjob-port", 6666, {}, id="jax-default"),
        pytest.param("JAXJob", {"Worker": 2}, "jaxjob-port", 1234, {}, id="jax"),
    ],
)
def test_named_ports(kind: str, roles: Any, name: str, number: int, spec: Any, version: Version) -> None:
    """A port of the operator's name that is another one now is lost, its default too, with where pods meet."""
    result = converted(job(kind, roles, port(name, number), **spec), version)

    found = result.findings[0]
    assert found.field.endswith(".ports[0]")
    assert f"pods meet at {PORTS[version]}" in found.message
    assert f"a NetworkPolicy names {number}" in found.message


@pytest.mark.parametrize(
    ("kind", "roles", "name", "number", "spec"),
    [
        pytest.param("PyTorchJob", SHARED, "pytorchjob-port", 29400, {}, id="that-of-the-plugin"),
        pytest.param(
            "PyTorchJob", {"Worker": 2}, "pytorchjob-port", 4242, {"elasticPolicy": {"minReplicas": 1}}, id="elastic"
        ),
        pytest.param("XGBoostJob", SHARED, "xgboostjob-port", 4242, {}, id="xgboost"),
        pytest.param("PaddleJob", SHARED, "master", 4242, {}, id="paddle-servers"),
        pytest.param("MPIJob", {"Launcher": 1, "Worker": 1}, "mpi-port", 4242, {}, id="mpi"),
        pytest.param("JAXJob", {"Worker": 2}, "debug", 6666, {}, id="another-name"),
    ],
)
def test_ports_that_stay(kind: str, roles: Any, name: str, number: int, spec: Any) -> None:
    """Where pods meet as the job says, nothing is lost."""
    assert not [field for field in fields(converted(job(kind, roles, port(name, number), **spec))) if "ports" in field]


@pytest.mark.parametrize("version", ["v2alpha1", "v1alpha1"])
@pytest.mark.parametrize(
    ("address", "host"),
    [pytest.param("0.0.0.0:6666", "0.0.0.0", id="ipv4"), pytest.param("[::]:6666", "[::]", id="ipv6")],
)
def test_where_the_coordinator_listens(address: str, host: str, version: Version) -> None:
    """The coordinator of JAX listens at the address that the job says, and at the port where the others expect it."""
    result = converted(job("JAXJob", {"Worker": 2}, bound(address)), version)

    found = variables(pods(result)["node"])
    assert found["JAX_COORDINATOR_BIND_ADDRESS"] == f"{host}:{PORTS[version]}"
    path = "spec.jaxReplicaSpecs[Worker].template.spec.containers[jax]"
    assert fields(result) == [f"{path}.env[JAX_COORDINATOR_BIND_ADDRESS]"]


@pytest.mark.parametrize(
    ("container", "lost"),
    [
        pytest.param({"command": ["train", "--coordinator=demo-worker-0:6666"]}, ["command"], id="command"),
        pytest.param({"args": ["--port", "6666"]}, ["args"], id="argument"),
        pytest.param({"env": [{"name": "A", "value": "tcp://host:6666"}]}, ["env"], id="variable"),
        pytest.param(port("jaxjob-port", 1234) | {"args": ["--port=1234"]}, ["ports[0]", "args"], id="declared"),
        pytest.param({"args": ["--port", "16666", "6666.5"]}, [], id="other-numbers"),
        pytest.param(bound("$(HOST):6666") | {"args": ["$(COORDINATOR_PORT)"]}, ["env"], id="known-in-the-pod"),
    ],
)
def test_the_port_of_the_coordinator(container: Object, lost: list[str]) -> None:
    """A command that has the port of the operator in it is lost: JAX listens where the plugin says."""
    path = "spec.jaxReplicaSpecs[Worker].template.spec.containers[jax]."
    found = fields(converted(job("JAXJob", {"Worker": 2}, container)))
    assert [field.removeprefix(path).partition("[JAX")[0] for field in found] == lost


@pytest.mark.parametrize("asked", ["pytorchjob-port", 4242], ids=["name", "number"])
def test_probes_of_the_port(asked: str | int) -> None:
    """A probe of the port that is left out asks the one at which pods meet, and others stay."""
    container = port("pytorchjob-port", 4242)
    container["readinessProbe"] = {"tcpSocket": {"port": asked}}
    container["livenessProbe"] = {"httpGet": {"port": 8080}}
    (main,) = pods(converted(job("PyTorchJob", SHARED, container)))["node"]["containers"]

    assert main["readinessProbe"] == {"tcpSocket": {"port": 29400}}
    assert main["livenessProbe"] == {"httpGet": {"port": 8080}}
