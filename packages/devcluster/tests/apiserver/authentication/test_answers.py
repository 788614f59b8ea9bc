"""What the server answers about tokens and users, over HTTP."""

from __future__ import annotations

from typing import Any

import jwt
import pytest

from packages.devcluster.tests.apiserver.http_client import Answer, Api

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
PODS = "/api/v1/namespaces/default/pods"
REVIEWS = "/apis/authentication.k8s.io/v1"


@pytest.fixture
async def bot(api: Api) -> str:
    """The path of a ServiceAccount."""
    answer = await api("POST", ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "bot"}})
    assert answer.code == 201
    return f"{ACCOUNTS}/bot"


async def request_token(api: Api, account: str, **spec: Any) -> Answer:
    """Ask for a token."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    return await api("POST", f"{account}/token", body)


async def review(api: Api, kind: str, spec: dict[str, Any] | None = None, **headers: str) -> Answer:
    """Send one of the reviews."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": kind} | ({} if spec is None else {"spec": spec})
    return await api("POST", f"{REVIEWS}/{kind.lower()}s", body, **headers)


@pytest.mark.parametrize(
    ("spec", "code", "text"),
    [
        pytest.param({"expirationSeconds": 599}, 422, "spec.expirationSeconds: Invalid value: 599", id="too-short"),
        pytest.param({"expirationSeconds": 1 << 33}, 422, "larger than 2^32 seconds", id="too-long"),
        pytest.param(
            {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "c"}},
            400,
            "cannot bind token to object of type v1, Kind=ConfigMap",
            id="bound-to-a-config-map",
        ),
        pytest.param(
            {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}}, 404, 'pods "p" not found', id="no-pod"
        ),
    ],
)
async def test_refused_token_requests(api: Api, bot: str, spec: dict[str, Any], code: int, text: str) -> None:
    """A TokenRequest that asks for what cannot be is refused with what is wrong."""
    answer = await request_token(api, bot, **spec)
    assert (answer.code, text in answer.body["message"]) == (code, True), answer.body


async def test_token_of_another_pod(api: Api, bot: str) -> None:
    """A token is bound to a pod only if the pod runs under the account, and is the one that is meant."""
    pod: Any = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    pod["spec"] = {"serviceAccountName": "bot", "containers": [{"name": "c", "image": "i"}]}
    created = await api("POST", PODS, pod)
    assert created.code == 201, created.body
    reference = {"kind": "Pod", "apiVersion": "v1", "name": "p"}
    await api("POST", ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "other"}})
    wrong = await request_token(api, f"{ACCOUNTS}/other", boundObjectRef=reference)
    assert (wrong.code, "different serviceaccount" in wrong.body["message"]) == (400, True)
    stale = await request_token(api, bot, boundObjectRef=reference | {"uid": "old"})
    assert (stale.code, "deleted and then recreated" in stale.body["message"]) == (409, True)
    good = await request_token(api, bot, boundObjectRef=reference | {"uid": created.body["metadata"]["uid"]})
    claims = jwt.decode(good.body["status"]["token"], options={"verify_signature": False})
    assert claims["kubernetes.io"]["pod"] == {"name": "p", "uid": created.body["metadata"]["uid"]}


async def test_token_review(api: Api, bot: str) -> None:
    """A review returns the user and the audiences of a token, or why it is invalid."""
    token = (await request_token(api, bot, audiences=["vault"])).body["status"]["token"]
    good = await review(api, "TokenReview", {"token": token, "audiences": ["vault", "other"]})
    assert good.code == 201
    assert good.body["status"]["authenticated"] is True
    assert good.body["status"]["audiences"] == ["vault"]
    assert good.body["status"]["user"]["username"] == "system:serviceaccount:default:bot"
    elsewhere = await review(api, "TokenReview", {"token": token})
    assert elsewhere.body["status"] == {
        "user": {},
        "error": '[invalid bearer token, token audiences ["vault"] is invalid for the target audiences '
        '["https://kubernetes.default.svc"]]',
    }
    garbage = await review(api, "TokenReview", {"token": "garbage"})
    assert garbage.body["status"] == {"user": {}, "error": "invalid bearer token"}
    administrator = await review(api, "TokenReview", {"token": api.server.token})
    assert administrator.body["status"]["user"]["username"] == "kubernetes-admin"
    assert (await review(api, "TokenReview", {})).code == 400


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param({"Impersonate_User": "jane"}, ("jane", ["system:authenticated"]), id="user"),
        pytest.param(
            {"Impersonate_User": "system:serviceaccount:ns:bot"},
            (
                "system:serviceaccount:ns:bot",
                ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"],
            ),
            id="service-account",
        ),
    ],
)
async def test_impersonation(api: Api, headers: dict[str, str], expected: tuple[str, list[str]]) -> None:
    """The administrator may act as anybody, who then counts as the sender."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = await api("POST", f"{REVIEWS}/selfsubjectreviews", body, **headers)
    info = answer.body["status"]["userInfo"]
    assert (info["username"], info["groups"]) == expected


async def test_impersonation_in_part(api: Api) -> None:
    """A group without a user is refused, not overheard."""
    answer = await api("GET", "/version", Impersonate_Group="system:masters")
    assert (answer.code, "Impersonate-User is missing" in answer.body["message"]) == (400, True)
