"""AdmissionReviews: what is read from the API server, and what is written back."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest

from tests.kube.webhook.serving import review_of
from trainer.kube.field_errors import invalid
from trainer.kube.resource import Resource
from trainer.kube.webhook.admission import AdmissionRequest, AdmissionResponse, Operation
from trainer.kube.webhook.review import AdmissionReview, ReviewError
from trainer_kube_testing.api_semantics import json_patch as json_patches

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")


def decode(review: object) -> AdmissionReview:
    return AdmissionReview.decode(msgspec.json.encode(review))


def response_of(review: AdmissionReview, response: AdmissionResponse) -> dict[str, Any]:
    """The decoded response, after a look at what is around it."""
    answer = msgspec.json.decode(review.encode(response))
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert answer.keys() == {"apiVersion", "kind", "response"}
    inner: dict[str, Any] = answer["response"]
    assert inner.pop("uid") == "705ab4f5"
    return inner


def test_request_is_read_whole() -> None:
    """Every field has its place."""
    assert decode(review_of("UPDATE", subResource="status", dryRun=True)).request == AdmissionRequest(
        uid="705ab4f5",
        operation=Operation.UPDATE,
        resource=WIDGETS,
        subresource="status",
        name="w",
        namespace="ns",
        object={"apiVersion": "example.com/v1", "kind": "Widget", "spec": {}},
        old_object={"kind": "Widget", "spec": {"old": True}},
        dry_run=True,
        username="jane",
        groups=("devs", "system:authenticated"),
        options={"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    )


def test_request_may_be_sparse() -> None:
    """What an API server leaves out is empty: no name yet, no namespace, no groups, no dry run."""
    kind = {"version": "v1", "kind": "Node"}
    resource = {"version": "v1", "resource": "nodes"}
    sparse = {"uid": "u", "operation": "CREATE", "kind": kind, "resource": resource, "object": {"a": 1}}
    request = decode(review_of() | {"request": sparse}).request
    assert request.resource == Resource("", "v1", "nodes", "Node", namespaced=False)
    assert (request.name, request.namespace, request.subresource, request.username) == ("", "", "", "")
    assert (request.groups, request.dry_run, request.old_object, request.options) == ((), False, None, None)


def test_namespace_is_not_in_a_namespace() -> None:
    """The API server says it is in the one of its own name."""
    kind, resource = {"version": "v1", "kind": "Namespace"}, {"version": "v1", "resource": "namespaces"}
    assert not decode(review_of(kind=kind, resource=resource)).request.resource.namespaced


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        pytest.param(b"", "the request has no body: send an AdmissionReview as JSON", id="empty"),
        pytest.param(b"apiVersion: v1", "the body is not JSON: ", id="yaml"),
        pytest.param(b"[]", "Expected `object`, got `array`", id="list"),
        pytest.param(b"{}", 'kind: Unsupported value: "": supported values: "AdmissionReview"', id="no-kind"),
        pytest.param(
            review_of() | {"kind": "Pod"},
            'kind: Unsupported value: "Pod": supported values: "AdmissionReview"',
            id="other-kind",
        ),
        pytest.param(
            review_of() | {"apiVersion": "admission.k8s.io/v1beta1"},
            'apiVersion: Unsupported value: "admission.k8s.io/v1beta1": supported values: "admission.k8s.io/v1"; '
            "set admissionReviewVersions of the webhook to [v1]",
            id="other-version",
        ),
        pytest.param(
            {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"},
            "request: Required value",
            id="no-request",
        ),
        pytest.param(review_of(uid=""), "request.uid: Required value", id="empty-uid"),
        pytest.param(review_of() | {"request": {}}, "request: Object missing required field `uid`", id="no-uid"),
        pytest.param(
            review_of("PATCH"),
            'request.operation: Unsupported value: "PATCH": supported values: "CREATE", "UPDATE", "DELETE", "CONNECT"',
            id="operation",
        ),
        pytest.param(
            review_of(object=None), "request.object: Required value: CREATE has an object", id="create-nothing"
        ),
        pytest.param(
            review_of("DELETE", oldObject=None),
            "request.oldObject: Required value: DELETE has an old object",
            id="delete-nothing",
        ),
        pytest.param(review_of(object=[]), "request.object: Expected `object | null`, got `array`", id="object-list"),
        pytest.param(
            review_of(object={"metadata": "x"}),
            "request.object.metadata: Expected `object`, got `str`",
            id="metadata",
        ),
        pytest.param(
            msgspec.json.encode(review_of(object={"a": 1})).replace(
                b'{"a":1}', b'{"a":' * 300_000 + b"1" + b"}" * 300_000
            ),
            "nested too deeply",
            id="deep",
        ),
        pytest.param(
            msgspec.json.encode(review_of(object={"a": 1})).replace(b'{"a":1}', b'{"a":1e999}'),
            "request.object[...]: Number out of range",
            id="number-too-large",
        ),
    ],
)
def test_nonsense_is_named(body: bytes | dict[str, Any], problem: str) -> None:
    """The text has the path of the field and what is expected there."""
    with pytest.raises(ReviewError) as raised:
        AdmissionReview.decode(body if isinstance(body, bytes) else msgspec.json.encode(body))
    assert problem in str(raised.value)


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        pytest.param(AdmissionResponse.allow(), {"allowed": True}, id="allow"),
        pytest.param(
            AdmissionResponse.allow(["a\nb"]), {"allowed": True, "warnings": ["a b"]}, id="allow-with-warning"
        ),
        pytest.param(
            AdmissionResponse(allowed=True, message="because"),
            {"allowed": True, "status": {"metadata": {}, "message": "because", "code": 200}},
            id="allow-with-message",
        ),
        pytest.param(
            AdmissionResponse(allowed=True, audit_annotations={"size": "3"}),
            {"allowed": True, "auditAnnotations": {"size": "3"}},
            id="audit",
        ),
        pytest.param(
            AdmissionResponse.mutate({"apiVersion": "example.com/v1", "kind": "Widget", "spec": {}}),
            {"allowed": True},
            id="mutated-into-the-same",
        ),
        pytest.param(
            AdmissionResponse.deny([invalid("spec.a", -1, "must be at least 1")]),
            {
                "allowed": False,
                "status": {
                    "kind": "Status",
                    "apiVersion": "v1",
                    "metadata": {},
                    "status": "Failure",
                    "message": "spec.a: Invalid value: -1: must be at least 1",
                    "reason": "Invalid",
                    "code": 422,
                    "details": {
                        "group": "example.com",
                        "kind": "Widget",
                        "name": "w",
                        "causes": [
                            {
                                "reason": "FieldValueInvalid",
                                "message": "Invalid value: -1: must be at least 1",
                                "field": "spec.a",
                            }
                        ],
                    },
                },
            },
            id="deny",
        ),
        pytest.param(
            AdmissionResponse.fail(403, "Forbidden", "not today"),
            {
                "allowed": False,
                "status": {
                    "kind": "Status",
                    "apiVersion": "v1",
                    "metadata": {},
                    "status": "Failure",
                    "message": "not today",
                    "reason": "Forbidden",
                    "code": 403,
                    "details": {"group": "example.com", "kind": "Widget", "name": "w"},
                },
            },
            id="forbid",
        ),
    ],
)
def test_answer(response: AdmissionResponse, expected: dict[str, Any]) -> None:
    """Only what says something is written; a refusal is a Status of which kubectl shows causes and name."""
    assert response_of(decode(review_of()), response) == expected


def test_change_is_sent_as_a_patch() -> None:
    """Base64 of a JSON patch that makes of the object what the handler returned."""
    original = {"spec": {"env": ["a", "b"], "drop": 1}}
    wanted = {"spec": {"env": ["a", "x", "b"], "new": {"deep": True}}}
    answer = response_of(decode(review_of(object=original)), AdmissionResponse.mutate(wanted))
    assert answer["patchType"] == "JSONPatch"
    operations = msgspec.json.decode(base64.b64decode(answer["patch"]))
    assert json_patches.json_patch(original, operations) == wanted


def test_object_may_be_changed_in_place() -> None:
    """A handler that changes the object that it was given and returns it gets its change into the patch."""
    review = decode(review_of())
    assert review.request.object is not None
    review.request.object["spec"]["replicas"] = 1
    answer = response_of(review, AdmissionResponse.mutate(review.request.object))
    expected = [{"op": "add", "path": "/spec/replicas", "value": 1}]
    assert msgspec.json.decode(base64.b64decode(answer["patch"])) == expected


def test_nothing_can_be_changed_where_there_is_no_object() -> None:
    """Of a deletion there is nothing that could be stored."""
    with pytest.raises(ValueError, match="DELETE has no object"):
        decode(review_of("DELETE")).encode(AdmissionResponse.mutate({"a": 1}))
