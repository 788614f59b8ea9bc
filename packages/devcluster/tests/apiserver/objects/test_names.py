"""Names of objects, labels and finalizers."""

from __future__ import annotations

import pytest

from trainer_devcluster.apiserver.objects.names import NameRule, name_problems


@pytest.mark.parametrize(
    ("name", "rule", "valid"),
    [
        pytest.param("a.b", NameRule.LABEL, False, id="dot in a label"),
        pytest.param("..", NameRule.PATH_SEGMENT, False, id="parent directory"),
    ],
)
def test_object_names(name: str, rule: NameRule, valid: bool) -> None:
    """Each rule accepts what fits where such names are used."""
    assert (name_problems(name, rule) == []) is valid
