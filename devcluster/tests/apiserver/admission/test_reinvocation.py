"""Reinvocation: which webhooks are called twice."""

from __future__ import annotations

from typing import Any

import pytest

from devcluster.tests.apiserver.admission.configurations import MUTATING, configuration, webhook
from trainer_devcluster.apiserver.admission.reinvocation import Reinvocation
from trainer_devcluster.apiserver.admission.webhook import webhooks_of

DEFAULTS: dict[str, Any] = {
    "failurePolicy": "Fail",
    "matchPolicy": "Exact",
    "timeoutSeconds": 10,
    "namespaceSelector": {},
    "objectSelector": {},
}


@pytest.mark.parametrize(
    ("policies", "changes", "expected"),
    [
        pytest.param(["IfNeeded", "Never"], [False, False], [], id="nothing has changed"),
        pytest.param(["IfNeeded", "Never"], [False, True], [0], id="changed after it"),
        pytest.param(["IfNeeded", "Never"], [True, False], [], id="changed by itself"),
        pytest.param(["Never", "Never"], [False, True], [], id="wants to be called once"),
        pytest.param(["Never", "IfNeeded"], [True, False], [], id="changed before it"),
        pytest.param(["IfNeeded", "IfNeeded"], [True, True], [0], id="both change"),
        pytest.param(["IfNeeded", "IfNeeded", "Never"], [False, False, True], [0, 1], id="several"),
    ],
)
def test_who_is_called_again(policies: list[str], changes: list[bool], expected: list[int]) -> None:
    """Webhooks with IfNeeded see what later ones have changed."""
    entries = [webhook(f"w{index}", reinvocationPolicy=policy, **DEFAULTS) for index, policy in enumerate(policies)]
    webhooks = webhooks_of(configuration(MUTATING, "c", *entries))
    reinvocation = Reinvocation()
    for hook, changed in zip(webhooks, changes, strict=True):
        reinvocation.note(hook, changed=changed)
    assert reinvocation.needed is any(changes)
    assert [index for index, hook in enumerate(webhooks) if reinvocation.repeats(hook)] == expected
