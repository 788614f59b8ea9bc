"""Whatever a client sends, the server answers, and never that it has a bug."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
import structlog
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from yarl import URL

from packages.devcluster.tests.apiserver import loose_kind
from packages.devcluster.tests.apiserver.http_client import APPLY, JSON_PATCH, MERGE, STRATEGIC, Api, api_for
from trainer.kube.errors import ApiError
from trainer_devcluster.apiserver.server import ServerOptions, serve
from trainer_devcluster.apiserver.wire.body import decode_object
from trainer_kube_testing.api_semantics.paging import ListPosition

BUG = "the dev cluster has a bug"

scalars = (
    st.none()
    | st.booleans()
    | st.integers(min_value=-(10**30), max_value=10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "a", "1Gi", "100m", "-1", "2026-01-01T00:00:00Z", "9999-99-99T99:99:99Z", "self.x", "\0"])
    | st.text(max_size=8)
)
NAMES = ["metadata", "spec", "status", "name", "labels", "annotations", "finalizers", "ownerReferences", "template"]
MORE_NAMES = ["managedFields", "containers", "selector", "replicas", "data", "items", "kind", "$patch", "$retainKeys"]
names = st.sampled_from(NAMES + MORE_NAMES) | st.text(max_size=4)
values: st.SearchStrategy[Any] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4), max_leaves=12
)
metadata = st.fixed_dictionaries(
    {"name": st.sampled_from(["a", "b"])},
    optional={
        "labels": values,
        "annotations": values,
        "finalizers": values,
        "ownerReferences": values,
        "managedFields": values,
        "resourceVersion": scalars,
        "uid": scalars,
        "generateName": scalars,
        "creationTimestamp": scalars,
        "deletionTimestamp": scalars,
    },
)
COLLECTIONS = {
    "/api/v1/namespaces/default/pods": ("v1", "Pod"),
    "/api/v1/namespaces/default/configmaps": ("v1", "ConfigMap"),
    "/api/v1/namespaces/default/secrets": ("v1", "Secret"),
    "/api/v1/namespaces/default/services": ("v1", "Service"),
    "/api/v1/namespaces/default/events": ("v1", "Event"),
    "/api/v1/nodes": ("v1", "Node"),
    "/apis/batch/v1/namespaces/default/jobs": ("batch/v1", "Job"),
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers": ("autoscaling/v2", "HorizontalPodAutoscaler"),
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations": (
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
    ),
    "/apis/rbac.authorization.k8s.io/v1/clusterroles": ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    loose_kind.PATH: ("example.com/v1", "LooseThing"),
}
LIST_PARAMETERS = ["labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "resourceVersionMatch"]
WATCH_PARAMETERS = ["watch", "sendInitialEvents", "allowWatchBookmarks", "includeObject"]
WRITE_PARAMETERS = ["fieldManager", "fieldValidation", "force", "dryRun"]
DELETE_PARAMETERS = ["propagationPolicy", "gracePeriodSeconds", "orphanDependents"]
QUERY_NAMES = LIST_PARAMETERS + WATCH_PARAMETERS + WRITE_PARAMETERS + DELETE_PARAMETERS
QUERY_VALUES = ["", "0", "1", "-1", "true", "All", "Exact", "NotOlderThan", "Strict", "a=b", "a in (b)"]
query_values = st.sampled_from(QUERY_VALUES)
query_values |= st.text(max_size=6) | st.integers().map(str) | st.just("9" * 5000)
PATCHES = [JSON_PATCH, MERGE, STRATEGIC, APPLY]
ACCEPTED = ["application/json", "application/json;as=Table;v=v1;g=meta.k8s.io", "*/*", "text/html", ";;", ""]
ACCEPTED += ["application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "application/json;q=nan;as=x"]


@st.composite
def objects(draw: st.DrawFn, api_version: str, kind: str) -> Any:
    obj = {"apiVersion": api_version, "kind": kind, "metadata": draw(metadata | values)}
    obj |= draw(st.fixed_dictionaries({}, optional={"spec": values, "status": values, "data": values, "rules": values}))
    return draw(st.just(obj) | values) if draw(st.integers(0, 5)) == 0 else obj


json_patches = st.lists(
    st.fixed_dictionaries(
        {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "x"])},
        optional={
            "path": st.sampled_from(["", "/", "/metadata", "/metadata/name", "/spec", "/data/-", "/a~2", "/spec/0/x"]),
            "from": st.sampled_from(["", "/metadata", "/spec", "/nowhere"]),
            "value": values,
        },
    ),
    max_size=3,
)


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, str, bytes, str, str]:
    """Method, path with query, body, content type and accepted types."""
    path = draw(st.sampled_from(sorted(COLLECTIONS)))
    api_version, kind = COLLECTIONS[path]
    method = draw(st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"]))
    if method in {"PUT", "PATCH"} or draw(st.booleans()):
        path += draw(
            st.sampled_from(["/a", "/a", "/b", "/a/status", "/a/scale", "/a/log", "/a/binding", "/%00", "/%ff"])
        )
    content_type = draw(st.sampled_from(PATCHES)) if method == "PATCH" else "application/json"
    body = draw(json_patches | values if content_type == JSON_PATCH else objects(api_version, kind))
    query = draw(st.dictionaries(st.sampled_from(QUERY_NAMES), query_values, max_size=2)) | {"timeoutSeconds": "-1"}
    if content_type == APPLY:
        query.setdefault("fieldManager", "fuzz")
    url = URL(path, encoded=True).with_query(query)
    return method, str(url), json.dumps(body).encode(), content_type, draw(st.sampled_from(ACCEPTED))


def with_server(test: Callable[[Api], Any], path: Path) -> None:
    async def run() -> None:
        async with serve(ServerOptions(path)) as server, api_for(server) as api:
            await loose_kind.install(api)
            await test(api)

    anyio.run(run)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(batch=st.lists(requests(), min_size=5, max_size=40))
def test_requests(tmp_path_factory: pytest.TempPathFactory, batch: list[tuple[str, str, bytes, str, str]]) -> None:
    """Requests of all sorts to all sorts of kinds, one after the other, are answered without a bug."""

    async def send(api: Api) -> None:
        with structlog.testing.capture_logs() as logs:
            for method, path, body, content_type, accept in batch:
                answer = await api(method, path, body if method != "GET" else None, content_type, Accept=accept)
                assert BUG not in str(answer.body), (method, path, body)
                assert 200 <= answer.code < 600
        failed = [entry for entry in logs if entry["event"] == "failed to answer a request"]
        assert not failed
        # Whatever was stored can be shown; the definition of the custom kind may be among what was deleted.
        for path in COLLECTIONS:
            for accept in ACCEPTED[:2]:
                code = (await api("GET", path, Accept=accept)).code
                assert code == 200 or (code == 404 and path == loose_kind.PATH)

    with_server(send, tmp_path_factory.mktemp("server"))


@settings(max_examples=300, deadline=None)
@given(
    content=st.binary(max_size=60)
    | st.binary(max_size=40).map(lambda data: b"k8s\0\n\x0f\n\x02v1\x12\x09ConfigMap\x12" + bytes([len(data)]) + data)
    | values.map(lambda value: json.dumps(value).encode())
    | st.text(alphabet="-?:,[]{}#&*!|>'\"%@` \nabc01.~<=", max_size=40).map(str.encode),
    content_type=st.sampled_from(["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"]),
)
def test_bodies(content: bytes, content_type: str) -> None:
    """Bytes are an object that JSON can write, or a 400 that says why not."""
    code, decoded = outcome(lambda: decode_object(content, content_type))
    assert code in {200, 400}
    json.dumps(decoded, allow_nan=False, ensure_ascii=False).encode()


@settings(max_examples=200, deadline=None)
@given(
    token=st.text(max_size=30)
    | st.binary(max_size=30).map(lambda data: base64.urlsafe_b64encode(data).decode().rstrip("="))
    | values.map(lambda value: base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("="))
)
def test_continue_tokens(token: str) -> None:
    """A token is a position, or a 400."""
    code, _ = outcome(lambda: ListPosition.decode(token))
    assert code in {200, 400}


def outcome(read: Callable[[], object]) -> tuple[int, object]:
    try:
        return 200, read()
    except ApiError as error:
        return error.code, None
