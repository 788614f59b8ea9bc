"""Annotations that say what a pod without processes does."""

from __future__ import annotations

import pytest

from trainer_devcluster.kubelet.fake.life import EXITS_WITH, RUNS_FOR, Script


@pytest.mark.parametrize(
    ("annotations", "policy", "script"),
    [
        pytest.param({}, "Never", Script(0, 0), id="at-once"),
        pytest.param({}, "OnFailure", Script(0, 0), id="on-failure"),
        pytest.param({}, "Always", Script(None, 0), id="a-server"),
        pytest.param({RUNS_FOR: "2s"}, "Always", Script(2, 0), id="seconds"),
        pytest.param({RUNS_FOR: "1h30m0.5s"}, "Never", Script(5400.5, 0), id="several-units"),
        pytest.param({RUNS_FOR: "300ms", EXITS_WITH: "7"}, "Never", Script(0.3, 7), id="exit-code"),
    ],
)
def test_script(annotations: dict[str, str], policy: str, script: Script) -> None:
    """Containers end at once with 0 unless annotated otherwise; those that would be started again run on."""
    assert Script.of({"metadata": {"annotations": annotations}, "spec": {"restartPolicy": policy}}) == script


@pytest.mark.parametrize(
    ("annotations", "complaint"),
    [
        pytest.param({RUNS_FOR: "2"}, "runs-for]: '2' is not a duration", id="no-unit"),
        pytest.param({RUNS_FOR: ""}, "runs-for]: '' is not a duration", id="empty"),
        pytest.param({RUNS_FOR: "-2s"}, "runs-for]: '-2s' is not a duration", id="negative"),
        pytest.param({EXITS_WITH: "256"}, "exits-with]: '256' is not an exit code", id="too-large"),
        pytest.param({EXITS_WITH: "x"}, "exits-with]: 'x' is not an exit code", id="no-number"),
    ],
)
def test_nonsense(annotations: dict[str, str], complaint: str) -> None:
    """What makes no sense is reported with the annotation."""
    with pytest.raises(ValueError, match=r"^metadata\.annotations") as caught:
        Script.of({"metadata": {"annotations": annotations}, "spec": {}})
    assert complaint in str(caught.value)
