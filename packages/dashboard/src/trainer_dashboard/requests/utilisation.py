"""What nodes really use, where metrics-server measures it (Kubernetes documentation, "Resource metrics pipeline")."""

from __future__ import annotations

from typing import Final

from trainer.kube.client import Client
from trainer.kube.clock import Clock, move_on_after
from trainer.kube.errors import KubeError
from trainer.kube.objects import Object, mapping_at, name_of
from trainer.kube.quantity import parse_quantity
from trainer.kube.resource import Resource
from trainer_dashboard.requests.node_rows import PLAIN

NODE_METRICS: Final = Resource("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", namespaced=False)
_PATIENCE: Final = 2.0
"""Seconds; a metrics-server that is down has the API server answer 503, which the client asks about again."""


async def utilisation(client: Client, clock: Clock) -> dict[str, dict[str, float]]:
    """CPUs and bytes of memory that each node uses; nothing where nobody measures it, or the user may not know it."""
    found: list[Object] = []
    async with move_on_after(clock, _PATIENCE):
        try:
            found = (await client.list(NODE_METRICS)).items
        except KubeError:
            return {}
    return {name_of(each): _amounts(mapping_at(each, "usage")) for each in found}


def _amounts(usage: Object) -> dict[str, float]:
    amounts = {}
    for name in PLAIN:
        try:
            amounts[name] = float(parse_quantity(usage.get(name)))
        except ValueError:
            continue
    return amounts
