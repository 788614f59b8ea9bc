"""What a server with RBAC answers to people who may do little."""

from __future__ import annotations

from typing import Any

import pytest

from packages.devcluster.tests.apiserver.authorization.samples import binding, role
from packages.devcluster.tests.apiserver.http_client import APPLY, MERGE, Api
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.authorization.rules import PolicyRule

RBAC = "/apis/rbac.authorization.k8s.io/v1"
REVIEWS = "/apis/authorization.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
READER = role("reader", PolicyRule(("get", "list", "watch", "patch"), ("",), ("configmaps",)), namespace="default")
BOUND = binding("readers", "Role/reader", "user bob", "account bot", namespace="default")
BECAUSE = 'RBAC: allowed by RoleBinding "readers/default" of Role "reader" to User "bob"'


async def give(api: Api) -> None:
    """Let bob read the config maps of a namespace."""
    assert (await api("POST", f"{RBAC}/namespaces/default/roles", READER)).code == 201
    assert (await api("POST", f"{RBAC}/namespaces/default/rolebindings", BOUND)).code == 201


def review(kind: str, spec: Object) -> Object:
    """A question."""
    return {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}


@pytest.mark.parametrize(
    ("request_line", "message", "details"),
    [
        pytest.param(
            "GET /api/v1/namespaces/default/secrets",
            'secrets is forbidden: User "bob" cannot list resource "secrets" in API group "" in the namespace '
            '"default"',
            {"kind": "secrets"},
            id="another resource",
        ),
        pytest.param("GET /metrics", 'forbidden: User "bob" cannot get path "/metrics"', {}, id="path"),
    ],
)
async def test_refusals(api: Api, request_line: str, message: str, details: Object) -> None:
    """The Status says who cannot do what where; it is the same whether the object exists or not."""
    await give(api)
    method, _, path = request_line.partition(" ")
    answer = await api(method, path, Impersonate_User="bob")
    assert answer.code == 403
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": "Forbidden",
        "details": details,
        "code": 403,
    }


async def test_body_of_a_refused_request_is_not_read(api: Api) -> None:
    """A user without the right to write gets 403, whatever the body is."""
    answer = await api("POST", MAPS, b"{no json", Impersonate_User="bob")
    assert answer.code == 403


async def test_patch_that_creates(api: Api) -> None:
    """Server-side apply of a new object needs create; of an existing one patch is enough."""
    await give(api)
    body: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}}
    path = f"{MAPS}/c?fieldManager=t"
    answer = await api("PATCH", path, body, APPLY, Impersonate_User="bob")
    assert answer.body["message"] == (
        'configmaps "c" is forbidden: User "bob" cannot create resource "configmaps" in API group "" in the namespace '
        '"default"'
    )
    assert (await api("PATCH", path, body, APPLY)).code == 201
    assert (await api("PATCH", path, body | {"data": {"a": "c"}}, APPLY, Impersonate_User="bob")).code == 200
    assert (await api("PATCH", f"{MAPS}/c", {"data": {"b": "c"}}, MERGE, Impersonate_User="bob")).code == 200


@pytest.mark.parametrize(
    ("kind", "spec", "status"),
    [
        pytest.param(
            "SelfSubjectAccessReview",
            {"resourceAttributes": {"namespace": "default", "verb": "list", "resource": "configmaps"}},
            {"allowed": True, "reason": BECAUSE},
            id="allowed",
        ),
        pytest.param("SelfSubjectAccessReview", {"nonResourceAttributes": {}}, {"allowed": False}, id="no path"),
    ],
)
async def test_access_reviews(api: Api, kind: str, spec: Object, status: Object) -> None:
    """The answer repeats the question, says who has asked with which fields, and what the authorizer says."""
    await give(api)
    headers = {"Impersonate_User": "bob"} if kind.startswith("Self") else {}
    answer = await api("POST", f"{REVIEWS}/{kind.lower()}s", review(kind, spec), **headers)
    assert answer.code == 201, answer.body
    [managers] = answer.body["metadata"].pop("managedFields")
    assert (managers["operation"], managers["apiVersion"]) == ("Update", "authorization.k8s.io/v1")
    assert answer.body == {**review(kind, spec), "metadata": {}, "status": status}


QUESTION: Object = {"verb": "get", "resource": "pods"}


@pytest.mark.parametrize(
    ("kind", "spec", "message"),
    [
        pytest.param(
            "SubjectAccessReview",
            {},
            "[spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes "
            'must be specified, spec.user: Invalid value: "": at least one of user or group must be specified]',
            id="nothing",
        ),
        pytest.param(
            "SubjectAccessReview",
            {"resourceAttributes": QUESTION},
            'spec.user: Invalid value: "": at least one of user or group must be specified',
            id="about nobody",
        ),
    ],
)  # fmt: skip
async def test_refused_reviews(api: Api, kind: str, spec: Object, message: str) -> None:
    """Questions that make no sense are refused with the field and the rule."""
    answer = await api("POST", f"{REVIEWS}/{kind.lower()}s", review(kind, spec))
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")
    assert answer.body["message"] == f'.authorization.k8s.io "" is invalid: {message}'
    assert answer.body["details"].keys() == {"group", "causes"}


async def test_rules_review(api: Api) -> None:
    """Everything that the sender may do in a namespace."""
    await give(api)
    path, kind = f"{REVIEWS}/selfsubjectrulesreviews", "SelfSubjectRulesReview"
    answer = await api("POST", path, review(kind, {"namespace": "default"}), Impersonate_User="bob")
    assert answer.code == 201
    assert (answer.body["metadata"], answer.body["spec"]) == ({}, {})
    status: dict[str, Any] = answer.body["status"]
    assert {**READER["rules"][0]} in status["resourceRules"]
    assert {"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]} in status[
        "resourceRules"
    ]
    assert "/api/*" in status["nonResourceRules"][0]["nonResourceURLs"]
    assert status["incomplete"] is False
    nowhere = await api("POST", path, review(kind, {}))
    assert (nowhere.code, nowhere.body["message"]) == (400, "no namespace on request")


async def test_escalation(api: Api) -> None:
    """Who may write roles may not give themselves more."""
    rules = [PolicyRule(("create", "update", "patch"), ("rbac.authorization.k8s.io",), ("roles", "rolebindings"))]
    await api("POST", f"{RBAC}/clusterroles", role("writers", *rules))
    await api("POST", f"{RBAC}/clusterrolebindings", binding("writers", "ClusterRole/writers", "user bob"))
    roles, bindings = f"{RBAC}/namespaces/default/roles", f"{RBAC}/namespaces/default/rolebindings"
    refused = await api("POST", roles, READER, Impersonate_User="bob")
    assert refused.code == 403
    assert refused.body["message"] == (
        'roles.rbac.authorization.k8s.io "reader" is forbidden: user "bob" (groups=["system:authenticated"]) is '
        "attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["configmaps"], Verbs:["get" "list" "watch" "patch"]}'
    )
    assert refused.body["details"] == {"name": "reader", "group": "rbac.authorization.k8s.io", "kind": "roles"}
    assert (await api("POST", bindings, BOUND, Impersonate_User="bob")).code == 404
    await give(api)
    more = {"rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]}
    assert (await api("PATCH", f"{roles}/reader", more, MERGE, Impersonate_User="bob")).code == 403
    less = {"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]}]}
    assert (await api("PATCH", f"{roles}/reader", less, MERGE, Impersonate_User="bob")).code == 200
