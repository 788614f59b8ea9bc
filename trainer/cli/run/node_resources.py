"""The resources of each node: devices by `--gpus`, and all amounts by `--resource`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from trainer.api import patterns
from trainer.api.labels import is_qualified_name
from trainer.cli.console import printable
from trainer.cli.errors import BadInputError
from trainer.cli.run.frameworks import ChosenRuntime
from trainer.framework.plugin_api.devices import USUAL_DEVICES
from trainer.kube.objects import Object

USUAL: Final = "nvidia.com/gpu"
"""The device of a runtime that names none."""
_COUNT: Final = re.compile(r"[0-9]{1,9}", re.ASCII)


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """The devices of each node."""

    count: int
    resource: str = ""
    """Default: that of the runtime."""


def devices_per_node(gpus: str | None) -> NodeDevices | None:
    """The devices of `--gpus NUMBER` or `--gpus RESOURCE:NUMBER`.

    Raises:
        BadInputError: it is neither.
    """
    if gpus is None:
        return None
    resource, separator, count = gpus.rpartition(":")
    is_resource = "/" in resource and is_qualified_name(resource)
    if not _COUNT.fullmatch(count) or (separator and not is_resource):
        raise BadInputError(
            f"--gpus: {printable(gpus)[:80]}: must be a number, or RESOURCE:NUMBER such as amd.com/gpu:8"
        )
    return NodeDevices(int(count), resource)


def amounts_per_node(items: Iterable[str]) -> dict[str, str]:
    """The amounts of `--resource NAME=AMOUNT`.

    Raises:
        BadInputError: an amount is no quantity, or a resource is named twice.
    """
    amounts: dict[str, str] = {}
    for item in items:
        name, _, amount = item.partition("=")
        if not name or not patterns.compiled(patterns.QUANTITY).search(amount):
            raise BadInputError(
                f"--resource: {printable(item)}: must be NAME=AMOUNT, such as memory=64Gi or amd.com/gpu=8"
            )
        if name in amounts:
            raise BadInputError(f"--resource: {printable(name)} is given twice")
        amounts[name] = amount
    return amounts


def resources_per_node(gpus: NodeDevices | None, amounts: Mapping[str, str], runtime: ChosenRuntime) -> Object:
    """`spec.trainer.resourcesPerNode`; empty without any.

    A number of GPUs alone is of the device that the runtime names in the containers that train: other accelerators
    count as well, and slices of a GPU.

    Raises:
        BadInputError: the runtime names several devices, or both options name some.
    """
    limits = dict(amounts)
    if gpus is not None:
        named = sorted(filter(USUAL_DEVICES.is_device, amounts))
        if named:
            raise BadInputError(
                f"--gpus: must not be given together with --resource {named[0]}, which names devices: leave one out"
            )
        limits |= _amounts(gpus, runtime)
    return {"requests": dict(limits), "limits": limits} if limits else {}


def _amounts(gpus: NodeDevices, runtime: ChosenRuntime) -> dict[str, str]:
    """The amounts of the devices, and none of others that the runtime names: amounts are merged by resource."""
    known = runtime.devices()
    if not gpus.resource and gpus.count and len(known) > 1:
        choices = " or ".join(f"--gpus {name}:{gpus.count}" for name in known)
        raise BadInputError(f"--gpus: the runtime {runtime.name} names several devices: write {choices}")
    wanted = gpus.resource or next(iter(known), USUAL)
    others = {name: "0" for name in known if name != wanted}
    return others | ({wanted: str(gpus.count)} if gpus.count or wanted in known else {})
