"""Custom resource definitions through HTTP."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from packages.devcluster.tests.apiserver.http_client import MERGE, Answer, Api
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.schema.structural import StructuralSchema
from trainer_kube_testing.api_semantics import field_managers

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GADGETS = "/apis/example.com/v1/namespaces/default/gadgets"


def definition(**names: Any) -> Object:
    """A definition with status and scale."""
    spec = {
        "type": "object",
        "required": ["n"],
        "properties": {
            "n": {"type": "integer", "minimum": 0, "maximum": 9},
            "mode": {"type": "string", "default": "slow"},
        },
    }
    status = {"type": "object", "properties": {"n": {"type": "integer"}, "selector": {"type": "string"}}}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.n",
                "statusReplicasPath": ".status.n",
                "labelSelectorPath": ".status.selector",
            },
        },
        "selectableFields": [{"jsonPath": ".spec.mode"}],
    }  # fmt: skip
    all_names = {"plural": "gadgets", "kind": "Gadget", "shortNames": ["gd"], **names}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{all_names['plural']}.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": all_names, "versions": [version]},
    }


def gadget(name: str, **spec: Any) -> Object:
    return {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": name}, "spec": {"n": 1, **spec}}


async def until(api: Api, path: str, check: Callable[[Answer], bool]) -> Answer:
    """The first answer that passes the check."""
    async with asyncio.timeout(10):
        while True:
            answer = await api("GET", path)
            if check(answer):
                return answer


async def install(api: Api, body: Object) -> Answer:
    """Store a definition and wait until its fate is decided."""
    created = await api("POST", CRDS, body)
    assert created.code == 201, created.body
    return await until(api, f"{CRDS}/{body['metadata']['name']}", lambda answer: len(conditions(answer)) == 2)


def conditions(answer: Answer) -> dict[str, str]:
    return {entry["type"]: entry["status"] for entry in answer.body["status"].get("conditions") or []}


def nested_definition() -> Object:
    """A definition whose replicas are two levels deep, optional and bound to other fields by a rule."""
    trainer = {"type": "object", "properties": {"n": {"type": "integer"}, "image": {"type": "string"}}}
    rule = {"rule": "!has(self.trainer) || !has(self.trainer.n) || self.trainer.n <= self.most", "message": "too many"}
    spec = {"type": "object", "properties": {"trainer": trainer, "most": {"type": "integer", "default": 5}}}
    body = definition()
    version = body["spec"]["versions"][0]
    version["schema"]["openAPIV3Schema"]["properties"]["spec"] = {**spec, "x-kubernetes-validations": [rule]}
    version["subresources"]["scale"]["specReplicasPath"] = ".spec.trainer.n"
    del version["selectableFields"]
    return body


@pytest.mark.parametrize(
    "spec", [pytest.param({"trainer": {"image": "i"}}, id="no replicas"), pytest.param({}, id="no parent of them")]
)
async def test_scale_of_an_object_without_replicas(api: Api, spec: Object) -> None:
    """There is nothing to read, which autoscalers stumble over; a write makes what is missing."""
    await install(api, nested_definition())
    await api(
        "POST", GADGETS, {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "a"}, "spec": spec}
    )
    missing = await api("GET", f"{GADGETS}/a/scale")
    assert (missing.code, missing.body["reason"]) == (500, "InternalError")
    assert 'the spec replicas field ".spec.trainer.n" does not exist' in missing.body["message"]

    empty = await api("PATCH", f"{GADGETS}/a/scale", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    assert (empty.code, empty.body["message"]) == (400, 'the spec replicas field ".spec.trainer.n" cannot be empty')
    path = f"{GADGETS}/a/scale?fieldManager=scaler"
    assert (await api("PATCH", path, {"spec": {"replicas": 3}}, MERGE)).body["spec"] == {"replicas": 3}

    stored = (await api("GET", f"{GADGETS}/a")).body
    assert stored["spec"] == {**spec, "trainer": {**spec.get("trainer", {}), "n": 3}, "most": 5}
    [entry] = [entry for entry in stored["metadata"]["managedFields"] if entry["manager"] == "scaler"]
    assert (entry["operation"], entry["subresource"], entry["apiVersion"]) == ("Update", "scale", "example.com/v1")
    assert "f:n" in entry["fieldsV1"]["f:spec"]["f:trainer"]
    assert stored["metadata"]["generation"] == 2


async def test_new_defaults_are_no_change(api: Api) -> None:
    """What is stored counts as the definition of today reads it, so that rules about change have two equal sides."""
    await install(api, definition())
    await api("POST", GADGETS, gadget("a"))
    schema = "/spec/versions/0/schema/openAPIV3Schema"
    rule = {"rule": "self.spec == oldSelf.spec", "message": "spec is immutable"}
    patch = [
        {
            "op": "add",
            "path": f"{schema}/properties/spec/properties/grade",
            "value": {"type": "string", "default": "a"},
        },
        {"op": "add", "path": f"{schema}/x-kubernetes-validations", "value": [rule]},
    ]
    changed = await api("PATCH", f"{CRDS}/gadgets.example.com", patch, "application/json-patch+json")
    assert changed.code == 200, changed.body
    async with asyncio.timeout(10):
        while "grade" not in (await api("POST", f"{GADGETS}?dryRun=All", gadget("b"))).body["spec"]:
            pass
    labelled = await api("PATCH", f"{GADGETS}/a", {"metadata": {"labels": {"l": "1"}}}, MERGE)
    assert (labelled.code, labelled.body.get("message")) == (200, None)
    refused = await api("PATCH", f"{GADGETS}/a", {"spec": {"grade": "b"}}, MERGE)
    assert (refused.code, "spec is immutable" in refused.body["message"]) == (422, True)


async def test_deleting_a_definition_deletes_its_objects(api: Api) -> None:
    """The definition goes after its objects, and the objects after their finalizers; then nothing is served."""
    await install(api, definition())
    held = gadget("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    for obj in (gadget("a"), held):
        await api("POST", GADGETS, obj)
    await api("DELETE", f"{CRDS}/gadgets.example.com")
    await until(api, f"{GADGETS}/a", lambda answer: answer.code == 404)
    assert conditions(await api("GET", f"{CRDS}/gadgets.example.com"))["Terminating"] == "True"
    refused = [await api("POST", GADGETS, gadget("late")), await api.apply(f"{GADGETS}/late", gadget("late"))]
    assert [(answer.code, "terminating" in answer.body["message"]) for answer in refused] == [(405, True), (405, True)]
    await api("PATCH", f"{GADGETS}/held", {"metadata": {"finalizers": None}}, MERGE)
    await until(api, f"{CRDS}/gadgets.example.com", lambda answer: answer.code == 404)
    assert (await api("GET", GADGETS)).body == "404 page not found\n"


async def test_definitions_are_worked_on_beside_the_event_loop(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiling a large schema and merging it into the stored one holds up nobody."""
    threads: list[int] = []

    def noting(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            threads.append(threading.get_ident())
            return function(*arguments, **options)

        return call

    monkeypatch.setattr(StructuralSchema, "from_crd", noting(StructuralSchema.from_crd))
    monkeypatch.setattr(field_managers, "apply", noting(field_managers.apply))
    monkeypatch.setattr(field_managers, "update", noting(field_managers.update))
    await install(api, definition())
    path = f"{CRDS}/gadgets.example.com"
    assert (await api("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, MERGE)).code == 200
    assert (await api.apply(path, definition(), "fieldManager=x&force=1")).code == 200
    assert len(threads) > 5
    assert threading.get_ident() not in threads
