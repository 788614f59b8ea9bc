"""Whether rules include others."""

from __future__ import annotations

import pytest

from trainer_devcluster.apiserver.authentication.user import User
from trainer_devcluster.apiserver.authorization.rules import AccessCheck, PolicyRule

BOB = User("bob")


def on(verb: str, resource: str, name: str = "", group: str = "") -> AccessCheck:
    """Something with a resource."""
    resource, _, subresource = resource.partition("/")
    return AccessCheck(BOB, verb, group, "v1", resource, subresource, "n", name)


def path(path: str, verb: str = "get") -> AccessCheck:
    """A request to a path without a resource."""
    return AccessCheck(BOB, verb, path=path)


PODS = PolicyRule(("get", "list"), ("",), ("pods",))
EVERYTHING = PolicyRule(("*",), ("*",), ("*",))
LOGS = PolicyRule(("get",), ("",), ("pods/log",))
ONE = PolicyRule(("*",), ("",), ("configmaps",), ("a", "b"))


@pytest.mark.parametrize(
    ("rule", "wanted", "allowed"),
    [
        pytest.param(LOGS, on("get", "pods/log"), True, id="subresource"),
        pytest.param(ONE, on("list", "configmaps"), False, id="a collection has no name"),
    ],
)
def test_allows(rule: PolicyRule, wanted: AccessCheck, allowed: bool) -> None:
    """A rule allows what its verbs, groups, resources and names, or its paths, all include."""
    assert rule.allows(wanted) is allowed


ALL = PolicyRule(("*",), ("*",), ("*",))
