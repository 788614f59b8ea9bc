from __future__ import annotations

import pytest

from tests.framework.samples import runtime_object
from trainer.controllers.metrics.frameworks import Frameworks
from trainer.kube.cache.cached_object import CachedObject


def runtime(name: str, namespace: str = "", **labels: str) -> CachedObject:
    domain = "trainer.kubeflow.org"
    metadata = {
        "name": name,
        "namespace": namespace,
        "labels": {f"{domain}/{label}": text for label, text in labels.items()},
    }
    return CachedObject.of(runtime_object() | {"metadata": metadata})


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({"framework": "torch"}, "torch", id="label"),
        pytest.param({}, "none", id="no-label"),
        pytest.param({"framework": ""}, "none", id="empty-label"),
    ],
)
def test_a_runtime_says_its_framework(labels: dict[str, str], expected: str) -> None:
    """The label decides, whatever the runtime is called."""
    frameworks = Frameworks()
    frameworks.on_add(runtime("jax-distributed", **labels), initial=True)
    assert frameworks.labels_of("jax-distributed") == ("jax-distributed", expected)


def test_frameworks_are_few() -> None:
    """The first fifty have names, whoever invents more of them."""
    frameworks = Frameworks()
    for number in range(100):
        frameworks.on_add(runtime(f"r{number}", framework=f"f{number}"), initial=True)
    shown = [frameworks.labels_of(f"r{number}")[1] for number in (0, 49, 50, 99)]
    assert shown == ["f0", "f49", "other", "other"]


def test_tenants_name_no_frameworks() -> None:
    """A TrainingRuntime has the framework of its label where an administrator has named it, in any order."""
    frameworks = Frameworks()
    for number in range(100):
        frameworks.on_add(runtime(f"r{number}", "team-a", framework=f"invented-{number}"), initial=True)
    frameworks.on_add(runtime("mine", "team-b", framework="torch"), initial=True)
    frameworks.on_add(runtime("torch-distributed", framework="torch"), initial=True)
    assert frameworks.labels_of("team-a/r0") == ("team-a/r0", "other")
    assert frameworks.labels_of("team-b/mine") == ("team-b/mine", "torch")


def test_a_runtime_that_is_gone_is_none() -> None:
    """As is one that never was."""
    frameworks = Frameworks()
    frameworks.on_add(runtime("a", framework="torch"), initial=True)
    frameworks.on_delete(runtime("a"), stale=False)
    assert [frameworks.labels_of(name) for name in ("a", "b", "")] == [("none", "none")] * 3
