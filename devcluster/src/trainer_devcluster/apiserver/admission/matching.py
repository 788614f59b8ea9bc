"""Matching: whether a webhook whose rules mean a request is called for this very object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.api_semantics import statuses
from trainer.kube.objects import ObjectKey, metadata_of
from trainer.kube.resource import NAMESPACES
from trainer_devcluster.apiserver.admission.attributes import Operation
from trainer_devcluster.apiserver.admission.namespaces import PARTITION as NAMESPACE_PARTITION
from trainer_devcluster.apiserver.storage.storage import Partition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.admission.attributes import Attributes
    from trainer_devcluster.apiserver.admission.webhook import Webhook
    from trainer_devcluster.apiserver.storage.storage import Storage


def selects(webhook: Webhook, attributes: Attributes, storage: Storage) -> bool:
    """Whether the selectors of a webhook take in the object and its namespace.

    Raises:
        ApiError: 404, the namespace is gone.
    """
    return _selects_namespace(webhook, attributes, storage) and _selects_object(webhook, attributes)


def _selects_namespace(webhook: Webhook, attributes: Attributes, storage: Storage) -> bool:
    selector = webhook.namespace_selector
    if not selector.requirements or not attributes.namespace:
        return True
    return selector.matches(_namespace_labels(attributes, storage))


def _namespace_labels(attributes: Attributes, storage: Storage) -> Mapping[str, str]:
    endpoint = attributes.endpoint
    itself = Partition.of(endpoint.resource) == NAMESPACE_PARTITION and not endpoint.subresource
    if itself and endpoint.operation is not Operation.DELETE:
        return _labels(attributes.object)
    namespace = storage.get(NAMESPACE_PARTITION, ObjectKey("", attributes.namespace))
    if namespace is None:
        raise statuses.not_found(NAMESPACES, attributes.namespace)
    return _labels(namespace)


def _selects_object(webhook: Webhook, attributes: Attributes) -> bool:
    selector = webhook.object_selector
    if not selector.requirements:
        return True
    states = (attributes.object, attributes.old)
    return any(selector.matches(_labels(state)) for state in states if state is not None)


def _labels(obj: Object | None) -> Mapping[str, str]:
    return (metadata_of(obj).get("labels") or {}) if obj is not None else {}
