from __future__ import annotations

from copy import deepcopy

import pytest

from packages.devcluster.tests.apiserver.kinds.context import created, updated
from trainer_devcluster.apiserver.kinds.namespace import NamespaceStrategy

STRATEGY = NamespaceStrategy()


def test_new_namespace_is_active_and_held() -> None:
    """The finalizer lets the namespace controller empty it; the label serves namespace selectors."""
    namespace, causes = created(STRATEGY, {"metadata": {"name": "n"}})
    assert causes == []
    assert namespace["spec"] == {"finalizers": ["kubernetes"]}
    assert namespace["status"] == {"phase": "Active"}
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "n"}


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
