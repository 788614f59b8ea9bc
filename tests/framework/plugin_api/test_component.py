"""What pods go by may change until they run."""

from __future__ import annotations

import pytest

from tests.framework.samples import train_job
from tests.framework.static_reader import StaticReader
from trainer.framework.plugin_api.component import revise_while_suspended
from trainer.kube.objects import Object


def jobset(name: str = "demo", *, suspend: bool) -> Object:
    """A JobSet; JobSet leaves `suspend` out where it is false."""
    spec = {"suspend": True} if suspend else {}
    return {"kind": "JobSet", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


@pytest.mark.parametrize(
    ("objects", "suspend", "follows"),
    [
        pytest.param([], False, True, id="no-jobset-yet"),
        pytest.param([jobset(suspend=False)], True, True, id="to-be-suspended"),
        pytest.param([jobset(suspend=False)], False, False, id="running"),
    ],
)
def test_revision(objects: list[Object], suspend: bool, follows: bool) -> None:
    """The object follows its TrainJob as long as the JobSet does not run, and is then left alone."""
    desired = {"kind": "ConfigMap", "data": {"a": "new"}}
    revision = revise_while_suspended(StaticReader(*objects), train_job(suspend=suspend), desired)(
        {"data": {"a": "old"}}
    )
    assert (revision and revision.object) == (desired if follows else None)
