"""Whether rules include others."""

from __future__ import annotations

import pytest

from trainer_devcluster.apiserver.authorization.coverage import compacted, describe, uncovered
from trainer_devcluster.apiserver.authorization.rules import Rule

ALL = Rule(("*",), ("*",), ("*",))
PODS = Rule(("get", "list"), ("",), ("pods",))
ONE_POD = Rule(("get",), ("",), ("pods",), ("a",))
SCALE = Rule(("update",), ("apps",), ("*/scale",))


@pytest.mark.parametrize(
    ("held", "wanted", "missing"),
    [
        pytest.param([PODS], [PODS], [], id="the same"),
        pytest.param([ALL], [PODS, SCALE, ONE_POD], [], id="everything"),
        pytest.param([PODS], [ONE_POD], [], id="one of all names"),
        pytest.param([ONE_POD], [Rule(("get",), ("",), ("pods",))], [Rule(("get",), ("",), ("pods",))], id="all names"),
        pytest.param([ONE_POD], [Rule(("get",), ("",), ("pods",), ("a", "b"))],
                     [Rule(("get",), ("",), ("pods",), ("b",))], id="another name"),
        pytest.param([SCALE], [Rule(("update",), ("apps",), ("deployments/scale",))], [], id="any subresource"),
        pytest.param([SCALE], [Rule(("update",), ("apps",), ("deployments",))],
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
