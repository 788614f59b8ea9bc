"""What gangs of Kubernetes' Workload API become, compared with the YAML in `gangs/expected`.

After a change that is meant: `python -m tests.golden` writes the files anew, and `git diff tests/golden` is the review.
"""

from __future__ import annotations

import pytest

from tests.config.schemas import check
from tests.golden.gang_cases import EXPECTED, cases, expected, gang_objects, text_of

VERSION_OF = {"scheduling.k8s.io/v1beta1": "1.37", "scheduling.k8s.io/v1alpha2": "1.36"}
"""The Kubernetes that serves a version of the Workload API."""


@pytest.mark.parametrize("case", cases())
def test_case(case: str) -> None:
    """Each gang becomes what it became before."""
    assert text_of(case) == expected(case).read_text(encoding="utf-8")


@pytest.mark.parametrize("case", cases())
def test_kubernetes_takes_it(case: str) -> None:
    """The objects fit the schemas of the Kubernetes that serves their version."""
    objects = list(gang_objects(case))
    assert {obj["apiVersion"] for obj in objects} == VERSION_OF.keys()
    for obj in objects:
        check(obj, VERSION_OF[obj["apiVersion"]])


def test_nothing_is_left_over() -> None:
    """Every expected file belongs to a case."""
    assert sorted(file.stem for file in EXPECTED.glob("*.yaml")) == cases()
