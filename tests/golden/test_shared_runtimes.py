"""All TrainJobs of a version of a runtime share one model of it, so no build may change it or hand out parts of it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.golden.rendering import EXAMPLES, examples
from tests.golden.test_v1alpha1 import CASES, runtime_of, train_job_of, with_posts
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.api.trainjob import TrainJob
from trainer.cli.documents import place, read_documents
from trainer.cli.offline.workspace import Workspace
from trainer.framework import BuildError, Component
from trainer.framework.runtimes.runtimes import read_runtime
from trainer.kube.objects import Object
from trainer.v1alpha1.client import decoded


def spoil(value: Any) -> None:
    """Empty all lists and mappings within a value, which shows who shares them."""
    if not isinstance(value, dict | list):
        return
    for each in value.values() if isinstance(value, dict) else value:
        spoil(each)
    value.clear()


def spoil_all(components: list[Component]) -> None:
    """Spoil what was built."""
    for component in components:
        spoil(component.object)


@pytest.mark.parametrize("case", CASES)
def test_v1alpha1(case: Object) -> None:
    """The runtime stays unchanged, although the built objects are changed afterwards."""
    shared, train_job = decoded(runtime_of(case)), TrainJob.from_object(decoded(train_job_of(case)))
    runtime = read_runtime(CLUSTER_TRAINING_RUNTIMES, shared)
    spoil_all(with_posts().build(train_job, runtime))
    assert shared == decoded(runtime_of(case))
    assert runtime == read_runtime(CLUSTER_TRAINING_RUNTIMES, decoded(runtime_of(case)))


@pytest.mark.parametrize("example", [pytest.param(each, id=str(each.with_suffix(""))) for each in examples()])
def test_v2alpha1(example: Path) -> None:
    """The same for the examples, also for those that are refused."""
    workspace = Workspace(place(read_documents(str(EXAMPLES / example)), namespace=None, default="default"))
    for document in workspace.documents:
        if not document.is_train_job:
            continue
        train_job = TrainJob.from_object(decoded(document.obj))
        runtime = anyio.run(workspace.of, train_job)
        before = runtime.model_copy(deep=True)
        with suppress(BuildError):
            spoil_all(workspace.pipeline.build(train_job, runtime))
        assert runtime == before
