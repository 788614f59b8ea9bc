"""Devices that pods get by claims (Dynamic Resource Allocation), by driver and product.

ResourceSlices have the devices, and ResourceClaims those that are allocated (KEP-4381). Devices that are made of one
another, such as a GPU and its partitions, consume the same counters (KEP-4815).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, NamedTuple

import msgspec

from trainer.explain.reading import Compute
from trainer.kube.client import Client, ObjectList, RawJson
from trainer.kube.errors import ForbiddenError, NotFoundError
from trainer.kube.objects import Object, mapping_at, objects_in
from trainer.kube.pager import collect
from trainer.kube.quantity import parse_quantity
from trainer.kube.resource import Resource
from trainer.kube.selection import EVERYTHING

RESOURCE_SLICES: Final = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False)
RESOURCE_CLAIMS: Final = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")
"""Both are served by Kubernetes 1.34 and newer."""

_PRODUCTS: Final = ("productName", "model")
"""Attributes that drivers name the product in."""
_PARTS: Final = ("profile", "partitionProfile")
"""Attributes of partitions."""
_ZERO = Decimal(0)

_object = msgspec.json.Decoder(dict[str, object])


class DeviceId(NamedTuple):
    """What a claim is allocated."""

    driver: str
    pool: str
    device: str


class _Counter(NamedTuple):
    """What devices of a pool share."""

    driver: str
    pool: str
    set: str
    name: str


@dataclass(frozen=True, slots=True)
class Device:
    """One device of a ResourceSlice."""

    id: DeviceId
    product: str
    node: str
    """Where it is; "" where several nodes reach it."""
    is_tainted: bool
    """Whether its driver or an administrator keeps claims from it."""
    consumes: tuple[tuple[_Counter, Decimal], ...]


@dataclass(slots=True)
class DeviceGroup:
    """The devices of one product in one place."""

    driver: str
    product: str
    node: str
    """See `Device`."""
    total: int = 0
    used: int = 0
    free: int = 0
    """Without those that are tainted, or share what others use."""


@dataclass(slots=True)
class ClaimedDevices:
    """What a user may know of all devices that can be claimed."""

    groups: list[DeviceGroup] = field(default_factory=list)
    is_known: bool = True
    """Whether it is known what of them is used."""
    problems: list[str] = field(default_factory=list)


async def claimed_devices(client: Client, compute: Compute) -> ClaimedDevices:
    """All devices that can be claimed; none where the API server knows no ResourceSlices.

    Raises:
        KubeError: the API server does not answer.
    """
    try:
        slices = await client.list(RESOURCE_SLICES)
    except NotFoundError:
        return ClaimedDevices()
    except ForbiddenError as error:
        return ClaimedDevices(problems=[f"devices that pods have by claims are not known: {error}"])
    if not slices.raw_items:
        return ClaimedDevices()
    allocated: set[DeviceId] = set()
    problems: list[str] = []
    try:
        for found in (await collect(client, RESOURCE_CLAIMS, EVERYTHING, _allocated)).items:
            allocated |= found
    except ForbiddenError as error:
        problems.append(f"what claims have of devices is not known: {error}")
    groups = await compute(_counted, slices, allocated)
    return ClaimedDevices(groups, not problems, problems)


def _counted(slices: ObjectList, allocated: Collection[DeviceId]) -> list[DeviceGroup]:
    newest = list(_newest(slices.items))
    return _groups((device for each in newest for device in _devices_of(each)), allocated, _counters(newest))


def _newest(slices: Iterable[Object]) -> Iterator[Object]:
    """The specs of the last generation of each pool: others are about to go."""
    specs = [mapping_at(each, "spec") for each in slices]
    generations: dict[tuple[str, str], int] = {}
    for spec in specs:
        pool, generation = _pool(spec)
        generations[pool] = max(generation, generations.get(pool, generation))
    for spec in specs:
        pool, generation = _pool(spec)
        if generation == generations[pool]:
            yield spec


def _pool(spec: Object) -> tuple[tuple[str, str], int]:
    pool = mapping_at(spec, "pool")
    generation = pool.get("generation")
    return (_text(spec.get("driver")), _text(pool.get("name"))), generation if isinstance(generation, int) else 0


def _devices_of(spec: Object) -> Iterator[Device]:
    (driver, pool), _ = _pool(spec)
    for device in objects_in(spec.get("devices")):
        attributes = {
            name.rpartition("/")[2]: _text(value.get("string"))
            for name, value in mapping_at(device, "attributes").items()
            if isinstance(value, dict)
        }
        consumes = [
            (_Counter(driver, pool, _text(each.get("counterSet")), name), _amount(value))
            for each in objects_in(device.get("consumesCounters"))
            for name, value in mapping_at(each, "counters").items()
        ]
        yield Device(
            DeviceId(driver, pool, _text(device.get("name"))),
            " ".join(filter(None, (_first(attributes, _PRODUCTS), _first(attributes, _PARTS)))),
            _text(device.get("nodeName") or spec.get("nodeName")),
            any(taint.get("effect") in {"NoSchedule", "NoExecute"} for taint in objects_in(device.get("taints"))),
            tuple(consumes),
        )


def _counters(specs: Iterable[Object]) -> dict[_Counter, Decimal]:
    return {
        _Counter(*pool, _text(each.get("name")), name): _amount(value)
        for spec in specs
        for pool in [_pool(spec)[0]]
        for each in objects_in(spec.get("sharedCounters"))
        for name, value in mapping_at(each, "counters").items()
    }


def _allocated(raw: RawJson) -> set[DeviceId]:
    """The devices that a claim has for itself or shares, and not those that it only watches over."""
    results = objects_in(mapping_at(_object.decode(raw), "status", "allocation", "devices").get("results"))
    return {
        DeviceId(_text(each.get("driver")), _text(each.get("pool")), _text(each.get("device")))
        for each in results
        if not each.get("adminAccess")
    }


def _groups(
    devices: Iterable[Device], allocated: Collection[DeviceId], counters: dict[_Counter, Decimal]
) -> list[DeviceGroup]:
    devices = {device.id: device for device in devices}.values()
    left = dict(counters)
    for device in devices:
        for counter, amount in device.consumes if device.id in allocated else ():
            left[counter] = left.get(counter, _ZERO) - amount
    groups: dict[tuple[str, str, str], DeviceGroup] = {}
    for device in devices:
        key = device.id.driver, device.product, device.node
        group = groups.setdefault(key, DeviceGroup(*key))
        is_used = device.id in allocated
        has_room = all(left.get(counter, _ZERO) >= amount for counter, amount in device.consumes)
        group.total += 1
        group.used += is_used
        group.free += not is_used and not device.is_tainted and has_room
    return list(groups.values())


def _amount(counter: object) -> Decimal:
    try:
        return parse_quantity(counter.get("value")) if isinstance(counter, dict) else _ZERO
    except ValueError:
        return _ZERO


def _first(attributes: dict[str, str], names: Iterable[str]) -> str:
    return next((attributes[name] for name in names if attributes.get(name)), "")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
