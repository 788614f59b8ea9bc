"""Rules: which requests they mean."""

from __future__ import annotations

from typing import Any

import pytest

from packages.devcluster.tests.apiserver.admission.configurations import configuration, webhook
from trainer.kube.errors import ApiError
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import CONFIG_MAPS, NAMESPACES, NODES, PODS, Resource
from trainer.workloads import JOBSETS
from trainer_devcluster.apiserver.admission.attributes import Attributes, Operation, RuleTarget
from trainer_devcluster.apiserver.admission.namespaces import PARTITION
from trainer_devcluster.apiserver.admission.webhook import Webhook, WebhookRule, is_exempt, selects, webhooks_of
from trainer_devcluster.apiserver.authentication.user import User
from trainer_devcluster.apiserver.storage.storage import Storage


@pytest.mark.parametrize(
    ("changed", "endpoint", "expected"),
    [
        pytest.param({}, RuleTarget(Operation.CREATE, PODS), True, id="as named"),
        pytest.param({}, RuleTarget(Operation.UPDATE, PODS), False, id="another operation"),
        pytest.param({"operations": ["*"]}, RuleTarget(Operation.DELETE, PODS), True, id="any operation"),
        pytest.param(
            {"operations": ["CREATE", "DELETE"]}, RuleTarget(Operation.DELETE, PODS), True, id="one of several"
        ),
        pytest.param({}, RuleTarget(Operation.CREATE, CONFIG_MAPS), False, id="another resource"),
        pytest.param({"apiGroups": ["batch"]}, RuleTarget(Operation.CREATE, PODS), False, id="another group"),
        pytest.param({"apiGroups": ["*"]}, RuleTarget(Operation.CREATE, PODS), True, id="any group"),
        pytest.param({"apiVersions": ["v2"]}, RuleTarget(Operation.CREATE, PODS), False, id="another version"),
        pytest.param({"apiVersions": ["*"]}, RuleTarget(Operation.CREATE, PODS), True, id="any version"),
        pytest.param({}, RuleTarget(Operation.CREATE, PODS, "binding"), False, id="a subresource is not its object"),
        pytest.param({"resources": ["pods/binding"]}, RuleTarget(Operation.CREATE, PODS, "binding"), True, id="named"),
        pytest.param({"resources": ["pods/binding"]}, RuleTarget(Operation.CREATE, PODS), False, id="not the object"),
        pytest.param({"resources": ["pods/*"]}, RuleTarget(Operation.CREATE, PODS, "binding"), True, id="all below"),
        pytest.param({"resources": ["pods/*"]}, RuleTarget(Operation.CREATE, PODS), True, id="all below and itself"),
        pytest.param({"resources": ["*"]}, RuleTarget(Operation.CREATE, PODS), True, id="all objects"),
        pytest.param({"resources": ["*"]}, RuleTarget(Operation.CREATE, PODS, "status"), False, id="no subresources"),
        pytest.param(
            {"resources": ["*/status"]}, RuleTarget(Operation.CREATE, PODS, "status"), True, id="all statuses"
        ),
        pytest.param({"resources": ["*/status"]}, RuleTarget(Operation.CREATE, PODS), False, id="statuses only"),
        pytest.param({"resources": ["*/*"]}, RuleTarget(Operation.CREATE, PODS, "status"), True, id="everything"),
        pytest.param({"resources": ["*/*"]}, RuleTarget(Operation.CREATE, PODS), True, id="everything, objects too"),
        pytest.param({"scope": "Namespaced"}, RuleTarget(Operation.CREATE, PODS), True, id="namespaced"),
        pytest.param({"scope": "Cluster"}, RuleTarget(Operation.CREATE, PODS), False, id="not of the cluster"),
        pytest.param(
            {"scope": "Cluster", "resources": ["*"]}, RuleTarget(Operation.CREATE, NODES), True, id="of the cluster"
        ),
        pytest.param(
            {"scope": "Namespaced", "resources": ["*"]},
            RuleTarget(Operation.CREATE, NODES),
            False,
            id="in no namespace",
        ),
        pytest.param(
            {"scope": "Cluster", "resources": ["*"]},
            RuleTarget(Operation.CREATE, NAMESPACES),
            True,
            id="namespaces are of the cluster",
        ),
    ],
)
def test_what_a_rule_means(changed: dict[str, object], endpoint: RuleTarget, expected: bool) -> None:
    """Operation, group, version, resource and scope all have to fit."""
    entry = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], **changed}
    assert WebhookRule.of(entry).matches(endpoint, endpoint.resource) is expected


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


PROD = {"matchLabels": {"env": "prod"}}
NOT_PROD = {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["prod"]}]}
DEFAULTS = {"failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10}


def made(**selectors: Any) -> Webhook:
    entry = webhook(**{"namespaceSelector": {}, "objectSelector": {}, **DEFAULTS, **selectors})
    return webhooks_of(
        configuration("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", "c", entry)
    )[0]


def labelled(**labels: str) -> Object:
    return {"metadata": {"name": "x", "labels": labels}}


def attributes(
    resource: Resource = CONFIG_MAPS,
    operation: Operation = Operation.CREATE,
    *,
    namespace: str = "ns",
    new: Object | None = None,
    old: Object | None = None,
) -> Attributes:
    return Attributes(RuleTarget(operation, resource), namespace, "x", new, old, User("u"), {})


@pytest.fixture
def storage() -> Storage:
    storage = Storage()
    storage.create(PARTITION, ObjectKey("", "ns"), {"metadata": {"name": "ns", "labels": {"env": "prod"}}})
    return storage


@pytest.mark.parametrize(
    ("selector", "request_", "expected"),
    [
        pytest.param({}, attributes(), True, id="no selector"),
        pytest.param(PROD, attributes(), True, id="the namespace has the label"),
        pytest.param(NOT_PROD, attributes(), False, id="the namespace is left out"),
        pytest.param(NOT_PROD, attributes(NODES, namespace=""), True, id="what is in no namespace is always meant"),
        pytest.param(
            NOT_PROD, attributes(NAMESPACES, new=labelled(env="dev")), True, id="a namespace by its new labels"
        ),
        pytest.param(
            NOT_PROD,
            attributes(NAMESPACES, Operation.DELETE, old=labelled(env="dev")),
            False,
            id="a namespace that goes by its stored labels",
        ),
    ],
)
def test_namespace_selector(storage: Storage, selector: Object, request_: Attributes, expected: bool) -> None:
    """It looks at the labels of the namespace in which the object is."""
    assert selects(made(namespaceSelector=selector), request_, storage) is expected


def test_a_namespace_that_is_gone(storage: Storage) -> None:
    """Without its labels nobody knows whether the webhook has to be called."""
    with pytest.raises(ApiError, match='namespaces "gone" not found'):
        selects(made(namespaceSelector=PROD), attributes(namespace="gone"), storage)


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        pytest.param(labelled(env="prod"), None, True, id="created with it"),
        pytest.param(labelled(), None, False, id="created without"),
        pytest.param(labelled(env="prod"), labelled(), True, id="added"),
        pytest.param(labelled(), labelled(env="prod"), True, id="removed"),
        pytest.param(labelled(), labelled(), False, id="never had it"),
        pytest.param(None, labelled(env="prod"), True, id="deleted"),
    ],
)
def test_object_selector(storage: Storage, new: Object | None, old: Object | None, expected: bool) -> None:
    """Either the old or the new object has to have the labels."""
    assert selects(made(objectSelector=PROD), attributes(new=new, old=old), storage) is expected
