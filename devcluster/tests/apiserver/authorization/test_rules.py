"""What one entry of a role allows."""

from __future__ import annotations

import pytest

from trainer_devcluster.apiserver.authentication.user import User
from trainer_devcluster.apiserver.authorization.authorizer import Attributes
from trainer_devcluster.apiserver.authorization.rules import Rule

BOB = User("bob")


def on(verb: str, resource: str, name: str = "", group: str = "") -> Attributes:
    """Something with a resource."""
    resource, _, subresource = resource.partition("/")
    return Attributes(BOB, verb, group, "v1", resource, subresource, "n", name)


def path(path: str, verb: str = "get") -> Attributes:
    """A request to a path without a resource."""
    return Attributes(BOB, verb, path=path)


PODS = Rule(("get", "list"), ("",), ("pods",))
EVERYTHING = Rule(("*",), ("*",), ("*",))
SCALE = Rule(("update",), ("*",), ("*/scale",))
LOGS = Rule(("get",), ("",), ("pods/log",))
ONE = Rule(("*",), ("",), ("configmaps",), ("a", "b"))
DOCUMENTS = Rule(("get",), paths=("/api", "/apis/*"))
ALL_PATHS = Rule(("*",), paths=("*",))


@pytest.mark.parametrize(
    ("rule", "wanted", "allowed"),
    [
        pytest.param(PODS, on("list", "pods"), True, id="as it says"),
        pytest.param(PODS, on("watch", "pods"), False, id="another verb"),
        pytest.param(PODS, on("list", "pods", group="apps"), False, id="another group"),
        pytest.param(PODS, on("list", "secrets"), False, id="another resource"),
        pytest.param(PODS, on("get", "pods/log"), False, id="a resource is not its subresources"),
        pytest.param(LOGS, on("get", "pods/log"), True, id="subresource"),
        pytest.param(LOGS, on("get", "pods"), False, id="a subresource is not its resource"),
        pytest.param(SCALE, on("update", "deployments/scale", group="apps"), True, id="subresource of anything"),
        pytest.param(SCALE, on("update", "deployments", group="apps"), False, id="only the subresource"),
        pytest.param(Rule(("get",), ("",), ("pods/*",)), on("get", "pods/log"), False, id="no such wildcard"),
        pytest.param(EVERYTHING, on("made-up", "pods/log", "p", "g"), True, id="wildcards"),
        pytest.param(EVERYTHING, path("/api"), False, id="resources are not paths"),
        pytest.param(ONE, on("get", "configmaps", "b"), True, id="name"),
        pytest.param(ONE, on("get", "configmaps", "c"), False, id="another name"),
        pytest.param(ONE, on("list", "configmaps"), False, id="a collection has no name"),
        pytest.param(DOCUMENTS, path("/api"), True, id="path"),
        pytest.param(DOCUMENTS, path("/api/"), False, id="exactly the path"),
        pytest.param(DOCUMENTS, path("/apis/batch/v1"), True, id="path below"),
        pytest.param(DOCUMENTS, path("/apis"), False, id="not below"),
        pytest.param(DOCUMENTS, path("/api", "post"), False, id="another method"),
        pytest.param(ALL_PATHS, path("/"), True, id="all paths"),
        pytest.param(ALL_PATHS, on("get", "pods"), False, id="paths are not resources"),
        pytest.param(Rule(()), on("get", "pods"), False, id="nothing"),
    ],
)
def test_allows(rule: Rule, wanted: Attributes, allowed: bool) -> None:
    """A rule allows what its verbs, groups, resources and names, or its paths, all include."""
    assert rule.allows(wanted) is allowed


@pytest.mark.parametrize("rule", [PODS, ONE, DOCUMENTS])
def test_objects(rule: Rule) -> None:
    """A rule is the same after a round trip through the API's form of it."""
    assert Rule.parse(rule.to_object()) == rule


def test_absent_lists() -> None:
    """What a rule does not say is not written, but for its verbs."""
    assert Rule.parse({}).to_object() == {"verbs": []}
