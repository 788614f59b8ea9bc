"""Refusals that people and controllers read, with the texts of the real server."""

from __future__ import annotations

from typing import Any

import pytest

from packages.devcluster.tests.apiserver.http_client import JSON_PATCH, MERGE, Api

MAPS = "/api/v1/namespaces/default/configmaps"
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
OTHER = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "v", "controller": True}


def config_map(**metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}}


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        pytest.param(
            config_map(finalizers=["mine"]),
            422,
            'ConfigMap "a" is invalid: metadata.finalizers[0]: Invalid value: "mine": name is neither a standard '
            "finalizer name nor is it fully qualified",
            id="finalizer without a domain",
        ),
        pytest.param(
            config_map(finalizers=["orphan", "foregroundDeletion"]),
            422,
            'ConfigMap "a" is invalid: metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer '
            "orphan and foregroundDeletion cannot be both set",
            id="both deletion finalizers",
        ),
        pytest.param(
            config_map(ownerReferences=[{}]),
            422,
            'ConfigMap "a" is invalid: [metadata.ownerReferences.apiVersion: Invalid value: "": version must not be '
            'empty, metadata.ownerReferences.kind: Invalid value: "": kind must not be empty, '
            'metadata.ownerReferences.name: Invalid value: "": name must not be empty, metadata.ownerReferences.uid: '
            'Invalid value: "": uid must not be empty]',
            id="empty owner",
        ),
        pytest.param(
            config_map(ownerReferences=[OWNER, OTHER]),
            422,
            'ConfigMap "a" is invalid: metadata.ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"Pod",'
            '"name":"p","uid":"u","controller":true},{"apiVersion":"v1","kind":"Node","name":"n","uid":"v",'
            '"controller":true}]: Only one reference can have Controller set to true. Found "true" in references for '
            "Pod/p and Node/n",
            id="two controllers",
        ),
        pytest.param(
            config_map(resourceVersion="1"),
            500,
            "resourceVersion should not be set on objects to be created",
            id="version of a new object",
        ),
        pytest.param(
            {**config_map(), "kind": "Nonsense"},
            400,
            'Nonsense in version "v1" cannot be handled as a ConfigMap: no kind "Nonsense" is registered for version '
            '"v1" in scheme "pkg/api/legacyscheme/scheme.go:30"',
            id="unknown kind",
        ),
        pytest.param(
            {**config_map(), "apiVersion": "batch/v1", "kind": "Job"},
            400,
            'Job in version "v1" cannot be handled as a ConfigMap: converting (v1.Job) to (core.ConfigMap): unknown '
            "conversion",
            id="another kind",
        ),
        pytest.param(
            {**config_map(), "data": {"..x": "1"}, "binaryData": {"k": "AA=="}},
            422,
            'ConfigMap "a" is invalid: data[..x]: Invalid value: "..x": must not start with \'..\'',
            id="key that is a path",
        ),
    ],
)
async def test_refused_objects(api: Api, body: Any, code: int, message: str) -> None:
    """Metadata and kinds that cannot be accepted."""
    answer = await api("POST", MAPS, body)
    assert (answer.code, answer.body["message"]) == (code, message)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param(
            "fieldValidation=Maybe",
            'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Maybe": supported values: '
            '"", "Ignore", "Strict", "Warn"',
            id="fieldValidation",
        ),
        pytest.param(
            "fieldManager=a%07b",
            'CreateOptions.meta.k8s.io "" is invalid: fieldManager: Invalid value: "a\\u0007b": invalid character '
            "U+0007 (at position 1)",
            id="manager with a bell",
        ),
    ],
)
async def test_refused_options(api: Api, query: str, message: str) -> None:
    """Options are named after the verb."""
    answer = await api("POST", f"{MAPS}?{query}", config_map())
    assert (answer.code, answer.body["message"]) == (422, message)


TOKEN = "invalid continue token: continue key is not valid: "


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param("fieldSelector=a", "invalid selector: 'a'; can't understand 'a'", id="field"),
        pytest.param("limit=1&continue=e30", TOKEN, id="another token"),
    ],
)
async def test_refused_lists(api: Api, query: str, message: str) -> None:
    """Selectors and continue tokens that cannot be read are refused with 400."""
    answer = await api("GET", f"{MAPS}?{query}")
    assert answer.code == 400
    assert answer.body["message"].startswith(message)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        pytest.param("/api/v1/pods", "field label not supported: a", id="fields of its own"),
        pytest.param("/apis/batch/v1/jobs", 'field label "a" not supported for batchv1.Job', id="jobs"),
    ],
)
async def test_unknown_field_labels(api: Api, path: str, message: str) -> None:
    """What cannot be selected by is refused in the words of the kind."""
    answer = await api("GET", f"{path}?fieldSelector=a%3Db")
    assert (answer.code, answer.body["message"]) == (400, message)


async def test_what_stays_for_life(api: Api) -> None:
    """A patch may not change uid or creation time; an update for another uid finds another object."""
    await api("POST", MAPS, config_map())
    uid = (await api("GET", f"{MAPS}/a")).body["metadata"]["uid"]
    patched = await api("PATCH", f"{MAPS}/a", {"metadata": {"uid": "x"}}, MERGE)
    assert (patched.code, patched.body["message"]) == (
        422,
        'ConfigMap "a" is invalid: metadata.uid: Invalid value: "x": field is immutable',
    )
    assert len(patched.body["details"]["causes"]) == 2
    time = [{"op": "replace", "path": "/metadata/creationTimestamp", "value": "2020-01-01T00:00:00Z"}]
    assert (await api("PATCH", f"{MAPS}/a", time, JSON_PATCH)).body["message"] == (
        'ConfigMap "a" is invalid: metadata.creationTimestamp: Invalid value: "2020-01-01T00:00:00Z": field is '
        "immutable"
    )
    put = await api("PUT", f"{MAPS}/a", config_map(uid="x"))
    assert (put.code, put.body["message"]) == (
        409,
        (
            'Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, Key: '
            "/registry/configmaps/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in "
            f"precondition: x, UID in object meta: {uid}"
        ),
    )
