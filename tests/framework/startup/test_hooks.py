"""What is a hook, and what only looks like one."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.framework.plugin_api import extension_points
from trainer.framework.plugin_api.extension_points import EXTENSION_POINTS, Plugin
from trainer.framework.startup.hooks import HOOKS, defects_of, hooks_of


def plugin(**members: Any) -> Any:
    """A plugin with these members."""
    return type("Sample", (), {"name": "sample", **members})()


def enforce(self: object, info: object, train_job: object) -> None:
    """A hook of two arguments."""


def test_all_extension_points_are_known() -> None:
    """Every protocol for plugins in the module is among the extension points, with at least one hook."""
    protocols = {
        member
        for member in vars(extension_points).values()
        if isinstance(member, type) and Plugin in member.__mro__ and member is not Plugin
    }
    assert set(EXTENSION_POINTS) == protocols
    assert {hook.extension_point for hook in HOOKS} == {protocol.__name__ for protocol in protocols}


def test_all_extension_points_are_explained() -> None:
    """A plugin can be written from the docstrings: each protocol, hook and attribute has one, and names its phase."""
    for protocol in EXTENSION_POINTS:
        assert (protocol.__doc__ or "").startswith(("Startup:", "PreExecution:", "Build", "PostExecution:"))
    for hook in HOOKS:
        (protocol,) = [protocol for protocol in EXTENSION_POINTS if protocol.__name__ == hook.extension_point]
        assert all(getattr(protocol, name).__doc__ for name in (hook.name, *hook.companions))


def test_hooks_are_found() -> None:
    """The hooks of a plugin are those that it has, in the order in which a TrainJob meets them."""
    found = hooks_of(plugin(build=enforce, ml_policy_sources=frozenset(), enforce_ml_policy=enforce))

    assert [str(hook) for hook in found] == [
        "def enforce_ml_policy(self, info, train_job)",
        "def build(self, info, train_job)",
    ]


@pytest.mark.parametrize(
    "members",
    [
        pytest.param({"build": enforce}, id="as declared"),
        pytest.param({"build": lambda self, *args: None}, id="any arguments"),
        pytest.param({"build": lambda self, info, train_job, extra=1: None}, id="one with a default"),
        pytest.param({"build": staticmethod(lambda info, train_job: None)}, id="static method"),
        pytest.param({"build": enforce, "_builds": enforce}, id="private method"),
        pytest.param({"build": enforce, "rebuild": enforce}, id="method like a hook that is there"),
        pytest.param({"build": enforce, "describe": enforce}, id="method of its own"),
        pytest.param({"build": enforce, "valid": True}, id="attribute like a hook"),
        pytest.param({"build": max}, id="written in C"),
        pytest.param({"build": enforce, "token": property(lambda _: 1 / 0)}, id="property that raises"),
    ],
)
def test_good_plugins(members: dict[str, Any]) -> None:
    """What works is not complained about."""
    assert not list(defects_of(plugin(**members)))


async def asynchronous(self: object, info: object, train_job: object) -> None:
    """A hook that would have to be awaited."""


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        pytest.param({}, "it has no hook, so it would never be called; give it one of watches, validate,", id="none"),
        pytest.param(
            {"enforce_ml_polcy": enforce},
            "enforce_ml_polcy is not a hook; did you mean enforce_ml_policy? If not, call it _enforce_ml_polcy",
            id="typo",
        ),
        pytest.param(
            {"build": enforce, "EnforcePodGroupPolicy": enforce},
            "EnforcePodGroupPolicy is not a hook; did you mean enforce_pod_group_policy?",
            id="as in Go",
        ),
        pytest.param({"build": enforce, "validation": enforce}, "did you mean validate?", id="noun"),
        pytest.param({"build": enforce, "watch": enforce}, "did you mean watches?", id="singular"),
        pytest.param(
            {"build": enforce, "validates": classmethod(enforce)}, "did you mean validate?", id="class method"
        ),
        pytest.param({"build": None}, "build takes other arguments than it is called with", id="None"),
        pytest.param(
            {"build": lambda self, info: None},
            "build takes other arguments than it is called with; write def build(self, info, train_job)",
            id="too few parameters",
        ),
        pytest.param(
            {"validate": enforce},
            "validate takes other arguments than it is called with; write def validate(self, info, old, new)",
            id="of another hook",
        ),
        pytest.param({"build": lambda self, a, b, *, c: None}, "build takes other arguments", id="keyword needed"),
        pytest.param(
            {"build": asynchronous},
            "build is async, but hooks only compute and are not awaited; write def build(self, info, train_job)",
            id="async",
        ),
        pytest.param(
            {"enforce_ml_policy": enforce},
            "enforce_ml_policy needs ml_policy_sources beside it; add ml_policy_sources = frozenset(...)",
            id="no sources",
        ),
        pytest.param(
            {"enforce_ml_policy": enforce, "ml_policy_sources": ["torch"]},
            "enforce_ml_policy needs ml_policy_sources beside it; add ml_policy_sources = frozenset(...)",
            id="sources that are no set",
        ),
    ],
)
def test_defects(members: dict[str, Any], problem: str) -> None:
    """What would never be called, or fail when it is, is reported with the remedy, once."""
    (defect,) = defects_of(plugin(**members))

    assert problem in defect
