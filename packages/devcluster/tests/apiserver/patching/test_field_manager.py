"""Field managers; the sequences and texts are recorded from a real API server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from packages.devcluster.tests.apiserver.widgets import WIDGET_SCHEMA, widget
from trainer.kube.errors import ConflictError
from trainer_kube_testing.api_semantics.field_managers import MAX_UPDATE_MANAGERS, apply, update

TYPE = WIDGET_SCHEMA.typing
THEN, NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

Object = dict[str, Any]


def applied(
    live: Object | None,
    spec: Object | None,
    manager: str,
    *,
    force: bool = False,
    now: str = NOW,
    subresource: str | None = None,
    **fields: Any,
) -> Object:
    """What is stored after an apply, with defaults."""
    config = widget(spec, **fields)
    obj = apply(
        live,
        config,
        manager=manager,
        force=force,
        schema=TYPE,
        subresource=subresource,
        now=now,
        reset_fields=None if subresource else ("status",),
    )
    WIDGET_SCHEMA.default(obj)
    return obj


def updated(
    live: Object | None, new: Object, manager: str = "u", *, now: str | None = NOW, subresource: str | None = None
) -> Object:
    """What is stored after an update."""
    entries = update(live, new, manager=manager, schema=TYPE, subresource=subresource, now=now)
    metadata = {name: value for name, value in new["metadata"].items() if name != "managedFields"}
    return {**new, "metadata": {**metadata, **({"managedFields": entries} if entries else {})}}


def fields(obj: Object) -> dict[str, Object]:
    """Fields by `manager/operation[/subresource]`."""
    return {
        "/".join(filter(None, (entry["manager"], entry["operation"], entry.get("subresource")))): entry["fieldsV1"]
        for entry in obj["metadata"].get("managedFields") or []
    }


@pytest.mark.parametrize("reset", [[], [{}]])
def test_managed_fields_can_be_reset(reset: list[Object]) -> None:
    """An empty list or one empty entry ends the bookkeeping; a later apply starts it again for all fields."""
    live = updated(None, widget({"size": 3}))
    live["metadata"]["uid"] = "u"
    new = {**live, "metadata": {**live["metadata"], "managedFields": reset}, "spec": {"size": 4}}
    plain = updated(live, new)
    assert fields(plain) == {}
    plain["metadata"].pop("managedFields", None)
    with pytest.raises(ConflictError, match='conflict with "before-first-apply" using'):
        applied(plain, {"size": 5}, "one")


def test_old_managers_of_updates_are_merged() -> None:
    """Only so many are kept apart; the oldest become ancient-changes."""
    live = updated(None, widget({"size": 1, "labels": {}}), "first", now=THEN)
    for number in range(MAX_UPDATE_MANAGERS + 1):
        labels = {**live["spec"]["labels"], f"l{number}": "x"}
        now = f"2026-02-{number + 1:02d}T00:00:00Z"
        live = updated(live, {**live, "spec": {**live["spec"], "labels": labels}}, f"m{number:02d}", now=now)
    owned = fields(live)
    assert len(owned) == MAX_UPDATE_MANAGERS + 1
    assert owned["ancient-changes/Update"]["f:spec"]["f:labels"]["f:l0"] == {}
    assert {"first/Update", "m00/Update"}.isdisjoint(owned)


def test_kubectl_does_not_take_over_what_others_have_changed_since() -> None:
    """A field that differs from the last-applied annotation belongs to the manager that changed it."""
    obj = widget({"size": 3})
    obj["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(widget({"size": 3}))}
    live = updated(None, obj, "kubectl-client-side-apply")
    live = updated(live, {**live, "spec": {"size": 5}}, "editor")
    with pytest.raises(ConflictError, match='conflict with "editor"'):
        applied(live, {"size": 4}, "kubectl")
