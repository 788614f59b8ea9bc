"""Who owns which field when several managers write one object, as clusters in production have them."""

from __future__ import annotations

import json
from typing import Any

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
