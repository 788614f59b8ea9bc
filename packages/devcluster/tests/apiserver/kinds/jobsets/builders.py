"""JobSets as they come out of the defaults of their schema, for tests."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from packages.devcluster.tests.apiserver.kinds.context import created, make_context
from trainer.kube.errors import ApiError
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.kinds.jobsets.jobset import JobSetStrategy
from trainer_devcluster.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates


def make_replicated_job(name: str = "node", **fields: Any) -> Object:
    """A replicated job of one Job with two pods."""
    template = {"spec": {"completions": 2, "parallelism": 2, "template": {"spec": {"containers": [{"name": "c"}]}}}}
    return {"name": name, "groupName": "default", "replicas": 1, "template": template, **fields}


def make_jobset(*replicated_jobs: Object, name: str = "js", **spec: Any) -> Object:
    """A JobSet; by default with one replicated job."""
    return {
        "metadata": {"name": name},
        "spec": {"replicatedJobs": list(replicated_jobs) or [make_replicated_job()], **spec},
    }


def stored(jobset: Object, gates: FeatureGates = DEFAULT_FEATURE_GATES) -> Object:
    """The JobSet with the defaults of the webhook, which finds nothing wrong."""
    obj, causes = created(JobSetStrategy(), deepcopy(jobset))
    assert causes == []
    return obj


def complaints(jobset: Object, *others: Object, gates: FeatureGates = DEFAULT_FEATURE_GATES) -> list[str]:
    """What the webhook finds wrong with a new JobSet beside other objects, each with its field."""
    try:
        created(JobSetStrategy(), deepcopy(jobset), *others)
    except ApiError as error:
        return _causes(error)
    return []


def complaints_about_change(new: Object, old: Object, gates: FeatureGates = DEFAULT_FEATURE_GATES) -> list[str]:
    """What the webhook finds wrong with a changed JobSet; only new ones get defaults."""
    try:
        JobSetStrategy().validate_update(new, old, make_context(gates=gates))
    except ApiError as error:
        return _causes(error)
    return []


def _causes(error: ApiError) -> list[str]:
    assert error.code == 422
    return [f"{cause['field']}: {cause['message']}" for cause in error.causes]
