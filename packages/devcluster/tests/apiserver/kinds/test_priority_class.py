"""PriorityClasses and what they do to pods."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from packages.devcluster.tests.apiserver.kinds.context import created, make_context, updated
from trainer.kube.errors import ApiError
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.definitions.strategy import WriteContext
from trainer_devcluster.apiserver.kinds.priority_class import PriorityClassStrategy, admit_priority

STRATEGY = PriorityClassStrategy()


def make_class(name: str, value: int = 0, **fields: Any) -> Object:
    return {"kind": "PriorityClass", "metadata": {"name": name}, "value": value, **fields}


def make_stored(*classes: Object) -> WriteContext:
    return replace(make_context(None, *classes), listed=lambda _: classes)


@pytest.mark.parametrize(
    ("pod", "classes", "expected"),
    [
        pytest.param(
            {},
            [make_class("high", 10), make_class("usual", 5, globalDefault=True)],
            {"priorityClassName": "usual", "priority": 5, "preemptionPolicy": "PreemptLowerPriority"},
            id="default class",
        ),
        pytest.param(
            {"priorityClassName": "system-node-critical"},
            [],
            {
                "priorityClassName": "system-node-critical",
                "priority": 2000001000,
                "preemptionPolicy": "PreemptLowerPriority",
            },
            id="class of the system",
        ),
    ],
)
def test_pods_get_the_priority_of_their_class(pod: Object, classes: list[Object], expected: Object) -> None:
    """Name, number and policy are written into the pod, once."""
    obj = {"metadata": {"name": "p"}, "spec": pod}
    admit_priority(obj, make_stored(*classes))
    admit_priority(obj, make_stored(*classes))
    assert obj["spec"] == expected


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        pytest.param(
            {"priorityClassName": "x"},
            'pods "p" is forbidden: no PriorityClass with name x was found',
            id="no such class",
        ),
        pytest.param(
            {"preemptionPolicy": "Never"},
            'pods "p" is forbidden: the string value of PreemptionPolicy (Never) must not be provided in pod spec; '
            "priority admission controller computed PreemptLowerPriority from the given PriorityClass name",
            id="another policy",
        ),
    ],
)
def test_pods_do_not_choose_a_number(pod: Object, message: str) -> None:
    """What does not come from a class is refused with 403."""
    with pytest.raises(ApiError) as caught:
        admit_priority({"metadata": {"name": "p"}, "spec": pod}, make_stored())
    assert (caught.value.code, caught.value.message) == (403, message)


def test_the_value_stays() -> None:
    """Pods have copied it."""
    old, _ = created(STRATEGY, make_class("a", 1))
    new = {**old, "value": 2}
    assert [str(cause) for cause in updated(STRATEGY, new, old)] == [
        "value: Forbidden: may not be changed in an update.",
    ]


def test_there_is_one_default() -> None:
    """A second one is refused with 403, which names the first."""
    obj = make_class("b", 1, globalDefault=True)
    with pytest.raises(ApiError) as caught:
        STRATEGY.prepare_for_create(obj, make_stored(make_class("a", 1, globalDefault=True)))
    assert caught.value.message == (
        'priorityclasses.scheduling.k8s.io "b" is forbidden: PriorityClass a is already marked as default. Only one '
        "default can exist"
    )
