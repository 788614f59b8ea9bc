"""Elastic trainings, whose number of nodes can change while they run.

JobSet lets parallelism and completions of an Indexed Job change, both together, where its feature gate ElasticJobSet is
on. Elsewhere its webhook refuses that, and the nodes stay as they are.
"""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, NamedTuple

from trainer.api.jobset_labels import JOBSET_NAME, REPLICATED_JOB
from trainer.api.trainjob_status import NodeScale
from trainer.kube.objects import annotations_of, name_of

if TYPE_CHECKING:
    from trainer.framework import RuntimeInfo
    from trainer.kube.objects import Object

NODE_RANGE = "trainer.kubeflow.org/node-range"
"""Annotation of the JobSet of an elastic training: `<replicated Job>=<fewest>:<most>` nodes."""

ELASTIC_JOBSETS = "JobSet lets nodes come and go only where its feature gate ElasticJobSet is on"
"""Why a cluster may refuse another number of nodes, for the author of the TrainJob."""

_VALUE = re.compile(r"([a-z0-9-]+)=([0-9]+):([0-9]+)")
_SIZE = ("parallelism", "completions")


class ElasticJob(NamedTuple):
    """The replicated Job of a JobSet whose size may change."""

    name: str
    least: int
    most: int


def node_range(info: RuntimeInfo) -> str | None:
    """The value of the annotation; None for a training of a fixed size."""
    for pod_set in info.pod_sets:
        if pod_set.elastic is not None:
            return f"{pod_set.name}={pod_set.elastic.least}:{pod_set.elastic.most}"
    return None


def elastic_job(jobset: Object) -> ElasticJob | None:
    """The bounds in a JobSet's annotation; None for a fixed size."""
    found = _VALUE.fullmatch(annotations_of(jobset).get(NODE_RANGE, ""))
    return None if found is None else ElasticJob(found[1], int(found[2]), int(found[3]))


def resize(spec: Object, desired: Object) -> Object | None:
    """A copy of a JobSet's spec with the desired size of its elastic Job; None if it has that size.

    Args:
        spec: as it exists, or as it is to become.
        desired: the JobSet that is asked for.
    """
    elastic = elastic_job(desired)
    wanted = _job_spec(desired["spec"], elastic) if elastic is not None else None
    present = _job_spec(spec, elastic) if elastic is not None else None
    if wanted is None or present is None or all(present.get(field) == wanted[field] for field in _SIZE):
        return None
    resized = copy.deepcopy(spec)
    job = _job_spec(resized, elastic)
    assert job is not None
    job.update({field: wanted[field] for field in _SIZE})
    return resized


def node_scale(jobset: Object) -> NodeScale | None:
    """Number and bounds of the nodes of an elastic training; None for a fixed size."""
    elastic = elastic_job(jobset)
    job = _job_spec(jobset["spec"], elastic) if elastic is not None else None
    if elastic is None or job is None:
        return None
    selector = f"{JOBSET_NAME}={name_of(jobset)},{REPLICATED_JOB}={elastic.name}"
    return NodeScale(nodes=job["parallelism"], min_nodes=elastic.least, max_nodes=elastic.most, selector=selector)


def _job_spec(spec: Object, elastic: ElasticJob | None) -> Object | None:
    jobs = (job for job in spec.get("replicatedJobs") or [] if elastic is not None and job["name"] == elastic.name)
    job = next(jobs, None)
    found: Object | None = job["template"]["spec"] if job is not None else None
    return found
