"""The Deployment of config/manager: somebody works at all times, through upgrades, drains and failing nodes."""

from __future__ import annotations

import pytest

from tests.config.kustomized import of_kind, rendered
from trainer.kube.objects import Object


@pytest.fixture
def deployment() -> Object:
    """That of the manager."""
    (obj,) = of_kind(rendered("manager"), "Deployment")
    return obj


def test_upgrades(deployment: Object) -> None:
    """A new replica is ready before an old one goes."""
    assert deployment["spec"]["replicas"] == 2
    assert deployment["spec"]["strategy"] == {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


def test_drains() -> None:
    """One replica may be evicted at a time, also if there is only one; an unhealthy one can always be evicted."""
    (budget,) = of_kind(rendered("manager"), "PodDisruptionBudget")
    assert budget["spec"]["maxUnavailable"] == 1
    assert "minAvailable" not in budget["spec"]
    assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_nodes_and_zones(deployment: Object) -> None:
    """Replicas are spread over nodes and zones where there are several, and start where there is one."""
    pod = deployment["spec"]["template"]["spec"]
    (term,) = pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    (spread,) = pod["topologySpreadConstraints"]
    assert term["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"
    assert (spread["topologyKey"], spread["whenUnsatisfiable"]) == ("topology.kubernetes.io/zone", "ScheduleAnyway")
    assert "priorityClassName" not in pod


def test_probes(deployment: Object) -> None:
    """A replica has two minutes to start, and is not killed for being busy for some seconds."""
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    startup, liveness = container["startupProbe"], container["livenessProbe"]
    assert startup["periodSeconds"] * startup["failureThreshold"] == 120
    assert liveness["periodSeconds"] * liveness.get("failureThreshold", 3) >= 60
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert liveness["httpGet"]["path"] == startup["httpGet"]["path"] == "/healthz"


def test_resources(deployment: Object) -> None:
    """What it needs is reserved, its memory is limited, and its CPU is not."""
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert set(container["resources"]["requests"]) == {"cpu", "memory"}
    assert set(container["resources"]["limits"]) == {"memory"}


def test_restarts(deployment: Object) -> None:
    """The manager is the first process of its container and knows its pod, so a restart goes on with the lease."""
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["command"][:2] == ["trainer", "manager"]
    assert {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}} in container["env"]
    assert not pod.get("shareProcessNamespace")
