"""Objects and definitions that the tests of the server share."""

from __future__ import annotations

from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import CONFIG_MAPS
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.routing import Target
from trainer_devcluster.apiserver.definitions.strategy import Strategy
from trainer_devcluster.apiserver.storage.storage import Partition, Storage

CONFIG_MAP = ResourceDefinition(CONFIG_MAPS, Strategy(), singular="configmap", generation=False)
PARTITION = Partition.of(CONFIG_MAPS)
TARGET = Target(CONFIG_MAP, "list", "ns")


def key(name: str, namespace: str = "ns") -> ObjectKey:
    """The key of a config map."""
    return ObjectKey(namespace, name)


def config_map(name: str, value: str = "", *, namespace: str = "ns", labels: dict[str, str] | None = None) -> Object:
    """A config map as it is stored."""
    metadata: Object = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}


def put(storage: Storage, name: str, value: str = "", *, labels: dict[str, str] | None = None) -> Object:
    """Create or replace a config map."""
    current = storage.get(PARTITION, key(name))
    obj = config_map(name, value, labels=labels)
    if current is None:
        return storage.create(PARTITION, key(name), obj)
    return storage.update(PARTITION, key(name), obj, expected=current["metadata"]["resourceVersion"])


def remove(storage: Storage, name: str) -> Object:
    """Delete a config map."""
    current = storage.get(PARTITION, key(name))
    assert current is not None
    return storage.delete(PARTITION, key(name), expected=current["metadata"]["resourceVersion"])
