from __future__ import annotations

import pytest

from tests.framework.samples import runtime_object
from trainer.controllers.metrics.frameworks import Frameworks
from trainer.kube.cache.cached_object import CachedObject


def runtime(name: str, **labels: str) -> CachedObject:
    domain = "trainer.kubeflow.org"
    metadata = {"name": name, "labels": {f"{domain}/{label}": text for label, text in labels.items()}}
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
    assert frameworks.of("jax-distributed") == expected


def test_frameworks_are_few() -> None:
    """The first fifty have names, whoever invents more of them."""
    frameworks = Frameworks()
    for number in range(100):
        frameworks.on_add(runtime(f"r{number}", framework=f"f{number}"), initial=True)
    assert [frameworks.of(f"r{number}") for number in (0, 49, 50, 99)] == ["f0", "f49", "other", "other"]
