from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from packages.devcluster.tests.apiserver.kinds.context import created, fields, make_context, updated
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.kinds.service import ServiceStrategy

STRATEGY = ServiceStrategy()


def make_service(**spec: Any) -> Object:
    return {"metadata": {"name": "s"}, "spec": spec}


def test_service_gets_an_address() -> None:
    """Ports get protocol and target; the address is kept by updates that leave it out."""
    service, causes = created(STRATEGY, make_service(ports=[{"port": 80}]))
    assert causes == []
    assert service["spec"]["clusterIP"] == "10.96.0.10"
    assert service["spec"]["clusterIPs"] == ["10.96.0.10"]
    assert service["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    new = make_service(ports=[{"port": 81}])
    assert updated(STRATEGY, new, service) == []
    assert new["spec"]["clusterIP"] == "10.96.0.10"


def test_headless_service_needs_no_ports() -> None:
    """JobSet makes such Services for the names of its pods."""
    service, causes = created(STRATEGY, make_service(clusterIP="None", selector={"a": "b"}))
    assert causes == []
    assert service["spec"]["clusterIPs"] == ["None"]
    assert (service["spec"]["type"], service["spec"]["sessionAffinity"]) == ("ClusterIP", "None")


def test_dry_run_allocates_nothing() -> None:
    """The address of a dry run is a placeholder."""
    service = make_service(ports=[{"port": 80}])
    STRATEGY.default(service, make_context(dry_run=True))
    STRATEGY.prepare_for_create(service, make_context(dry_run=True))
    assert service["spec"]["clusterIP"] == "10.96.0.0"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param({}, "spec.ports", id="no ports"),
        pytest.param({"type": "NodePort", "ports": [{"port": 1}]}, "spec.type", id="type without a network"),
        pytest.param({"type": "ExternalName"}, "spec.externalName", id="external name"),
        pytest.param({"ports": [{"port": 0}]}, "spec.ports[0].port", id="port number"),
        pytest.param({"ports": [{"port": 1}, {"port": 2, "name": "b"}]}, "spec.ports[0].name", id="several need names"),
        pytest.param(
            {"ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "a"}]}, "spec.ports[1].name", id="same name"
        ),
    ],
)
def test_wrong_services_are_refused(spec: dict[str, Any], field: str) -> None:
    """The cause names the field."""
    assert fields(created(STRATEGY, make_service(**spec))[1]) == [field]


def test_address_is_immutable() -> None:
    """Others may have resolved it."""
    service, _ = created(STRATEGY, make_service(ports=[{"port": 80}]))
    new = deepcopy(service)
    new["spec"]["clusterIP"] = "10.96.0.11"
    assert fields(updated(STRATEGY, new, service)) == ["spec.clusterIPs[0]"]
