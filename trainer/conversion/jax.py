"""JAXJob: workers that `jax.distributed.initialize` joins to one training.

The operator's variables are set beside those of the plugin, so that scripts of both kinds find what they read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainer.conversion.draft import Nodes, draft_nodes
from trainer.conversion.places import name_variable
from trainer.conversion.pods import UNBUFFERED

if TYPE_CHECKING:
    from trainer.api.losses import Losses
    from trainer.conversion.draft import Draft
    from trainer.conversion.source import Source
    from trainer.kube.objects import Object

FRAMEWORK: Final = "jax"
RESERVED: Final = frozenset({"JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"})
"""Variables that only the plugin sets."""


def draft(source: Source, losses: Losses, port: int) -> Draft:
    """The parts of a JAXJob; `port` is where nodes meet."""
    address: list[Object] = [
        {"name": "COORDINATOR_ADDRESS", "value": Nodes().host(0)},
        # The coordinator listens at the port of the plugin, which tells JAX so: it cannot be another one.
        {"name": "COORDINATOR_PORT", "value": str(port)},
    ]
    return draft_nodes(
        source,
        losses,
        framework=FRAMEWORK,
        ml_policy={"jax": {}},
        variables=[
            name_variable(),
            *address,
            {"name": "NUM_PROCESSES", "value": "$(JAX_NUM_PROCESSES)"},
            {"name": "PROCESS_ID", "value": "$(JAX_PROCESS_ID)"},
            UNBUFFERED,
        ],
        sidecar_variables=[
            name_variable(),
            *address,
            {"name": "NUM_PROCESSES", "value": str(source.pods)},
            {"name": "PROCESS_ID", "valueFrom": Nodes().rank},
            UNBUFFERED,
        ],
        reserved=RESERVED,
    )
