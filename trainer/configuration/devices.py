"""The section `devices` of the configuration file; its attribute docstrings are its reference."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal

from trainer.api.model import ApiModel
from trainer.framework.plugin_api.devices import DeviceKind, Unit
from trainer.kube.field_errors import FieldError, forbidden, invalid, required

_NAMES: Final = {
    # What may stand before the slash is a part of a domain, since a * may stand for the rest.
    "resourceName": re.compile(r"(?=[^*]*\*?[^*]*$)[a-z0-9.*-]{1,253}/[A-Za-z0-9._*-]{1,63}", re.ASCII),
    "deviceClassName": re.compile(r"(?=[^*]*\*?[^*]*$)[a-z0-9.*-]{1,253}", re.ASCII),
}


class DeviceConfiguration(ApiModel):
    """Devices that the manager would not know by their name; with several, the first entry that a container has counts.

    A name may have one `*`, for any characters: `example.com/accelerator-*`.
    """

    resource_name: str | None = None
    """Resources, such as example.com/accelerator. Defaults to none; either this or deviceClassName is needed."""
    device_class_name: str | None = None
    """DeviceClasses of claims (Dynamic Resource Allocation), such as accelerator.example.com. Defaults to none."""
    unit: Literal["device", "hundredth", "share"] = "device"
    """What an amount of the resource counts: devices; hundredths of them; or a share of one device, whatever the
    amount. Defaults to device."""
    seen_by_torchrun: bool = True
    """Whether torchrun finds the devices itself, as it does GPUs; else it gets their number. Defaults to true."""

    @property
    def kind(self) -> DeviceKind:
        """The row of the table of devices."""
        return DeviceKind(
            "the configuration of the manager",
            _expression(self.resource_name),
            _expression(self.device_class_name),
            Unit(self.unit),
            self.seen_by_torchrun,
        )

    def errors(self, path: str) -> Iterator[FieldError]:
        """What is missing, or no name."""
        names = {"resourceName": self.resource_name, "deviceClassName": self.device_class_name}
        if not any(names.values()):
            yield required(f"{path}.resourceName", "name a resource or, with deviceClassName, a DeviceClass")
        for field, name in names.items():
            if name is not None and not _NAMES[field].fullmatch(name):
                example = "example.com/accelerator" if field == "resourceName" else "accelerator.example.com"
                yield invalid(f"{path}.{field}", name, f"must be a name such as {example}, with one * at most")
        if self.unit != "device" and not self.resource_name:
            yield forbidden(f"{path}.unit", "is for amounts of resources; claims count devices: remove it")


def _expression(name: str | None) -> str:
    return ".*".join(map(re.escape, name.split("*"))) if name else ""
