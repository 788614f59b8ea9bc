"""Predicates, as a table of changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.kube.objects import pod
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.controller.predicates import (
    Predicate,
    all_of,
    annotation_changed,
    any_of,
    generation_changed,
    on,
    resource_version_changed,
)


def cached(**metadata: Any) -> CachedObject:
    return CachedObject.of(pod("p", **{"resourceVersion": "1", **metadata}))


PLAIN = cached()


@pytest.mark.parametrize(
    ("predicate", "old", "new", "expected"),
    [
        pytest.param(resource_version_changed, PLAIN, cached(resourceVersion="2"), True, id="version-changed"),
        pytest.param(resource_version_changed, PLAIN, PLAIN, False, id="version-same"),
        pytest.param(generation_changed, cached(generation=1), cached(generation=2), True, id="generation-changed"),
        pytest.param(
            generation_changed,
            cached(generation=1),
            cached(generation=1, resourceVersion="2"),
            False,
            id="generation-same",
        ),
        pytest.param(generation_changed, PLAIN, cached(resourceVersion="2"), True, id="kind-without-generations"),
        pytest.param(generation_changed, PLAIN, PLAIN, False, id="kind-without-generations-unchanged"),
        pytest.param(annotation_changed, PLAIN, cached(annotations={"a": "1"}), True, id="annotation-added"),
        pytest.param(annotation_changed, cached(annotations={"a": "1"}), PLAIN, True, id="annotation-removed"),
        pytest.param(
            annotation_changed, cached(annotations={"a": "1"}), cached(annotations={"a": "1"}), False, id="same"
        ),
    ],
)
def test_predicate(predicate: Predicate, old: CachedObject | None, new: CachedObject | None, expected: bool) -> None:
    """Each predicate tells the changes that it is named after from the others."""
    assert predicate(old, new) is expected


@pytest.mark.parametrize(
    "predicate",
    [
        pytest.param(predicate, id=predicate.__name__)
        for predicate in (resource_version_changed, generation_changed, annotation_changed)
    ],
)
def test_new_and_gone_objects_pass_comparisons(predicate: Predicate) -> None:
    """Where there is nothing to compare, the change matters."""
    assert predicate(None, PLAIN)
    assert predicate(PLAIN, None)


def always(*_: object) -> bool:
    return True


def never(*_: object) -> bool:
    return False


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        pytest.param(any_of(never, always), True, id="one"),
        pytest.param(any_of(never, never), False, id="none"),
        pytest.param(any_of(), False, id="any-of-none"),
        pytest.param(all_of(always, always), True, id="all"),
        pytest.param(all_of(always, never), False, id="not-all"),
    ],
)
def test_combination(predicate: Predicate, expected: bool) -> None:
    """Combinations are predicates again."""
    assert predicate(PLAIN, PLAIN) is expected


@pytest.mark.parametrize(
    ("functions", "expected"),
    [
        pytest.param({}, [True, True, True], id="nothing-given-everything-passes"),
        pytest.param({"added": never}, [False, True, True], id="added"),
        pytest.param({"updated": never}, [True, False, True], id="updated"),
        pytest.param({"deleted": never}, [True, True, False], id="deleted"),
        pytest.param({"added": always, "updated": always, "deleted": always}, [True, True, True], id="all-say-yes"),
    ],
)
def test_one_function_for_each_sort_of_change(functions: dict[str, Callable[..., bool]], expected: list[bool]) -> None:
    """A sort of change that has no function passes."""
    predicate = on(**functions)
    assert [predicate(None, PLAIN), predicate(PLAIN, PLAIN), predicate(PLAIN, None)] == expected
