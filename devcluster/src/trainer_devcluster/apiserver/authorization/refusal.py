"""The answers to users who may not do what they ask for."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from trainer.kube.api_semantics import statuses
from trainer.kube.field_errors import show
from trainer.kube.resource import Resource

if TYPE_CHECKING:
    from trainer.kube.errors import ApiError
    from trainer_devcluster.apiserver.authorization.attributes import Attributes


def forbidden(attributes: Attributes, reason: str = "") -> ApiError:
    """The 403 for something that is not allowed.

    Args:
        attributes: what the user wants.
        reason: why not, if there is more to say than that no role allows it.
    """
    # The real server lets nothing through that a browser could take for markup.
    message = escape(_sentence(attributes), quote=False) + (f": {reason}" if reason else "")
    if attributes.path:
        return statuses.failure(403, "Forbidden", f"forbidden: {message}", {})
    resource = Resource(attributes.group, attributes.version, attributes.resource, "", namespaced=False)
    return statuses.forbidden(resource, attributes.name, message)


def _sentence(attributes: Attributes) -> str:
    who = f"User {show(attributes.user.name)} cannot {attributes.verb}"
    if attributes.path:
        return f"{who} path {show(attributes.path)}"
    resource = f"{attributes.resource}/{attributes.subresource}" if attributes.subresource else attributes.resource
    where = f"in the namespace {show(attributes.namespace)}" if attributes.namespace else "at the cluster scope"
    return f"{who} resource {show(resource)} in API group {show(attributes.group)} {where}"
