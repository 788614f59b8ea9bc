"""How much larger than TrainJob and runtime their JobSet becomes."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.api.trainjob import TrainJob
from trainer.framework.building.growth import check_growth
from trainer.framework.plugin_api.errors import BuildError

KIB = 1024


def train_job(**spec: Any) -> TrainJob:
    """A TrainJob with settings that stand in many places."""
    return TrainJob.from_object({"metadata": {"name": "t"}, "spec": {"runtimeRef": {"name": "torch"}, **spec}})


def override(size: int, *targets: str) -> dict[str, Any]:
    """An override of a size for some replicated Jobs."""
    env = [{"name": "A", "value": "a" * size}]
    return {"targetJobs": [{"name": name} for name in targets], "containers": [{"name": "c", "env": env}]}


@pytest.mark.parametrize(
    ("settings", "jobs", "field"),
    [
        pytest.param({"annotations": {"a": "a" * 256 * KIB}}, 100, "spec.annotations", id="annotations"),
        pytest.param({"labels": {f"l{n}": "a" * 60 for n in range(1000)}}, 100, "spec.labels", id="labels"),
        pytest.param(
            {"podSpecOverrides": [override(10, "a"), override(100 * KIB, *(f"n{n}" for n in range(100)))]},
            100,
            "spec.podSpecOverrides[1]",
            id="override",
        ),
    ],
)
def test_too_large(settings: dict[str, Any], jobs: int, field: str) -> None:
    """What no API server would take is refused before it is made, with the setting that grows the most."""
    with pytest.raises(BuildError) as refusal:
        check_growth(train_job(**settings), jobs)
    assert [error.field for error in refusal.value.errors] == [field]
    assert "which may have 3072 KiB" in str(refusal.value)


@pytest.mark.parametrize(
    ("settings", "jobs"),
    [
        pytest.param({}, 100, id="nothing"),
        pytest.param({"annotations": {"a": "a" * 256 * KIB}}, 5, id="a-few-jobs"),
        pytest.param({"podSpecOverrides": [override(100 * KIB, *(f"n{n}" for n in range(100)))]}, 3, id="few-exist"),
    ],
)
def test_usual(settings: dict[str, Any], jobs: int) -> None:
    """What fits is none of its business."""
    check_growth(train_job(**settings), jobs)
