"""Configurations: which webhooks a request concerns, and in what order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from packages.devcluster.tests.apiserver.admission.configurations import MUTATING as MUTATING_PATH
from packages.devcluster.tests.apiserver.admission.configurations import configuration, rule, webhook
from trainer.kube.objects import ObjectKey
from trainer.kube.resource import CONFIG_MAPS, SECRETS, Resource
from trainer_devcluster.apiserver.admission.attributes import Operation, RuleTarget
from trainer_devcluster.apiserver.admission.configurations import MUTATING, Configurations
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition, ResourceRegistry
from trainer_devcluster.apiserver.definitions.strategy import Strategy
from trainer_devcluster.apiserver.storage.storage import Storage

if TYPE_CHECKING:
    from trainer.kube.objects import Object

ENDPOINT = RuleTarget(Operation.CREATE, CONFIG_MAPS)
OLD = Resource("example.com", "v1beta1", "things", "Thing")
NEW = Resource("example.com", "v1", "things", "Thing")


def entry(name: str, **fields: Any) -> Object:
    defaults = {"matchPolicy": "Equivalent", "failurePolicy": "Fail", "timeoutSeconds": 10}
    return webhook(name, **{**defaults, "namespaceSelector": {}, "objectSelector": {}, **fields})


def store(storage: Storage, name: str, *webhooks: Object) -> Object:
    obj = configuration(MUTATING_PATH, name, *webhooks)
    return storage.create(MUTATING, ObjectKey("", name), obj)


def names(configurations: Configurations, endpoint: RuleTarget = ENDPOINT) -> list[str]:
    return [invocation.webhook.name.partition(".")[0] for invocation in configurations.concerned(endpoint)]


def test_order() -> None:
    """By name of the configuration, then as they stand in it; changes count at once."""
    storage = Storage()
    configurations = Configurations(storage, ResourceRegistry(), MUTATING)
    assert names(configurations) == []
    store(storage, "b", entry("b2"), entry("b1"))
    stored = store(storage, "a", entry("a1"), entry("secrets", rules=[rule("secrets")]))
    assert names(configurations) == ["a1", "b2", "b1"]
    assert names(configurations, RuleTarget(Operation.CREATE, SECRETS)) == ["secrets"]
    storage.delete(MUTATING, ObjectKey("", "a"), expected=stored["metadata"]["resourceVersion"])
    assert names(configurations) == ["b2", "b1"]


@pytest.mark.parametrize(
    ("policy", "versions", "expected"),
    [
        pytest.param("Equivalent", ["v1beta1"], [OLD], id="another version"),
        pytest.param("Equivalent", ["v1", "v1beta1"], [NEW], id="the version of the request first"),
        pytest.param("Exact", ["v1beta1"], [], id="exact"),
        pytest.param("Equivalent", ["v2"], [], id="a version that is not served"),
    ],
)
def test_match_policy(policy: str, versions: list[str], expected: list[Resource]) -> None:
    """A rule for one version also means requests that write the object in another, unless it is exact."""
    definitions = [ResourceDefinition(resource, Strategy()) for resource in (NEW, OLD)]
    storage = Storage()
    configurations = Configurations(storage, ResourceRegistry(definitions), MUTATING)
    wanted = {**rule("things", group="example.com"), "apiVersions": versions}
    store(storage, "a", entry("w", rules=[wanted], matchPolicy=policy))
    found = configurations.concerned(RuleTarget(Operation.CREATE, NEW))
    assert [invocation.endpoint.resource for invocation in found] == expected


def test_new_versions_count_at_once() -> None:
    """When another version of a resource comes to be served, rules that name it take effect."""
    registry, storage = ResourceRegistry([ResourceDefinition(NEW, Strategy())]), Storage()
    configurations = Configurations(storage, registry, MUTATING)
    store(storage, "a", entry("w", rules=[{**rule("things", group="example.com"), "apiVersions": ["v1beta1"]}]))
    assert names(configurations, RuleTarget(Operation.CREATE, NEW)) == []
    registry.add(ResourceDefinition(OLD, Strategy()))
    assert names(configurations, RuleTarget(Operation.CREATE, NEW)) == ["w"]
