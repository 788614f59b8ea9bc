"""Environment variables about Services."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from devcluster.tests.kubelet.fakes import make_pod
from trainer_devcluster.kubelet.network.pod_network import ApiAddress
from trainer_devcluster.kubelet.service_environment import ServiceEnvironment, service_variables

if TYPE_CHECKING:
    from trainer.kube.objects import Object


def service(name: str, cluster_ip: str | None, *ports: dict[str, Any]) -> Object:
    return {"metadata": {"name": name}, "spec": {"clusterIP": cluster_ip, "ports": list(ports)}}


REDIS = {
    "REDIS_PRIMARY_SERVICE_HOST": "10.0.0.11",
    "REDIS_PRIMARY_SERVICE_PORT": "6379",
    "REDIS_PRIMARY_PORT": "tcp://10.0.0.11:6379",
    "REDIS_PRIMARY_PORT_6379_TCP": "tcp://10.0.0.11:6379",
    "REDIS_PRIMARY_PORT_6379_TCP_PROTO": "tcp",
    "REDIS_PRIMARY_PORT_6379_TCP_PORT": "6379",
    "REDIS_PRIMARY_PORT_6379_TCP_ADDR": "10.0.0.11",
}


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        pytest.param(service("redis-primary", "10.0.0.11", {"port": 6379}), REDIS, id="documentation"),
        pytest.param(
            service(
                "redis-primary",
                "10.0.0.11",
                {"port": 6379, "name": "main"},
                {"port": 1, "protocol": "UDP", "name": "a-b"},
            ),
            REDIS
            | {
                "REDIS_PRIMARY_SERVICE_PORT_MAIN": "6379",
                "REDIS_PRIMARY_SERVICE_PORT_A_B": "1",
                "REDIS_PRIMARY_PORT_1_UDP": "udp://10.0.0.11:1",
                "REDIS_PRIMARY_PORT_1_UDP_PROTO": "udp",
                "REDIS_PRIMARY_PORT_1_UDP_PORT": "1",
                "REDIS_PRIMARY_PORT_1_UDP_ADDR": "10.0.0.11",
            },
            id="named ports",
        ),
        pytest.param(service("headless", "None", {"port": 1}), {}, id="headless"),
        pytest.param(service("external", None), {}, id="without an address"),
    ],
)
def test_variables_of_a_service(described: Object, expected: dict[str, str]) -> None:
    """Those that the Kubernetes documentation lists."""
    assert service_variables(described) == expected


def test_pod_knows_its_namespace_and_the_api_server() -> None:
    """The API server is always there, and where pods reach it; a pod may decline to know of others."""
    services = {"default": [service("redis-primary", "10.0.0.11", {"port": 6379})]}
    environment = ServiceEnvironment(ApiAddress("127.0.0.1", 6443), services.__getitem__)
    variables = environment.variables(make_pod("pod"))
    assert variables.items() >= REDIS.items()
    declining = environment.variables(make_pod("pod", enableServiceLinks=False))
    assert variables == REDIS | declining
    assert declining["KUBERNETES_SERVICE_HOST"] == "127.0.0.1"
    assert declining["KUBERNETES_SERVICE_PORT"] == declining["KUBERNETES_SERVICE_PORT_HTTPS"] == "6443"
    assert declining["KUBERNETES_PORT_6443_TCP"] == "tcp://127.0.0.1:6443"


def test_nobody_knows_the_api_server() -> None:
    """A kubelet that was not told where the API server is tells nobody."""
    assert ServiceEnvironment(None, lambda _: []).variables(make_pod("pod")) == {}
