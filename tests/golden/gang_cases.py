"""Gangs of Kubernetes' Workload API: what TrainJobs become where the cluster serves one version of it or another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.framework.static_reader import StaticReader
from trainer.api.trainingruntime import ClusterTrainingRuntime
from trainer.api.trainjob import TrainJob
from trainer.framework import Component, Pipeline, Reader
from trainer.kube.objects import Object
from trainer.kubernetes_yaml import dump, join
from trainer.manager import built_in_plugins
from trainer.plugins.workload.versions import VERSIONS, WorkloadVersion
from trainer.workloads.scheduling_groups import GROUP

CASES = Path(__file__).parent / "gangs"
EXPECTED = CASES / "expected"


def cases() -> list[str]:
    """Their names: each is a file with a runtime and a TrainJob."""
    return sorted(file.stem for file in CASES.glob("*.yaml"))


def expected(case: str) -> Path:
    """Where the objects of a case are kept."""
    return EXPECTED / f"{case}.yaml"


def reader_of(version: WorkloadVersion) -> Reader:
    """The cache of a cluster that serves one version, with all feature gates on."""
    others = [each for each in VERSIONS if each is not version]
    return StaticReader(unserved=[kind for each in others for kind in (each.pod_groups, each.workloads)])


def components(case: str, version: WorkloadVersion) -> list[Component]:
    """What the TrainJob becomes."""
    blueprint, job = yaml.load_all((CASES / f"{case}.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
    pipeline = Pipeline(built_in_plugins(reader_of(version)))
    model = ClusterTrainingRuntime.from_object(blueprint, strict=True)
    return pipeline.build(TrainJob.from_object(job, strict=True), model)


def gang_objects(case: str) -> Iterator[Object]:
    """PodGroup and Workload in each version of the Workload API."""
    for version in VERSIONS:
        yield from (each.object for each in components(case, version) if each.resource.group == GROUP)


def text_of(case: str) -> str:
    """The objects of the gang in each version, and the JobSet, which is the same in all of them."""
    jobsets = [[each.object for each in components(case, version) if each.runs_pods] for version in VERSIONS]
    first, *others = jobsets
    assert all(each == first for each in others)
    return join(dump(obj) for obj in (*gang_objects(case), *first))
