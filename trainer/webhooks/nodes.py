"""The number of nodes that an elastic training starts with.

The scale subresource reads and writes `spec.trainer.numNodes`: an autoscaler cannot even ask about a TrainJob that
leaves it out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.trainjob import TrainJob
from trainer.framework.errors import BuildError

if TYPE_CHECKING:
    from trainer.framework.runtimes import RuntimeSource
    from trainer.kube.objects import Object


async def default_nodes(obj: Object, runtimes: RuntimeSource) -> Object:
    """The TrainJob with the fewest nodes of its elastic runtime, if it leaves their number out; else as it is.

    Args:
        obj: a new TrainJob; it may be wrong in any way, which validation tells.
        runtimes: where its runtime is looked up; one that does not exist yet sets no default.

    Raises:
        KubeError: the runtime could not be looked up.
    """
    try:
        train_job = TrainJob.from_object(_size_and_runtime(obj))
        if train_job.spec.trainer is not None and train_job.spec.trainer.num_nodes is not None:
            return obj
        policy = (await runtimes.of(train_job)).spec.ml_policy
    except (InvalidObjectError, BuildError):
        return obj
    bounds = policy.node_bounds if policy is not None else None
    if bounds is None:
        return obj
    spec = obj["spec"]
    trainer = (spec.get("trainer") or {}) | {"numNodes": bounds[0]}
    return obj | {"spec": spec | {"trainer": trainer}}


def _size_and_runtime(obj: Object) -> Object:
    """The TrainJob with nothing but what counts here: how long it takes to read the rest is up to its author."""
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return obj
    trainer = spec.get("trainer")
    nodes = {"numNodes": trainer.get("numNodes")} if isinstance(trainer, dict) else trainer
    kept = {"runtimeRef": spec.get("runtimeRef"), "trainer": nodes}
    return {"metadata": obj.get("metadata"), "spec": kept}
