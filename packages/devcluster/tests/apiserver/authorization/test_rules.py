"""Whether rules include others."""

from __future__ import annotations

import pytest

from trainer_devcluster.apiserver.authentication.user import User
from trainer_devcluster.apiserver.authorization.rules import AccessCheck, PolicyRule, compacted, describe, uncovered

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
SCALE = PolicyRule(("update",), ("*",), ("*/scale",))
LOGS = PolicyRule(("get",), ("",), ("pods/log",))
ONE = PolicyRule(("*",), ("",), ("configmaps",), ("a", "b"))
DOCUMENTS = PolicyRule(("get",), paths=("/api", "/apis/*"))
ALL_PATHS = PolicyRule(("*",), paths=("*",))


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
        pytest.param(PolicyRule(("get",), ("",), ("pods/*",)), on("get", "pods/log"), False, id="no such wildcard"),
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
        pytest.param(PolicyRule(()), on("get", "pods"), False, id="nothing"),
    ],
)
def test_allows(rule: PolicyRule, wanted: AccessCheck, allowed: bool) -> None:
    """A rule allows what its verbs, groups, resources and names, or its paths, all include."""
    assert rule.allows(wanted) is allowed


@pytest.mark.parametrize("rule", [PODS, ONE, DOCUMENTS])
def test_objects(rule: PolicyRule) -> None:
    """A rule is the same after a round trip through the API's form of it."""
    assert PolicyRule.parse(rule.to_object()) == rule


def test_absent_lists() -> None:
    """What a rule does not say is not written, but for its verbs."""
    assert PolicyRule.parse({}).to_object() == {"verbs": []}


ALL = PolicyRule(("*",), ("*",), ("*",))
ONE_POD = PolicyRule(("get",), ("",), ("pods",), ("a",))
SCALE_RULE = PolicyRule(("update",), ("apps",), ("*/scale",))


@pytest.mark.parametrize(
    ("held", "wanted", "missing"),
    [
        pytest.param([PODS], [PODS], [], id="the same"),
        pytest.param([ALL], [PODS, SCALE_RULE, ONE_POD], [], id="everything"),
        pytest.param([PODS], [ONE_POD], [], id="one of all names"),
        pytest.param([ONE_POD], [PolicyRule(("get",), ("",), ("pods",))],
                     [PolicyRule(("get",), ("",), ("pods",))], id="all names"),
        pytest.param([ONE_POD], [PolicyRule(("get",), ("",), ("pods",), ("a", "b"))],
                     [PolicyRule(("get",), ("",), ("pods",), ("b",))], id="another name"),
        pytest.param([SCALE_RULE], [PolicyRule(("update",), ("apps",), ("deployments/scale",))], [],
                     id="any subresource"),
        pytest.param([SCALE_RULE], [PolicyRule(("update",), ("apps",), ("deployments",))],
                     [PolicyRule(("update",), ("apps",), ("deployments",))], id="not the resource"),
        pytest.param([PolicyRule(("get",), ("",), ("pods",)), PolicyRule(("list",), ("",), ("pods",))], [PODS], [],
                     id="together"),
        pytest.param([PODS], [PolicyRule(("*",), ("",), ("pods",))],
                     [PolicyRule(("*",), ("",), ("pods",))], id="all verbs"),
        pytest.param([ALL], [PolicyRule(("get",), paths=("/x",))],
                     [PolicyRule(("get",), paths=("/x",))], id="paths are apart"),
        pytest.param([PolicyRule(("get",), paths=("/a/*",))], [PolicyRule(("get",), paths=("/a/b", "/a/c/*"))], [],
                     id="below"),
        pytest.param([], [PolicyRule(("get", "list"), ("", "apps"), ("pods",))],
                     [PolicyRule((verb,), (group,), ("pods",)) for group in ("", "apps") for verb in ("get", "list")],
                     id="every part"),
        pytest.param([], [], [], id="nothing"),
    ],
)  # fmt: skip
def test_uncovered(held: list[PolicyRule], wanted: list[PolicyRule], missing: list[PolicyRule]) -> None:
    """What nobody holds is listed by group, resource, verb and name."""
    assert uncovered(held, wanted) == missing


def test_compacted() -> None:
    """Parts about the same resource become one rule again."""
    parts = uncovered([], [PODS, ONE_POD, PolicyRule(("get",), paths=("/x",))])
    assert compacted(parts) == [PolicyRule(("get",), paths=("/x",)), PODS, ONE_POD]


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        pytest.param(PODS, '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}', id="resources"),
        pytest.param(
            ONE_POD, '{APIGroups:[""], Resources:["pods"], ResourceNames:["a"], Verbs:["get"]}', id="one object"
        ),
        pytest.param(PolicyRule(("get",), paths=("/x",)), '{NonResourceURLs:["/x"], Verbs:["get"]}', id="path"),
    ],
)
def test_description(rule: PolicyRule, text: str) -> None:
    """Rules read as the real server prints them."""
    assert describe(rule) == text
