"""What counts as a change of a stored object."""

from __future__ import annotations

from typing import Any

import pytest

from packages.devcluster.tests.apiserver.widgets import widget
from trainer_devcluster.apiserver.kinds import BUILTIN_KINDS
from trainer_devcluster.apiserver.writes.drafting import differs_in_intent, unchanged

CONFIG_MAPS = next(kind for kind in BUILTIN_KINDS if kind.resource.kind == "ConfigMap")


def with_value(value: Any, time: str = "2026-01-01T00:00:00Z") -> dict[str, Any]:
    """An object with a free value, and a field manager that has written it at some time."""
    obj: dict[str, Any] = widget({"free": {"x": [value]}})
    obj["metadata"]["managedFields"] = [{"manager": "m", "operation": "Update", "time": time}]
    return obj


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        pytest.param(1, 1, True, id="the same"),
        pytest.param(1, 2, False, id="another number"),
        pytest.param(1, True, False, id="true is not 1"),
        pytest.param(False, 0, False, id="0 is not false"),
    ],
)
def test_values_that_python_takes_for_equal_are_changes(old: Any, new: Any, same: bool) -> None:
    """A write that makes a boolean of a number is stored, and gives the object a new generation."""
    assert unchanged(with_value(new), with_value(old)) is same
    assert differs_in_intent(CONFIG_MAPS, with_value(new), with_value(old)) is not same
