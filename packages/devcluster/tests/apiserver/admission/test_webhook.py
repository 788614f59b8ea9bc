"""Rules: which requests they mean."""

from __future__ import annotations

from typing import Any

import pytest

from packages.devcluster.tests.apiserver.admission.configurations import configuration, webhook
from trainer.kube.errors import ApiError
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import CONFIG_MAPS, PODS, Resource
from trainer.workloads import JOBSETS
from trainer_devcluster.apiserver.admission.attributes import Attributes, Operation, RuleTarget
from trainer_devcluster.apiserver.admission.namespaces import PARTITION
from trainer_devcluster.apiserver.admission.webhook import Webhook, WebhookRule, is_exempt, selects, webhooks_of
from trainer_devcluster.apiserver.authentication.user import User
from trainer_devcluster.apiserver.storage.storage import Storage


@pytest.mark.parametrize(
    ("changed", "endpoint", "expected"),
    [
        pytest.param({}, RuleTarget(Operation.CREATE, PODS, "binding"), False, id="a subresource is not its object"),
        pytest.param({"scope": "Cluster"}, RuleTarget(Operation.CREATE, PODS), False, id="not of the cluster"),
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
        pytest.param(NOT_PROD, attributes(), False, id="the namespace is left out"),
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
        pytest.param(labelled(env="prod"), labelled(), True, id="added"),
        pytest.param(labelled(), labelled(env="prod"), True, id="removed"),
    ],
)
def test_object_selector(storage: Storage, new: Object | None, old: Object | None, expected: bool) -> None:
    """Either the old or the new object has to have the labels."""
    assert selects(made(objectSelector=PROD), attributes(new=new, old=old), storage) is expected
