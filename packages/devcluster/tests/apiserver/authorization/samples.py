"""Roles and bindings, and a storage with them."""

from __future__ import annotations

from trainer.kube.objects import Object, key_of
from trainer.kube.resource import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES
from trainer_devcluster.apiserver.authorization.rules import PolicyRule
from trainer_devcluster.apiserver.storage.storage import Partition, Storage

_RESOURCES = {resource.kind: resource for resource in (ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS)}
_SUBJECTS = {"user": "User", "group": "Group", "account": "ServiceAccount"}


def role(name: str, *rules: PolicyRule, namespace: str = "") -> Object:
    """A Role, or a ClusterRole without a namespace."""
    kind = "Role" if namespace else "ClusterRole"
    return _object(kind, name, namespace) | {"rules": [rule.to_object() for rule in rules]}


def binding(name: str, of: str, *subjects: str, namespace: str = "") -> Object:
    """A RoleBinding, or a ClusterRoleBinding without a namespace.

    Args:
        name: of the binding.
        of: `Role/name` or `ClusterRole/name`.
        subjects: `user bob`, `group devs`, `account bot` or `account ns/bot`.
        namespace: where it counts.
    """
    kind, _, role_name = of.partition("/")
    reference = {"apiGroup": ROLES.group, "kind": kind, "name": role_name}
    entries = [_subject(subject) for subject in subjects]
    bound = "RoleBinding" if namespace else "ClusterRoleBinding"
    return _object(bound, name, namespace) | {"roleRef": reference, "subjects": entries}


def put(storage: Storage, *objects: Object) -> Storage:
    """The storage with more objects in it."""
    for obj in objects:
        storage.create(Partition.of(_RESOURCES[obj["kind"]]), key_of(obj), obj)
    return storage


def remove(storage: Storage, obj: Object) -> None:
    """Take an object out of the storage."""
    partition = Partition.of(_RESOURCES[obj["kind"]])
    stored = storage.get(partition, key_of(obj))
    assert stored is not None
    storage.delete(partition, key_of(obj), expected=stored["metadata"]["resourceVersion"])


def _object(kind: str, name: str, namespace: str) -> Object:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": ROLES.api_version, "kind": kind, "metadata": metadata}


def _subject(text: str) -> Object:
    word, _, name = text.partition(" ")
    if word != "account":
        return {"apiGroup": ROLES.group, "kind": _SUBJECTS[word], "name": name}
    namespace, _, name = name.rpartition("/")
    return {"kind": "ServiceAccount", "name": name} | ({"namespace": namespace} if namespace else {})
