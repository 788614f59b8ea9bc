"""Whether rules include others."""

from __future__ import annotations

import pytest

from trainer_devcluster.apiserver.authentication.user import User
from trainer_devcluster.apiserver.authorization.authorizer import Attributes
from trainer_devcluster.apiserver.authorization.rules import Rule, compacted, describe, uncovered

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


ALL = Rule(("*",), ("*",), ("*",))
ONE_POD = Rule(("get",), ("",), ("pods",), ("a",))
SCALE_RULE = Rule(("update",), ("apps",), ("*/scale",))


@pytest.mark.parametrize(
    ("held", "wanted", "missing"),
    [
        pytest.param([PODS], [PODS], [], id="the same"),
        pytest.param([ALL], [PODS, SCALE_RULE, ONE_POD], [], id="everything"),
        pytest.param([PODS], [ONE_POD], [], id="one of all names"),
        pytest.param([ONE_POD], [Rule(("get",), ("",), ("pods",))], [Rule(("get",), ("",), ("pods",))], id="all names"),
        pytest.param([ONE_POD], [Rule(("get",), ("",), ("pods",), ("a", "b"))],
                     [Rule(("get",), ("",), ("pods",), ("b",))], id="another name"),
        pytest.param([SCALE_RULE], [Rule(("update",), ("apps",), ("deployments/scale",))], [], id="any subresource"),
        pytest.param([SCALE_RULE], [Rule(("update",), ("apps",), ("deployments",))],
                     [Rule(("update",), ("apps",), ("deployments",))], id="not the resource"),
        pytest.param([Rule(("get",), ("",), ("pods",)), Rule(("list",), ("",), ("pods",))], [PODS], [],
                     id="together"),
        pytest.param([PODS], [Rule(("*",), ("",), ("pods",))], [Rule(("*",), ("",), ("pods",))], id="all verbs"),
        pytest.param([ALL], [Rule(("get",), paths=("/x",))], [Rule(("get",), paths=("/x",))], id="paths are apart"),
        pytest.param([Rule(("get",), paths=("/a/*",))], [Rule(("get",), paths=("/a/b", "/a/c/*"))], [], id="below"),
        pytest.param([], [Rule(("get", "list"), ("", "apps"), ("pods",))],
                     [Rule((verb,), (group,), ("pods",)) for group in ("", "apps") for verb in ("get", "list")],
                     id="every part"),
        pytest.param([], [], [], id="nothing"),
    ],
)  # fmt: skip
def test_uncovered(held: list[Rule], wanted: list[Rule], missing: list[Rule]) -> None:
    """What nobody holds is listed by group, resource, verb and name."""
    assert uncovered(held, wanted) == missing


def test_compacted() -> None:
    """Parts about the same resource become one rule again."""
    parts = uncovered([], [PODS, ONE_POD, Rule(("get",), paths=("/x",))])
    assert compacted(parts) == [Rule(("get",), paths=("/x",)), PODS, ONE_POD]


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        pytest.param(PODS, '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}', id="resources"),
        pytest.param(
            ONE_POD, '{APIGroups:[""], Resources:["pods"], ResourceNames:["a"], Verbs:["get"]}', id="one object"
        ),
        pytest.param(Rule(("get",), paths=("/x",)), '{NonResourceURLs:["/x"], Verbs:["get"]}', id="path"),
    ],
)
def test_description(rule: Rule, text: str) -> None:
    """Rules read as the real server prints them."""
    assert describe(rule) == text
