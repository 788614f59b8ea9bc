"""Selections, and which objects belong to them."""

from __future__ import annotations

import pytest

from tests.kube.objects import pod
from trainer.kube.objects import Object
from trainer.kube.selection import EVERYTHING, Matcher, Selection

POD = pod("a", labels={"app": "x"}) | {"spec": {"hostNetwork": True, "priority": 7}, "status": {"phase": "Running"}}


@pytest.mark.parametrize(
    ("selection", "obj", "expected"),
    [
        pytest.param(EVERYTHING, POD, True, id="everything"),
        pytest.param(Selection(namespace="ns"), POD, True, id="namespace"),
        pytest.param(Selection(namespace="other"), POD, False, id="other-namespace"),
        pytest.param(Selection(label_selector="app=x"), POD, True, id="labels"),
        pytest.param(Selection(label_selector="app!=x"), POD, False, id="other-labels"),
        pytest.param(Selection(label_selector="app"), pod("b"), False, id="no-labels"),
        pytest.param(Selection(field_selector="metadata.name=a"), POD, True, id="name"),
        pytest.param(Selection(field_selector="status.phase!=Running"), POD, False, id="text"),
        pytest.param(Selection(field_selector="spec.hostNetwork=true"), POD, True, id="boolean"),
        pytest.param(Selection(field_selector="spec.priority=7"), POD, True, id="number"),
        pytest.param(Selection(field_selector="spec.nodeName="), POD, True, id="absent-is-empty"),
        pytest.param(Selection(field_selector="status.phase.x=y"), POD, False, id="deeper-than-the-object"),
    ],
)
def test_objects_belong_as_the_server_says(selection: Selection, obj: Object, expected: bool) -> None:
    """Namespace, labels and fields must all agree; fields compare as text."""
    assert Matcher(selection).matches(obj) is expected


@pytest.mark.parametrize(
    ("selection", "text"),
    [
        pytest.param(EVERYTHING, "", id="everything"),
        pytest.param(
            Selection("ns", "app=x", "metadata.name=a", metadata_only=True),
            "namespace=ns labels=app=x fields=metadata.name=a metadata-only=true",
            id="all-parts",
        ),
    ],
)
def test_selections_have_a_text(selection: Selection, text: str) -> None:
    """Each part that is set shows, so that two selections never share their series."""
    assert str(selection) == text
