"""PlainML: training that needs no help to find its nodes (KEP-2170, runtimes without a policy source)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainer.api.trainjob import TrainJob
from trainer.framework import (
    AdmissionWarning,
    Ancestor,
    Finding,
    PodSet,
    RuntimeInfo,
    check_one_process_per_node,
    trainer_env,
)

_TELLS_NODES_APART = re.compile(r"COMPLETION_INDEX|completion-index|RANK|WORLD_SIZE|MASTER|COORDINATOR|RDZV|TF_CONFIG")
"""In a command, or the name of a variable: somebody has thought of several nodes."""


class PlainML:
    """Serves runtimes without a machine learning framework: it sets the number of nodes and the trainer's settings."""

    name = "plainml"

    def validate(self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob) -> Iterator[Finding]:
        """Refuse more than one process per node, and warn of nodes that all do the same work."""
        if info.ml_policy.source is not None:
            return
        yield from check_one_process_per_node(new)
        stated = new.spec.trainer.num_nodes if new.spec.trainer is not None else None
        nodes = next((each for each in info.pod_sets if each.ancestor == Ancestor.TRAINER), None)
        if stated is None or stated == 1 or nodes is None or _is_for_several(info, nodes):
            return
        container = nodes.main_container
        words = [*container.command, *container.args]
        words += [str(variable.get("name")) for variable in (*container.env, *trainer_env(new))]
        if not any(map(_TELLS_NODES_APART.search, words)):
            text = (
                f"the {stated} nodes do not know each other, since {info.runtime} has no framework in its mlPolicy: "
                "each runs the whole training, unless that divides its work by JOB_COMPLETION_INDEX; else name a "
                "runtime of the framework"
            )
            yield AdmissionWarning("spec.trainer.numNodes", text)


def _is_for_several(info: RuntimeInfo, nodes: PodSet) -> bool:
    """Whether the author of the runtime has thought of several nodes."""
    job = info.job_of(nodes).template.spec
    return any((number or 1) > 1 for number in (info.ml_policy.num_nodes, job.parallelism, job.completions))
