from __future__ import annotations

from copy import deepcopy

import pytest

from packages.devcluster.tests.apiserver.kinds.context import created, updated
from trainer_devcluster.apiserver.kinds.namespace import NamespaceStrategy

STRATEGY = NamespaceStrategy()


@pytest.mark.parametrize(
    ("subresource", "left"),
    [pytest.param(None, ["kubernetes"], id="ordinary update"), pytest.param("finalize", [], id="finalize")],
)
def test_only_finalize_removes_the_finalizer(subresource: str | None, left: list[str]) -> None:
    """A user cannot make a namespace vanish around its content."""
    old, _ = created(STRATEGY, {"metadata": {"name": "n"}})
    new = deepcopy(old)
    new["spec"] = {"finalizers": []}
    assert updated(STRATEGY, new, old, subresource) == []
    assert new["spec"]["finalizers"] == left
