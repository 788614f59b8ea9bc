"""JAX: distributed JAX with one process on every node (KEP-2145)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.framework.runtime_info import NODE_RANK, RENDEZVOUS_PORT
from trainer.framework.trainer_step import check_one_process_per_node

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.api.trainjob import TrainJob
    from trainer.framework.runtime_info import RuntimeInfo
    from trainer.kube.field_errors import FieldError


class Jax:
    """Tells `jax.distributed.initialize()` how many processes there are, which one this is, and where the first is.

    The training passes the variables on: `jax.distributed.initialize(os.environ["JAX_COORDINATOR_ADDRESS"],
    int(os.environ["JAX_NUM_PROCESSES"]), int(os.environ["JAX_PROCESS_ID"]))`.
    """

    name = "jax"
    ml_policy_sources = frozenset({"jax"})

    def validate(self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob) -> Iterator[FieldError]:  # noqa: ARG002
        """Refuse more than one process per node."""
        if info.ml_policy.jax is not None:
            yield from check_one_process_per_node(new)

    def enforce_ml_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:  # noqa: ARG002
        """Set the `JAX_*` variables of the training container; variables of the TrainJob win over them."""
        if info.ml_policy.jax is None:
            return
        container = info.main_container
        container.set_env(
            [
                {"name": "JAX_NUM_PROCESSES", "value": str(info.trainer.count)},
                {"name": "JAX_PROCESS_ID", "valueFrom": NODE_RANK},
                {"name": "JAX_COORDINATOR_ADDRESS", "value": f"{info.head_address()}:{RENDEZVOUS_PORT}"},
            ]
        )
        container.expose(RENDEZVOUS_PORT)
