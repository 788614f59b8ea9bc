"""The number of nodes that an elastic training starts with: on creation, and when `runtimeRef` changes.

The scale subresource reads and writes `spec.trainer.numNodes`: an autoscaler cannot even ask about a TrainJob that
leaves it out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.trainjob import TrainJob
from trainer.api.trainjob_status import ConditionType
from trainer.framework.plugin_api.errors import BuildError
from trainer.kube.objects import is_condition_true

if TYPE_CHECKING:
    from trainer.framework.runtimes.runtimes import RuntimeSource
    from trainer.kube.objects import Object


async def default_nodes(obj: Object, runtimes: RuntimeSource, old: Object | None = None) -> Object:
    """The TrainJob with the fewest nodes of its elastic runtime, if it leaves their number out; else as it is.

    When another runtime is named, a number that is the default of the former one gives way to that of the new one.

    Args:
        obj: the TrainJob as it was sent; it may be wrong in any way, which validation tells.
        runtimes: where its runtime is looked up; one that does not exist yet sets no default.
        old: what it replaces. Defaults to nothing.

    Raises:
        KubeError: the runtime could not be looked up.
    """
    if old is not None:
        if _runtime_ref(obj) == _runtime_ref(old) or is_condition_true(old, ConditionType.CREATED):
            return obj
        former = await _fewest_nodes(old, runtimes)
        if former is not None and _nodes(obj) == _nodes(old) == former:
            obj = _with_nodes(obj, None)
    if _nodes(obj) is not None:
        return obj
    fewest = await _fewest_nodes(obj, runtimes)
    return obj if fewest is None else _with_nodes(obj, fewest)


async def _fewest_nodes(obj: Object, runtimes: RuntimeSource) -> int | None:
    """Those of the elastic runtime; None for every other."""
    try:
        policy = (await runtimes.of(TrainJob.from_object(_size_and_runtime(obj)))).spec.ml_policy
    except (InvalidObjectError, BuildError):
        return None
    bounds = policy.node_bounds if policy is not None else None
    return None if bounds is None else bounds[0]


def _runtime_ref(obj: Object) -> object:
    spec = obj.get("spec")
    return spec.get("runtimeRef") if isinstance(spec, dict) else None


def _nodes(obj: Object) -> object:
    spec = obj.get("spec")
    trainer = spec.get("trainer") if isinstance(spec, dict) else None
    return trainer.get("numNodes") if isinstance(trainer, dict) else None


def _with_nodes(obj: Object, nodes: int | None) -> Object:
    spec = obj["spec"]
    others = {name: value for name, value in (spec.get("trainer") or {}).items() if name != "numNodes"}
    return obj | {"spec": spec | {"trainer": others if nodes is None else others | {"numNodes": nodes}}}


def _size_and_runtime(obj: Object) -> Object:
    """The TrainJob with nothing but what counts here: how long it takes to read the rest is up to its author."""
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return obj
    trainer = spec.get("trainer")
    nodes = {"numNodes": trainer.get("numNodes")} if isinstance(trainer, dict) else trainer
    kept = {"runtimeRef": spec.get("runtimeRef"), "trainer": nodes}
    return {"metadata": obj.get("metadata"), "spec": kept}
