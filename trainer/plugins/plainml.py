"""PlainML: training that needs no help to find its nodes (KEP-2170, runtimes without a policy source)."""

from __future__ import annotations

from collections.abc import Iterator

from trainer.api.trainjob import TrainJob
from trainer.framework import RuntimeInfo, check_one_process_per_node
from trainer.kube.field_errors import FieldError


class PlainML:
    """Serves runtimes without a machine learning framework: it sets the number of nodes and the trainer's settings."""

    name = "plainml"

    def validate(self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob) -> Iterator[FieldError]:
        """Refuse more than one process per node."""
        if info.ml_policy.source is None:
            yield from check_one_process_per_node(new)
