"""Trainings in gangs: runtimes with the policy, and TrainJobs whose nodes take one slot each."""

from __future__ import annotations

from typing import Any

from e2e.cluster import train_job, training_runtime
from e2e.gangs.slots import Slots

Object = dict[str, Any]

RUNS_FOR = "devcluster.trainer/runs-for"
"""Annotation by which fake pods of the dev cluster end."""
SLEEP = "import sys, time; time.sleep(float(sys.argv[1]))"
FOR_LONG = 600.0
"""Seconds, until somebody ends it."""
AT_ONCE: Object = {"terminationGracePeriodSeconds": 0}


def gang_runtime(
    name: str = "gang", *, seconds: float = 1, policy: Object | None = None, pod: Object | None = None
) -> Object:
    """A runtime for trainings that end by themselves.

    Args:
        name: its name.
        seconds: after which fake pods of it end.
        policy: `podGroupPolicy`. Default: a gang of the Workload API without options.
        pod: further fields of the spec of its pods.
    """
    runtime = training_runtime(name, annotations={RUNS_FOR: f"{seconds * 1000:.0f}ms"}, pod=AT_ONCE | (pod or {}))
    runtime["spec"]["podGroupPolicy"] = {"workload": {}} if policy is None else policy
    return runtime


def training(name: str, slots: Slots, *, nodes: int, runtime: str = "gang", seconds: float = 1, **spec: Any) -> Object:
    """A TrainJob whose nodes take a slot each for some seconds; `runtime` is of its namespace."""
    reference = {"kind": "TrainingRuntime", "name": runtime}
    job = train_job(name, SLEEP, nodes=nodes, arguments=[str(seconds)], runtimeRef=reference, **spec)
    job["spec"]["trainer"]["resourcesPerNode"] = slots.per_node
    return job
