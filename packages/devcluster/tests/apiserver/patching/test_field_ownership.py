"""Who owns which field when several managers write one object, as clusters in production have them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.kube.errors import ConflictError
from trainer_devcluster.apiserver.objects.built_in_types import built_in_type, empty_object
from trainer_kube_testing.api_semantics import field_sets
from trainer_kube_testing.api_semantics.field_managers import apply, update
from trainer_kube_testing.api_semantics.value_types import Typing

Object = dict[str, Any]
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
NOW = "2026-01-01T00:00:00Z"


def typing_of(api_version: str, kind: str) -> Typing:
    found = built_in_type(api_version, kind)
    assert found is not None
    return found


SERVICE = typing_of("v1", "Service")
DEPLOYMENT = typing_of("apps/v1", "Deployment")


def applied(live: Object | None, config: Object, manager: str, *, force: bool = False, typing: Typing) -> Object:
    empty = empty_object(config)
    return apply(live, config, manager=manager, force=force, schema=typing, subresource=None, now=NOW, empty=empty)


def updated(live: Object | None, new: Object, manager: str, *, typing: Typing) -> Object:
    empty = empty_object(new)
    entries = update(live, new, manager=manager, schema=typing, subresource=None, now=NOW, empty=empty)
    return {**new, "metadata": {**new["metadata"], "managedFields": entries}}


def owned(obj: Object, manager: str) -> set[str]:
    """What a manager owns, as messages show paths."""
    return {
        field_sets.display(path)
        for entry in obj["metadata"].get("managedFields") or []
        if entry["manager"] == manager
        for path in field_sets.parse(entry["fieldsV1"])
    }


def make_service(*ports: Object) -> Object:
    metadata = {"name": "s", "uid": "u"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [*ports]}}


def make_deployment(replicas: int | None = None, **container: Any) -> Object:
    spec: Object = {"template": {"spec": {"containers": [{"name": "c", **container}]}}}
    if replicas is not None:
        spec["replicas"] = replicas
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "uid": "u"}, "spec": spec}


def test_list_keys_have_defaults() -> None:
    """A port without protocol is the TCP one: a second applier that states the protocol shares the item."""
    live = applied(None, make_service({"port": 80, "targetPort": 1}), "one", typing=SERVICE)
    live["spec"]["ports"][0]["protocol"] = "TCP"
    live = applied(live, make_service({"port": 80, "protocol": "TCP", "targetPort": 1}), "two", typing=SERVICE)
    assert len(live["spec"]["ports"]) == 1
    key = '.spec.ports[port=80,protocol="TCP"]'
    assert owned(live, "one") == {key, f"{key}.port", f"{key}.targetPort"}
    assert owned(live, "two") == {key, f"{key}.port", f"{key}.protocol", f"{key}.targetPort"}


def test_items_differ_in_any_key() -> None:
    """The same port for TCP and UDP is two items, each with its own owner."""
    live = applied(None, make_service({"port": 53, "protocol": "TCP"}), "one", typing=SERVICE)
    live = applied(live, make_service({"port": 53, "protocol": "UDP"}), "two", typing=SERVICE)
    assert [port["protocol"] for port in live["spec"]["ports"]] == ["TCP", "UDP"]
    live = applied(live, make_service(), "one", typing=SERVICE)
    assert [port["protocol"] for port in live["spec"]["ports"]] == ["UDP"]


def test_atomic_values_have_one_owner() -> None:
    """A selector is one value: a manager that changes a part of it owns all of it."""
    config = make_deployment(image="i")
    config["spec"]["selector"] = {"matchLabels": {"a": "1", "b": "2"}}
    live = applied(None, config, "one", typing=DEPLOYMENT)
    assert ".spec.selector" in owned(live, "one")
    other = make_deployment()
    other["spec"] = {"selector": {"matchLabels": {"a": "1"}}}
    with pytest.raises(ConflictError, match=r'conflict with "one": \.spec\.selector'):
        applied(live, other, "two", typing=DEPLOYMENT)
    live = applied(live, other, "two", force=True, typing=DEPLOYMENT)
    assert live["spec"]["selector"] == {"matchLabels": {"a": "1"}}
    assert ".spec.selector" not in owned(live, "one")


def test_conflicts_come_in_the_order_of_the_real_server() -> None:
    """Fields of a level come before what is below other fields of it."""
    live = applied(None, make_deployment(3, image="i"), "one", typing=DEPLOYMENT)
    live = applied(
        live, {**make_deployment(3), "spec": {"paused": True, "minReadySeconds": 1}}, "two", typing=DEPLOYMENT
    )
    change = make_deployment(4, image="j")
    change["spec"] |= {"paused": False, "minReadySeconds": 2}
    with pytest.raises(ConflictError) as caught:
        applied(live, change, "three", typing=DEPLOYMENT)
    image = '.spec.template.spec.containers[name="c"].image'
    assert caught.value.message == (
        f'Apply failed with 4 conflicts: conflicts with "one":\n- .spec.replicas\n- {image}\nconflicts with "two":\n'
        "- .spec.minReadySeconds\n- .spec.paused"
    )
    assert [cause["field"] for cause in caught.value.causes] == [
        ".spec.replicas", image, ".spec.minReadySeconds", ".spec.paused",
    ]  # fmt: skip


def test_kubectl_keeps_the_configuration_for_client_side_applies() -> None:
    """A server-side apply by kubectl brings the annotation of earlier client-side ones up to date; others do not."""
    old = make_deployment(3)
    live = {**old, "metadata": {"name": "d", "annotations": {LAST_APPLIED: json.dumps(old)}}}
    live = updated(None, live, "kubectl-client-side-apply", typing=DEPLOYMENT)
    by_other = applied(live, make_deployment(3), "other", typing=DEPLOYMENT)
    assert by_other["metadata"]["annotations"] == live["metadata"]["annotations"]
    by_kubectl = applied(live, make_deployment(4), "kubectl", typing=DEPLOYMENT)
    assert by_kubectl["spec"]["replicas"] == 4
    assert json.loads(by_kubectl["metadata"]["annotations"][LAST_APPLIED]) == make_deployment(4)


def test_null_is_a_value() -> None:
    """An applied null takes the field, and removes it where there is one."""
    live = applied(None, make_deployment(3), "one", typing=DEPLOYMENT)
    config = make_deployment()
    config["spec"]["replicas"] = None
    live = applied(live, config, "one", typing=DEPLOYMENT)
    assert live["spec"]["replicas"] is None
    assert ".spec.replicas" in owned(live, "one")


variables = st.dictionaries(st.sampled_from("ABC"), st.sampled_from("12"), max_size=3).map(
    lambda values: [{"name": name, "value": value} for name, value in values.items()]
)
labels = st.dictionaries(st.sampled_from("xyz"), st.sampled_from("12"), max_size=3)


@st.composite
def configurations(draw: st.DrawFn) -> Object:
    """Configurations of one Deployment that overlap and contradict each other."""
    container = draw(st.fixed_dictionaries({}, optional={"image": st.sampled_from("ij"), "env": variables}))
    config = make_deployment(draw(st.none() | st.integers(0, 2)), **container)
    config["metadata"]["labels"] = draw(labels)
    return config


@given(configurations(), configurations())
def test_applying_twice_is_applying_once(first: Object, second: Object) -> None:
    """A second apply of the same configuration changes neither the object nor its entries."""
    live = applied(applied(None, first, "one", typing=DEPLOYMENT), second, "two", force=True, typing=DEPLOYMENT)
    assert applied(live, second, "two", typing=DEPLOYMENT) == live


@given(configurations(), configurations())
def test_forced_configurations_are_all_there(first: Object, second: Object) -> None:
    """What an applier states is in the object and owned by it; what it takes over is no longer the other's."""
    live = applied(applied(None, first, "one", typing=DEPLOYMENT), second, "two", force=True, typing=DEPLOYMENT)
    alone = applied(None, second, "two", typing=DEPLOYMENT)
    assert owned(live, "two") == owned(alone, "two")
    for name, value in second["metadata"]["labels"].items():
        assert live["metadata"]["labels"][name] == value
        assert (f".metadata.labels.{name}" in owned(live, "one")) == (first["metadata"]["labels"].get(name) == value)


@given(configurations(), configurations())
def test_taking_an_owner_away_takes_only_its_fields(first: Object, second: Object) -> None:
    """When one of two appliers states nothing any more, what is left is what the other has."""
    one = applied(None, first, "one", typing=DEPLOYMENT)
    try:
        both = applied(one, second, "two", typing=DEPLOYMENT)
    except ConflictError:
        return
    nothing = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "uid": "u"}}
    left = applied(both, nothing, "two", typing=DEPLOYMENT)
    assert owned(left, "one") == owned(one, "one")
    assert owned(left, "two") == set()
    for name, value in first["metadata"]["labels"].items():
        assert left["metadata"]["labels"][name] == value
    assert (left["metadata"].get("labels") or {}) == first["metadata"]["labels"]
