"""Tables."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from devcluster.tests.apiserver.widgets import WIDGET, widget
from trainer.kube.resource import PODS
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import StoreOnlyStrategy
from trainer_devcluster.apiserver.tables.table import IncludeObject, table

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("include", "shown"),
    [
        (
            IncludeObject.METADATA,
            {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": {"name": "a", "namespace": "ns"},
            },
        ),
        (IncludeObject.OBJECT, widget({"size": 3})),
        (IncludeObject.NONE, None),
    ],
)
def test_rows_carry_what_is_asked_for(include: IncludeObject, shown: object) -> None:
    """`includeObject` decides between the metadata, the object and nothing."""
    result = table([widget({"size": 3})], WIDGET, include_object=include, resource_version="7", now=NOW)
    assert result["rows"] == [{"cells": ["a", None, None, None, None], "object": shown}]


def test_list_metadata() -> None:
    """A page says where it stands; the last page says only its version."""
    page = table([], WIDGET, resource_version="7", continue_="token", remaining_item_count=3, now=NOW)
    assert page["metadata"] == {"resourceVersion": "7", "continue": "token", "remainingItemCount": 3}
    last = table([], WIDGET, resource_version="7", now=NOW, version="v1beta1")
    assert last["metadata"] == {"resourceVersion": "7"}
    assert (last["kind"], last["apiVersion"], last["rows"]) == ("Table", "meta.k8s.io/v1beta1", [])


def test_finished_pods_are_marked() -> None:
    """Their rows have a condition."""
    pod = {"metadata": {"name": "p"}, "status": {"phase": "Failed"}}
    (row,) = table([pod], ResourceDefinition(PODS, StoreOnlyStrategy()), resource_version="7", now=NOW)["rows"]
    assert [condition["reason"] for condition in row["conditions"]] == ["Failed"]
