"""Label and field selectors."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.kube.selectors import FieldSelector, LabelSelector, Operator, Requirement

LABELS = {"app": "web", "tier": "front", "n": "5", "empty": "", "example.com/role": "a"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", True, id="empty-selects-everything"),
        pytest.param("app=web", True, id="equals"),
        pytest.param("app==web", True, id="double-equals"),
        pytest.param(" app = web , tier = front ", True, id="spaces"),
        pytest.param("app=db", False, id="equals-other"),
        pytest.param("absent=x", False, id="equals-absent"),
        pytest.param("app!=db", True, id="not-equals"),
        pytest.param("absent!=x", True, id="not-equals-absent"),
        pytest.param("app!=web", False, id="not-equals-same"),
        pytest.param("app in (db,web)", True, id="in"),
        pytest.param("app in (db, cache)", False, id="in-others"),
        pytest.param("app notin (db)", True, id="notin"),
        pytest.param("absent notin (db)", True, id="notin-absent"),
        pytest.param("app notin (web,db)", False, id="notin-member"),
        pytest.param("app", True, id="exists"),
        pytest.param("absent", False, id="exists-absent"),
        pytest.param("!absent", True, id="not-exists"),
        pytest.param("! app", False, id="not-exists-present"),
        pytest.param("n>4", True, id="greater"),
        pytest.param("n>5", False, id="greater-equal"),
        pytest.param("n<6", True, id="less"),
        pytest.param("app>4", False, id="greater-not-a-number"),
        pytest.param("absent<6", False, id="less-absent"),
        pytest.param("empty=", True, id="empty-value"),
        pytest.param("empty=,app=web", True, id="empty-value-first"),
        pytest.param("app=", False, id="empty-value-other"),
        pytest.param("empty in ()", True, id="in-nothing-is-the-empty-value"),
        pytest.param("example.com/role=a", True, id="prefixed-key"),
        pytest.param("app=web,tier in (front,back),!absent", True, id="conjunction"),
        pytest.param("app=web,tier=back", False, id="conjunction-fails"),
        pytest.param("in=x", False, id="operator-word-as-key"),
    ],
)
def test_label_selector_matches(text: str, expected: bool) -> None:
    """A parsed selector selects what the API server would select."""
    assert LabelSelector.parse(text).matches(LABELS) is expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("app=a=b", "'app=a=b' is none of KEY", id="two-operators"),
        pytest.param("app in db", "unable to parse requirement: 'app in db' is none of KEY", id="no-parenthesis"),
        pytest.param("app in (a", "unable to parse requirement: 'app in (a' is none of KEY", id="open-parenthesis"),
        pytest.param("app,", "'app,' is none of KEY", id="trailing-comma"),
        pytest.param(",app", "',app' is none of KEY", id="leading-comma"),
        pytest.param(
            "app web",
            "unable to parse requirement: found 'web', expected: in, notin, =, ==, !=, gt, lt",
            id="no-operator",
        ),
        pytest.param("app in (a b)", 'values[0][app]: Invalid value: "a b"', id="no-comma"),
        pytest.param("app=a,tier in b", "'tier in b' is none of KEY", id="second-requirement"),
        pytest.param("!=a", "'!=a' is none of KEY", id="no-key-at-all"),
        pytest.param("!,a", "unable to parse requirement: '!,a' is none of KEY", id="nothing-not-to-exist"),
        pytest.param("=web", "'=web' is none of KEY", id="no-key"),
        pytest.param("n>five", "for 'Gt', 'Lt' operators, the value must be an integer", id="not-a-number"),
        pytest.param("app=a_", 'values[0][app]: Invalid value: "a_": a valid label must', id="bad-value"),
        pytest.param("-app=a", '<nil>: Invalid value: "-app": name part must consist', id="bad-key"),
        pytest.param(f"app={'a' * 64}", "must be no more than 63 bytes", id="long-value"),
    ],
)
def test_label_selector_refuses(text: str, message: str) -> None:
    """A malformed selector is refused with a message that shows the place."""
    with pytest.raises(ValueError, match=re.escape(message)):
        LabelSelector.parse(text)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param({}, True, id="empty"),
        pytest.param({"matchLabels": {"app": "web"}}, True, id="labels"),
        pytest.param({"matchLabels": {"app": "web", "tier": "back"}}, False, id="labels-differ"),
        pytest.param({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}, True, id="in"),
        pytest.param({"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["a"]}]}, True, id="notin"),
        pytest.param({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True, id="exists"),
        pytest.param({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False, id="not-exists"),
        pytest.param(
            {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "n", "operator": "DoesNotExist"}]},
            False,
            id="both",
        ),
    ],
)
def test_label_selector_from_object(selector: dict[str, Any], expected: bool) -> None:
    """metav1.LabelSelector selects by labels and expressions together."""
    assert LabelSelector.from_object(selector).matches(LABELS) is expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param({"key": "a", "operator": "Is", "values": ["b"]}, "'Is' of key 'a' is not one of", id="operator"),
        pytest.param({"key": "a", "operator": "In"}, "needs values", id="no-values"),
        pytest.param({"key": "a", "operator": "Exists", "values": ["b"]}, "takes no values", id="values"),
    ],
)
def test_label_selector_from_object_refuses(expression: dict[str, Any], message: str) -> None:
    """A wrong expression is refused with its key and operator."""
    with pytest.raises(ValueError, match=message):
        LabelSelector.from_object({"matchExpressions": [expression]})


names = st.from_regex(r"[a-z]([a-z0-9.-]{0,8}[a-z0-9])?", fullmatch=True)
requirements = st.one_of(
    st.builds(
        lambda key, operator, values: Requirement(key, operator, tuple(sorted(values))),
        names,
        st.sampled_from([Operator.IN, Operator.NOT_IN]),
        st.sets(names, min_size=1, max_size=3),
    ),
    st.builds(Requirement, names, st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST])),
    st.builds(
        lambda key, operator, number: Requirement(key, operator, (str(number),)),
        names,
        st.sampled_from([Operator.GREATER_THAN, Operator.LESS_THAN]),
        st.integers(),
    ),
)


@given(st.lists(requirements, max_size=4))
def test_label_selector_text_form_reads_back(items: list[Requirement]) -> None:
    """Printing a selector and parsing it again gives the same selector."""
    selector = LabelSelector(tuple(items))
    assert LabelSelector.parse(str(selector)) == selector


@pytest.mark.parametrize(
    ("text", "requirements"),
    [
        pytest.param("", (), id="empty"),
        pytest.param("metadata.name=a", (("metadata.name", "=", "a"),), id="equals"),
        pytest.param("status.phase!=Running", (("status.phase", "!=", "Running"),), id="not-equals"),
        pytest.param("a==b, c=d", (("a", "=", "b"), ("c", "=", "d")), id="two"),
        pytest.param("a=", (("a", "=", ""),), id="empty-value"),
        pytest.param(r"a=b\,c\=d\\", (("a", "=", r"b,c=d\ ".strip()),), id="escapes"),
    ],
)
def test_field_selector_parse(text: str, requirements: tuple[tuple[str, str, str], ...]) -> None:
    """Terms become requirements with unescaped values."""
    selector = FieldSelector.parse(text)
    assert selector.requirements == requirements
    assert FieldSelector.parse(str(selector)) == selector


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("name", "invalid selector: 'name'; can't understand 'name'", id="no-operator"),
        pytest.param("a=b,=c", "invalid selector: 'a=b,=c'; can't understand '=c'", id="no-path"),
        pytest.param("a>b", "invalid selector: 'a>b'; can't understand 'a>b'", id="no-such-operator"),
        pytest.param("a=b=c", "invalid field selector: unescaped character in value: 61", id="unescaped"),
        pytest.param(r"a=b\c", r"invalid field selector: invalid escape sequence: \c", id="escape"),
    ],
)
def test_field_selector_refuses(text: str, message: str) -> None:
    """A term without a path, an operator or a plain value is refused."""
    with pytest.raises(ValueError, match=re.escape(message)):
        FieldSelector.parse(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", True, id="empty"),
        pytest.param("status.phase=Running", True, id="equals"),
        pytest.param("status.phase!=Running", False, id="not-equals"),
        pytest.param("spec.nodeName=", True, id="absent-is-empty"),
        pytest.param("status.phase=Running,metadata.name=b", False, id="conjunction"),
    ],
)
def test_field_selector_matches(text: str, expected: bool) -> None:
    """Fields are compared as strings and absent ones are empty."""
    fields = {"metadata.name": "a", "status.phase": "Running"}
    assert FieldSelector.parse(text).matches(fields) is expected
