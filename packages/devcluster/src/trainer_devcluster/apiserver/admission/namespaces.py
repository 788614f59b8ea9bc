"""Namespaces: who may create objects in them, and what every new one contains."""

from __future__ import annotations

from trainer.kube.field_errors import FieldError
from trainer.kube.objects import Object, ObjectKey, is_being_deleted, name_of
from trainer.kube.resource import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS, SERVICES, Resource
from trainer_devcluster.apiserver.authentication.tls import SERVICE_ADDRESS
from trainer_devcluster.apiserver.storage.storage import Partition, Storage
from trainer_devcluster.apiserver.wire import answers
from trainer_kube_testing.api_semantics import statuses

PARTITION = Partition.of(NAMESPACES)
PROTECTED = frozenset({"default", "kube-system", "kube-public"})
"""Namespaces that cannot be deleted."""

_API_NAMESPACE = "default"
_ROOT_CA_DESCRIPTION = "CA bundle with which pods of this namespace can verify the API server."


def require_active(storage: Storage, resource: Resource, name: str, namespace: str) -> None:
    """Let an object be created only in a namespace that exists and stays.

    Raises:
        ApiError: 404, there is no such namespace; 403, it is being deleted.
    """
    found = storage.get(PARTITION, ObjectKey("", namespace))
    if found is None:
        raise statuses.not_found(NAMESPACES, namespace)
    if is_being_deleted(found):
        message = f"unable to create new content in namespace {namespace} because it is being terminated"
        cause = FieldError("metadata.namespace", f"namespace {namespace} is being terminated", "NamespaceTerminating")
        raise answers.forbidden(resource, name, message, [cause])


def first_objects(namespace: Object, ca_pem: str) -> list[tuple[Resource, Object]]:
    """What a new namespace starts with: the default service account and the bundle of trusted authorities.

    The namespace `default` also has the Service of the API server.
    """
    metadata = {"namespace": name_of(namespace)}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {**metadata, "name": "default"}}
    annotations = {"kubernetes.io/description": _ROOT_CA_DESCRIPTION}
    bundle = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**metadata, "name": "kube-root-ca.crt", "annotations": annotations},
        "data": {"ca.crt": ca_pem},
    }
    objects = [(SERVICE_ACCOUNTS, account), (CONFIG_MAPS, bundle)]
    return [*objects, (SERVICES, _api_service())] if name_of(namespace) == _API_NAMESPACE else objects


def _api_service() -> Object:
    labels = {"component": "apiserver", "provider": "kubernetes"}
    ports = [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kubernetes", "namespace": _API_NAMESPACE, "labels": labels},
        "spec": {"type": "ClusterIP", "clusterIP": SERVICE_ADDRESS, "ports": ports},
    }
