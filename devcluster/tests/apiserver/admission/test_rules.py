"""Rules: which requests they mean."""

from __future__ import annotations

import pytest

from trainer.kube.resource import CONFIG_MAPS, NAMESPACES, NODES, PODS, Resource
from trainer.workloads import JOBSETS
from trainer_devcluster.apiserver.admission.attributes import Endpoint, Operation
from trainer_devcluster.apiserver.admission.rules import Rule, is_exempt


@pytest.mark.parametrize(
    ("changed", "endpoint", "expected"),
    [
        pytest.param({}, Endpoint(Operation.CREATE, PODS), True, id="as named"),
        pytest.param({}, Endpoint(Operation.UPDATE, PODS), False, id="another operation"),
        pytest.param({"operations": ["*"]}, Endpoint(Operation.DELETE, PODS), True, id="any operation"),
        pytest.param({"operations": ["CREATE", "DELETE"]}, Endpoint(Operation.DELETE, PODS), True, id="one of several"),
        pytest.param({}, Endpoint(Operation.CREATE, CONFIG_MAPS), False, id="another resource"),
        pytest.param({"apiGroups": ["batch"]}, Endpoint(Operation.CREATE, PODS), False, id="another group"),
        pytest.param({"apiGroups": ["*"]}, Endpoint(Operation.CREATE, PODS), True, id="any group"),
        pytest.param({"apiVersions": ["v2"]}, Endpoint(Operation.CREATE, PODS), False, id="another version"),
        pytest.param({"apiVersions": ["*"]}, Endpoint(Operation.CREATE, PODS), True, id="any version"),
        pytest.param({}, Endpoint(Operation.CREATE, PODS, "binding"), False, id="a subresource is not its object"),
        pytest.param({"resources": ["pods/binding"]}, Endpoint(Operation.CREATE, PODS, "binding"), True, id="named"),
        pytest.param({"resources": ["pods/binding"]}, Endpoint(Operation.CREATE, PODS), False, id="not the object"),
        pytest.param({"resources": ["pods/*"]}, Endpoint(Operation.CREATE, PODS, "binding"), True, id="all below"),
        pytest.param({"resources": ["pods/*"]}, Endpoint(Operation.CREATE, PODS), True, id="all below and itself"),
        pytest.param({"resources": ["*"]}, Endpoint(Operation.CREATE, PODS), True, id="all objects"),
        pytest.param({"resources": ["*"]}, Endpoint(Operation.CREATE, PODS, "status"), False, id="no subresources"),
        pytest.param({"resources": ["*/status"]}, Endpoint(Operation.CREATE, PODS, "status"), True, id="all statuses"),
        pytest.param({"resources": ["*/status"]}, Endpoint(Operation.CREATE, PODS), False, id="statuses only"),
        pytest.param({"resources": ["*/*"]}, Endpoint(Operation.CREATE, PODS, "status"), True, id="everything"),
        pytest.param({"resources": ["*/*"]}, Endpoint(Operation.CREATE, PODS), True, id="everything, objects too"),
        pytest.param({"scope": "Namespaced"}, Endpoint(Operation.CREATE, PODS), True, id="namespaced"),
        pytest.param({"scope": "Cluster"}, Endpoint(Operation.CREATE, PODS), False, id="not of the cluster"),
        pytest.param(
            {"scope": "Cluster", "resources": ["*"]}, Endpoint(Operation.CREATE, NODES), True, id="of the cluster"
        ),
        pytest.param(
            {"scope": "Namespaced", "resources": ["*"]}, Endpoint(Operation.CREATE, NODES), False, id="in no namespace"
        ),
        pytest.param(
            {"scope": "Cluster", "resources": ["*"]},
            Endpoint(Operation.CREATE, NAMESPACES),
            True,
            id="namespaces are of the cluster",
        ),
    ],
)
def test_what_a_rule_means(changed: dict[str, object], endpoint: Endpoint, expected: bool) -> None:
    """Operation, group, version, resource and scope all have to fit."""
    entry = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], **changed}
    assert Rule.of(entry).matches(endpoint, endpoint.resource) is expected


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        (Resource("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "X"), True),
        (Resource("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", "X"), True),
        (JOBSETS, False),
    ],
)
def test_webhooks_never_see_webhook_configurations(resource: Resource, expected: bool) -> None:
    """A webhook that refuses everything must stay removable."""
    assert is_exempt(resource) is expected
