from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trainer.kube.objects import is_at_its_end

if TYPE_CHECKING:
    from trainer.kube.objects import Object

DELETED = {"deletionTimestamp": "2026-11-21T12:00:00Z"}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param({"metadata": {}}, False, id="lives"),
        pytest.param({"metadata": DELETED}, True, id="deleted"),
        pytest.param({"metadata": {**DELETED, "finalizers": ["example.com/wait"]}}, False, id="finalizers"),
        pytest.param({"metadata": {**DELETED, "deletionGracePeriodSeconds": 30}}, False, id="grace period"),
        pytest.param({"metadata": DELETED, "spec": {"finalizers": ["kubernetes"]}}, False, id="namespace"),
        pytest.param({"metadata": DELETED, "spec": {"finalizers": []}}, True, id="namespace that is empty"),
    ],
)
def test_end_of_a_deletion(obj: Object, expected: bool) -> None:
    """The server keeps an object as long as something holds it."""
    assert is_at_its_end(obj) is expected
