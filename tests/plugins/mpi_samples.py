"""MPI runtimes and what they become, for tests."""

from __future__ import annotations

from typing import Any

from tests.framework.samples import replicated_job, runtime, train_job
from tests.framework.static_reader import StaticReader
from trainer.api.trainingruntime import ClusterTrainingRuntime
from trainer.framework.building.extraction import extract
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.runtime_info import RuntimeInfo
from trainer.framework.startup.registry import Registry
from trainer.kube.objects import Object
from trainer.plugins.jobset import JobSetPlugin
from trainer.plugins.mpi.plugin import MPI


def mpi_runtime(*jobs: Object, nodes: int = 2, jobset: Any = None, **mpi: Any) -> ClusterTrainingRuntime:
    """Nodes and a launcher, of the default implementation."""
    default = (replicated_job("node"), replicated_job("launcher"))
    return runtime(*(jobs or default), policy={"numNodes": nodes, "mpi": mpi}, jobset=jobset)


def enforced(blueprint: ClusterTrainingRuntime, **spec: Any) -> RuntimeInfo:
    """RuntimeInfo after the plugin."""
    job = train_job(**spec)
    info = extract(job, blueprint)
    MPI(StaticReader()).enforce_ml_policy(info, job)
    return info


def built(blueprint: ClusterTrainingRuntime, **spec: Any) -> dict[str, Object]:
    """All that a TrainJob becomes, by kind."""
    pipeline = Pipeline(Registry([MPI(StaticReader()), JobSetPlugin(StaticReader())]))
    return {each.resource.kind: each.object for each in pipeline.build(train_job(**spec), blueprint)}


def findings(blueprint: ClusterTrainingRuntime, **spec: Any) -> list[str]:
    """What the plugin says about a TrainJob."""
    job = train_job(**spec)
    return [str(each) for each in MPI(StaticReader()).validate(extract(job, blueprint), None, job)]
