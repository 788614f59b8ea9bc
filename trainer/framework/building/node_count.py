"""The number of nodes of a training, and its bounds where the training is elastic."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from trainer.framework.plugin_api.runtime_info import NodeRange

if TYPE_CHECKING:
    from trainer.api.trainingruntime import MLPolicy


class NodeCount(NamedTuple):
    """The nodes of a training."""

    nodes: int
    """The number at the start."""
    elastic: NodeRange | None
    """The bounds of an elastic training; None for a fixed number."""


def node_count(policy: MLPolicy, of_template: int, stated: int | None = None) -> NodeCount:
    """Webhooks, build and commands all ask this; nothing that a webhook defaults is needed.

    Each bound of an elastic policy defaults to the other, and both to the number at the start.

    Args:
        policy: of the runtime.
        of_template: pods of the Job that trains, as its template has them.
        stated: `numNodes` of the TrainJob. Defaults to the least of an elastic training, else `numNodes` of the policy,
            else the number of the template.
    """
    count = of_template if policy.num_nodes is None else policy.num_nodes
    elastic = policy.torch.elastic_policy if policy.torch is not None else None
    if elastic is None:
        return NodeCount(count if stated is None else stated, None)
    if stated is None:
        stated = count if elastic.bounds is None else elastic.bounds[0]
    return NodeCount(stated, NodeRange(*(elastic.bounds or (stated, stated))))
