"""PlainML: training that needs no help to find its nodes (KEP-2170, runtimes without a policy source)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.framework.trainer_step import check_one_process_per_node, trainer_env

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.api.trainjob import TrainJob
    from trainer.framework.runtime_info import RuntimeInfo
    from trainer.kube.field_errors import FieldError


class PlainML:
    """Sets the TrainJob's environment variables when the runtime names no machine learning framework."""

    name = "plainml"
    ml_policy_sources: frozenset[str] = frozenset()

    def validate(self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob) -> Iterator[FieldError]:  # noqa: ARG002
        """Refuse more than one process per node."""
        if info.ml_policy.source is None:
            yield from check_one_process_per_node(new)

    def enforce_ml_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Merge `spec.trainer.env` into the training container; the number of nodes is in the pod set already."""
        if info.ml_policy.source is None and train_job.spec.trainer is not None:
            info.main_container.set_env(trainer_env(train_job))
