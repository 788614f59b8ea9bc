"""Names of objects, labels and finalizers."""

from __future__ import annotations

import re

import pytest

from trainer.kube.names import label_value_problems, qualified_name_problems
from trainer_devcluster.apiserver.objects.names import NameRule, generate_name, name_problems


@pytest.mark.parametrize(
    ("name", "rule", "valid"),
    [
        pytest.param("a.b-c", NameRule.SUBDOMAIN, True, id="subdomain"),
        pytest.param("Bad_Name", NameRule.SUBDOMAIN, False, id="upper case and underscore"),
        pytest.param("a..b", NameRule.SUBDOMAIN, False, id="empty part"),
        pytest.param("a" * 254, NameRule.SUBDOMAIN, False, id="long subdomain"),
        pytest.param("a.b", NameRule.LABEL, False, id="dot in a label"),
        pytest.param("1a", NameRule.LABEL, True, id="label from a digit"),
        pytest.param("a" * 64, NameRule.LABEL, False, id="long label"),
        pytest.param("1a", NameRule.SERVICE_LABEL, False, id="service from a digit"),
        pytest.param("a-\n", NameRule.LABEL, False, id="line end"),
        pytest.param("system:node", NameRule.PATH_SEGMENT, True, id="role"),
        pytest.param("..", NameRule.PATH_SEGMENT, False, id="parent directory"),
        pytest.param("a/b", NameRule.PATH_SEGMENT, False, id="slash"),
    ],
)
def test_object_names(name: str, rule: NameRule, valid: bool) -> None:
    """Each rule accepts what fits where such names are used."""
    assert (name_problems(name, rule) == []) is valid


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        pytest.param("app", True, id="plain"),
        pytest.param("example.com/My_Name", True, id="with prefix"),
        pytest.param("bad key!", False, id="space"),
        pytest.param("/name", False, id="empty prefix"),
        pytest.param("example.com/", False, id="empty name"),
        pytest.param("a/b/c", False, id="two slashes"),
        pytest.param("UPPER.com/x", False, id="upper case prefix"),
        pytest.param("x" * 64, False, id="long"),
    ],
)
def test_qualified_names(name: str, valid: bool) -> None:
    """Label keys and finalizers have an optional DNS prefix."""
    assert (qualified_name_problems(name) == []) is valid


@pytest.mark.parametrize(
    ("value", "valid"), [("", True), ("a.B_c-1", True), ("-a", False), ("a b", False), ("x" * 64, False)]
)
def test_label_values(value: str, valid: bool) -> None:
    """Values of labels may be empty."""
    assert (label_value_problems(value) == []) is valid


def test_generated_names_fit_a_label() -> None:
    """A generated name keeps what fits of its prefix and ends in five characters that are hard to misread."""
    name = generate_name("x" * 80)
    assert len(name) == 63
    assert re.fullmatch(r"x{58}[bcdfghjklmnpqrstvwxz2456789]{5}", name)
    assert generate_name("a-") != generate_name("a-")
