"""What requests ask to be allowed."""

from __future__ import annotations

import pytest
from multidict import MultiDict

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


@pytest.mark.parametrize(
    ("request_line", "expected"),
    [
        pytest.param("GET /api/v1/namespaces/n/pods/p", on("get", "pods", "n", "p"), id="get"),
        pytest.param("HEAD /api/v1/namespaces/n/pods/p", on("get", "pods", "n", "p"), id="head"),
        pytest.param("GET /api/v1/namespaces/n/pods", on("list", "pods", "n"), id="list"),
        pytest.param("GET /api/v1/pods", on("list", "pods"), id="list of all namespaces"),
        pytest.param("GET /api/v1/pods?watch=true", on("watch", "pods"), id="watch"),
        pytest.param("GET /api/v1/pods?watch", on("watch", "pods"), id="watch without a value"),
        pytest.param("GET /api/v1/pods?watch=0", on("list", "pods"), id="no watch"),
        pytest.param("GET /api/v1/namespaces/n/pods/p?watch=1", on("get", "pods", "n", "p"), id="get is no watch"),
        pytest.param("POST /api/v1/namespaces/n/pods", on("create", "pods", "n"), id="create"),
        pytest.param("PUT /api/v1/namespaces/n/pods/p/status", on("update", "pods/status", "n", "p"), id="subresource"),
        pytest.param("PATCH /api/v1/nodes/m", on("patch", "nodes", "", "m"), id="patch of what has no namespace"),
        pytest.param("DELETE /api/v1/namespaces/n/pods/p", on("delete", "pods", "n", "p"), id="delete"),
        pytest.param("DELETE /api/v1/namespaces/n/pods", on("deletecollection", "pods", "n"), id="delete collection"),
        pytest.param("GET /api/v1/namespaces", on("list", "namespaces"), id="namespaces"),
        pytest.param("GET /api/v1/namespaces/n", on("get", "namespaces", "n", "n"), id="a namespace is in itself"),
        pytest.param(
            "PUT /api/v1/namespaces/n/finalize", on("update", "namespaces/finalize", "n", "n"), id="end of a namespace"
        ),
        pytest.param("GET /api/v1/namespaces/n/nothing", on("list", "nothing", "n"), id="what does not exist"),
        pytest.param(
            "GET /apis/batch/v1/namespaces/n/jobs/j", on("get", "jobs", "n", "j", group="batch"), id="named group"
        ),
        pytest.param("GET //api//v1//namespaces/n/secrets", on("list", "secrets", "n"), id="empty segments"),
        pytest.param("OPTIONS /api/v1/pods", on("", "pods"), id="a method that is no verb"),
        pytest.param(
            "GET /api/v1/namespaces/n/pods?fieldSelector=metadata.name%3Dp", on("list", "pods", "n", "p"), id="one name"
        ),
        pytest.param(
            "GET /api/v1/pods?watch=1&fieldSelector=a=b,metadata.name==p",
            on("watch", "pods", "", "p"),
            id="watch of one name",
        ),
        pytest.param("GET /api/v1/pods?fieldSelector=metadata.name!=p", on("list", "pods"), id="all but one name"),
        pytest.param("GET /api/v1/pods?fieldSelector=metadata.name=..", on("list", "pods"), id="no name"),
        pytest.param("GET /api/v1/pods?fieldSelector=nonsense", on("list", "pods"), id="unreadable selector"),
        pytest.param("GET /api", AccessCheck(BOB, "get", path="/api"), id="discovery"),
        pytest.param("GET /api/v1", AccessCheck(BOB, "get", path="/api/v1"), id="discovery of a version"),
        pytest.param("GET /apis/batch/v1/", AccessCheck(BOB, "get", path="/apis/batch/v1/"), id="discovery of a group"),
        pytest.param("GET /", AccessCheck(BOB, "get", path="/"), id="root"),
        pytest.param("POST /metrics?x=1", AccessCheck(BOB, "post", path="/metrics"), id="some path"),
    ],
)
def test_request(request_line: str, expected: AccessCheck) -> None:
    """Verb, resource and place follow from method, path and query, whether or not there is such a resource."""
    method, _, target = request_line.partition(" ")
    path, _, query = target.partition("?")
    pairs = [entry.replace("%3D", "=").partition("=")[::2] for entry in query.split("&") if entry]
    assert attributes_of(BOB, method, path, MultiDict(pairs)) == expected


def test_refusal_has_no_markup() -> None:
    """Names that look like HTML are escaped so that no browser reads them as such."""
    wanted = attributes_of(User("<b>&"), "GET", "/api/v1/pods", {})
    assert forbidden(wanted, "because").message == (
        'pods is forbidden: User "&lt;b&gt;&amp;" cannot list resource "pods" in API group "" at the cluster scope: '
        "because"
    )
