"""JAX: distributed JAX (KEP-2145)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.framework import NODE_RANK, RENDEZVOUS_PORT, check_reserved_env
from trainer.plugins.jax.launcher import launched
from trainer.plugins.jax.processes import check_split, split_of
from trainer.plugins.jax.variables import (
    COORDINATOR_ADDRESS,
    DEFAULTS,
    LOCAL_DEVICE_IDS,
    NUM_PROCESSES,
    PROCESS_ID,
    check_values,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.api.trainjob import TrainJob
    from trainer.framework import RuntimeInfo
    from trainer.kube.field_errors import FieldError

RESERVED = frozenset({COORDINATOR_ADDRESS, NUM_PROCESSES, PROCESS_ID})
"""Variables that only this plugin sets."""


class Jax:
    """Sets the number of processes, the index of each and the coordinator for `jax.distributed.initialize()`.

    The training passes on what JAX does not read by itself: `jax.distributed.initialize(num_processes=
    int(os.environ["JAX_NUM_PROCESSES"]), process_id=int(os.environ["JAX_PROCESS_ID"]),
    initialization_timeout=int(os.environ["JAX_INITIALIZATION_TIMEOUT"]))`.

    A node runs one process, which sees all devices, unless `numProcPerNode` asks for more. Then the command is started
    by a launcher, which gives each process its number and its share of the GPUs.
    """

    name = "jax"
    ml_policy_sources = frozenset({"jax"})

    def validate(self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob) -> Iterator[FieldError]:  # noqa: ARG002
        """Refuse reserved variables, values that JAX cannot use, and nodes whose devices cannot be split."""
        if info.ml_policy.jax is None:
            return
        wrong = list(check_split(info, new))
        yield from wrong
        is_split = not wrong and split_of(info, new).processes > 1
        yield from check_reserved_env(info, new, RESERVED | ({LOCAL_DEVICE_IDS} if is_split else set()), self.name)
        yield from check_values(info, new)

    def enforce_ml_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Set the `JAX_*` variables of the training container, and start several processes where requested."""
        if info.ml_policy.jax is None:
            return
        container, split = info.main_container, split_of(info, train_job)
        container.set_env(
            [
                {"name": NUM_PROCESSES, "value": str(info.trainer.count * split.processes)},
                {"name": PROCESS_ID, "valueFrom": NODE_RANK},  # which a launcher makes the process's
                {"name": COORDINATOR_ADDRESS, "value": f"{info.head_address()}:{RENDEZVOUS_PORT}"},
            ]
        )
        present = {variable["name"] for variable in container.env}
        container.set_env({"name": name, "value": value} for name, value in DEFAULTS.items() if name not in present)
        container.expose(RENDEZVOUS_PORT)
        if split.processes > 1:
            container.command = launched(container.command, split)
