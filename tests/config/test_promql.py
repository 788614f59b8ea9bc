"""What an expression asks for is read as Prometheus reads it."""

from __future__ import annotations

import pytest

from tests.config.promql import Question, question
from tests.config.series import problems


@pytest.mark.parametrize(
    ("expression", "metrics", "grouping"),
    [
        pytest.param("up", {"up": set()}, set(), id="name"),
        pytest.param('up{job="a by (b)", pod=~"c{1}"} == 0', {"up": {"job", "pod"}}, set(), id="matchers"),
        pytest.param(
            "histogram_quantile(0.99, sum by (le, kind) (rate(a_bucket[5m])))",
            {"a_bucket": set()},
            {"le", "kind"},
            id="by",
        ),
        pytest.param(
            'a{x="1"} / ignoring (code) group_left sum without (pod) (b:c:d) unless on (n) e offset 5m > 1e3',
            {"a": {"x"}, "b:c:d": set(), "e": set()},
            {"code", "pod", "n"},
            id="join",
        ),
        pytest.param(
            "max(time() - process_start_time_seconds) or vector(0)",
            {"process_start_time_seconds": set()},
            set(),
            id="functions",
        ),
    ],
)
def test_question(expression: str, metrics: dict[str, set[str]], grouping: set[str]) -> None:
    """Names of metrics, labels of their selectors, and labels of groups; neither functions nor texts."""
    expected = {name: frozenset(labels) for name, labels in metrics.items()}
    assert question(expression) == Question(expected, frozenset(grouping))


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        pytest.param("trainer_trainjob", "no metric trainer_trainjob", id="metric"),
        pytest.param('trainer_trainjobs{stat="Running"}', "trainer_trainjobs has no label stat", id="matcher"),
        pytest.param("sum by (frame) (trainer_trainjobs)", "nothing has label frame", id="group"),
        pytest.param("sum by (le) (trainer_admission_seconds_sum)", "nothing has label le", id="bucket"),
    ],
)
def test_what_does_not_exist(expression: str, problem: str) -> None:
    """A name that nothing has is noticed."""
    assert problems(expression) == [problem]
