"""JAXJob: workers that `jax.distributed.initialize` joins to one training.

The operator's variables are set beside those of the plugin, so that scripts of both kinds find what they read.
"""

from __future__ import annotations

import re
from typing import Final

from trainer.api.losses import Losses
from trainer.kube.objects import Object
from trainer_v1_jobs.conversion.draft import Draft, Nodes, draft_nodes
from trainer_v1_jobs.conversion.places import name_variable
from trainer_v1_jobs.conversion.pods import UNBUFFERED, declared_port
from trainer_v1_jobs.conversion.source import Source

FRAMEWORK: Final = "jax"
RESERVED: Final = frozenset({"JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"})
"""Variables that only the plugin sets."""
_BIND_ADDRESS: Final = "JAX_COORDINATOR_BIND_ADDRESS"
_BOUND: Final = re.compile(r"(?P<host>\S+):(?P<port>[0-9]{1,5})")


def draft(source: Source, losses: Losses, port: int) -> Draft:
    """The parts of a JAXJob; `port` is where nodes meet."""
    address: list[Object] = [
        {"name": "COORDINATOR_ADDRESS", "value": Nodes().host(0)},
        # The coordinator listens at the port of the plugin, which tells JAX so: it cannot be another one.
        {"name": "COORDINATOR_PORT", "value": str(port)},
    ]
    result = draft_nodes(
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
        meets_at=port,
    )
    _check_port(result.trainer, source, port, losses)
    return result


def _check_port(trainer: Object, source: Source, port: int, losses: Losses) -> None:
    """Have the coordinator listen where the others expect it; the port of the operator in what is run is lost."""
    (role,) = source.roles
    former = declared_port(source, role)
    path = f"{role.containers_path}[{source.kind.container}]"
    for variable in trainer.get("env", []):
        bound = _BOUND.fullmatch(str(variable.get("value"))) if variable["name"] == _BIND_ADDRESS else None
        if bound is not None and int(bound["port"]) != port:
            variable["value"] = f"{bound['host']}:{port}"
            rule = f"becomes {variable['value']}: the coordinator listens at the port that COORDINATOR_PORT has"
            losses.add(f"{path}.env[{_BIND_ADDRESS}]", rule)
    words = [("env", variable.get("value")) for variable in trainer.get("env", [])]
    words += [(field, word) for field in ("command", "args") for word in trainer.get(field, [])]
    number = re.compile(rf"(?<![\w.]){former}(?![\w.])")
    for field in dict.fromkeys(field for field, word in words if number.search(str(word or ""))):
        rule = f"has the port {former}, but the coordinator listens at {port}: read it from COORDINATOR_PORT"
        losses.add(f"{path}.{field}", rule)
