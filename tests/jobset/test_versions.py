"""What the shipped runtimes ask of the cluster's JobSet, by the schemas of two of its releases.

`schemas` has those of `jobsets.jobset.x-k8s.io` in v0.8.1 and v0.12.0, without descriptions.
"""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path

import pytest

from tests.golden.test_pods_for_schedulers import RUNTIMES, jobset
from trainer.api.schema_check import SchemaNode, check_value, compile_schema
from trainer.kube.objects import Object, name_of
from trainer.v1alpha1.discovery import Version

OLD, NEW = "v0.8.1", "v0.12.0"

LAUNCHERS = {"failurePolicy.rules[].onJobFailureMessagePatterns"}
"""Since JobSet v0.10."""
CLAIMS = {"volumeClaimPolicies"}
"""Since JobSet v0.11."""
TWO_STEPS_BEFORE = {"replicatedJobs[].dependsOn"}
"""A step may wait for five others since JobSet v0.9, for one before."""
GANG = {"replicatedJobs[].template.spec.template.spec.schedulingGroup"}
"""Since JobSet v0.12."""


@cache
def schema(release: str) -> SchemaNode:
    """That of the specs of JobSets in a release."""
    content = json.loads((Path(__file__).parent / "schemas" / f"{release}.json").read_text(encoding="utf-8"))
    return compile_schema(content["properties"]["spec"])


def refused(made: Object, release: str) -> set[str]:
    """The fields of a JobSet that a release does not accept."""
    errors = check_value(made["spec"], schema(release))
    return {"[]".join(part.partition("]")[2] or part for part in error.field.split("[")) for error in errors}


def needed(version: Version, runtime: str) -> set[str]:
    """The fields of a shipped runtime that JobSet v0.8 does not accept."""
    if runtime.startswith(("torchtune-", "torch-tune-")):
        return CLAIMS | TWO_STEPS_BEFORE
    if version == "v2alpha1" and runtime.startswith(("deepspeed-", "mlx-", "mpi-")):
        return LAUNCHERS
    return set()


@pytest.mark.parametrize(("version", "runtime"), RUNTIMES)
def test_shipped_runtimes(version: Version, runtime: Object) -> None:
    """docs/install.md says which of them need a newer JobSet than v0.8; v0.12 accepts all."""
    made = jobset(version, copy.deepcopy(runtime))
    assert refused(made, NEW) == set()
    assert refused(made, OLD) == needed(version, name_of(runtime))


@pytest.mark.parametrize(("version", "runtime"), RUNTIMES)
def test_gangs_by_kubernetes(version: Version, runtime: Object) -> None:
    """Gangs by the Workload API need JobSet v0.12, whatever the runtime."""
    own = copy.deepcopy(runtime)
    own["spec"]["podGroupPolicy"] = {"workload": {}}
    made = jobset(version, own)
    assert refused(made, NEW) == set()
    assert refused(made, OLD) == needed(version, name_of(runtime)) | GANG
