"""Compute resources of runtime and TrainJob, joined."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.api.corev1 import ResourceRequirements
from trainer.framework.building.resources import is_exclusive, merged

GPU = "nvidia.com/gpu"


@pytest.mark.parametrize(
    ("runtime", "job", "expected"),
    [
        pytest.param({}, {"requests": {GPU: 2}}, {"requests": {GPU: 2}, "limits": {GPU: 2}}, id="only-requested"),
        pytest.param(
            {"limits": {GPU: 1}}, {"requests": {GPU: 2}}, {"requests": {GPU: 2}, "limits": {GPU: 2}}, id="limit-follows"
        ),
        pytest.param(
            {},
            {"requests": {GPU: 2}, "limits": {GPU: 3}},
            {"requests": {GPU: 2}, "limits": {GPU: 3}},
            id="what-contradicts-itself-is-left-to-validation",
        ),
    ],
)
def test_merged(runtime: Any, job: Any, expected: Any) -> None:
    """Amounts join by name; request and limit of a device stay equal."""
    before = {kind: dict(amounts) if isinstance(amounts, dict) else amounts for kind, amounts in runtime.items()}
    assert merged(runtime, ResourceRequirements.from_object(job)) == expected
    assert runtime == before


@pytest.mark.parametrize(
    ("name", "exclusive"),
    [
        pytest.param("cpu", False, id="native"),
        pytest.param("pod.kubernetes.io/x", False, id="of-kubernetes"),
        pytest.param("nvidia.com/gpu", True, id="gpu"),
    ],
)
def test_is_exclusive(name: str, exclusive: bool) -> None:
    """Devices have the domain of their maker in the name; huge pages are set aside as well."""
    assert is_exclusive(name) is exclusive
