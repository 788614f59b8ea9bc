"""Tables."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from packages.devcluster.tests.apiserver.widgets import WIDGET, widget
from trainer.kube.resource import PODS, Resource
from trainer_devcluster.apiserver.definitions.resource_definition import Column, ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import Strategy
from trainer_devcluster.apiserver.tables.table import printer_for, table

PRINTED_AT = datetime(2026, 1, 1, 0, 1, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("column_type", "value", "cell"),
    [
        ("string", "x", "x"),
        ("string", True, "true"),
        ("string", 3, "3"),
        ("string", {"b": [1], "a": None}, '{"a":null,"b":[1]}'),
        ("integer", 45, 45),
        ("integer", 4.7, 4),
        ("integer", "45", None),
        ("integer", True, None),
        ("number", 1.5, 1.5),
        ("boolean", False, False),
        ("boolean", "false", None),
        ("date", "2026-01-01T00:00:00Z", "60s"),
        ("date", "soon", "<invalid>"),
        ("date", 3, None),
    ],
)
def test_cells_are_converted_by_the_type_of_the_column(column_type: str, value: Any, cell: Any) -> None:
    """A value that does not fit its column is no value."""
    definition = replace(WIDGET, columns=(Column("C", column_type, ".spec.free"),))
    assert printer_for(definition).cells(widget({"free": value}), PRINTED_AT) == ["a", cell]


def test_kinds_without_a_printer_show_name_and_age() -> None:
    """Every kind can be listed."""
    definition = ResourceDefinition(Resource("example.com", "v1", "things", "Thing"), Strategy())
    printer = printer_for(definition)
    assert [column["name"] for column in printer.columns] == ["Name", "Age"]
    assert printer.cells(widget({}), PRINTED_AT) == ["a", "<unknown>"]


NOW = datetime(2026, 1, 1, tzinfo=UTC)


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
    (row,) = table([pod], ResourceDefinition(PODS, Strategy()), resource_version="7", now=NOW)["rows"]
    assert [condition["reason"] for condition in row["conditions"]] == ["Failed"]
