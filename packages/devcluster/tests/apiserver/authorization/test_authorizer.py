"""What requests ask to be allowed."""

from __future__ import annotations

from trainer_devcluster.apiserver.authentication.user import User
from trainer_devcluster.apiserver.authorization.authorizer import attributes_of, forbidden
from trainer_devcluster.apiserver.authorization.rules import AccessCheck

BOB = User("bob")


def on(verb: str, resource: str, namespace: str = "", name: str = "", **more: str) -> AccessCheck:
    """Something with a resource of the core group."""
    resource, _, subresource = resource.partition("/")
    return AccessCheck(
        BOB, verb, more.get("group", ""), more.get("version", "v1"), resource, subresource, namespace, name
    )


def test_refusal_has_no_markup() -> None:
    """Names that look like HTML are escaped so that no browser reads them as such."""
    wanted = attributes_of(User("<b>&"), "GET", "/api/v1/pods", {})
    assert forbidden(wanted, "because").message == (
        'pods is forbidden: User "&lt;b&gt;&amp;" cannot list resource "pods" in API group "" at the cluster scope: '
        "because"
    )
