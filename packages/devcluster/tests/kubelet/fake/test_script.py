"""Annotations that say what a pod without processes does."""

from __future__ import annotations

import pytest

from trainer_devcluster.kubelet.fake.life import EXITS_WITH, RUNS_FOR, Script


@pytest.mark.parametrize(
    ("annotations", "complaint"),
    [
        pytest.param({RUNS_FOR: "-2s"}, "runs-for]: '-2s' is not a duration", id="negative"),
        pytest.param({EXITS_WITH: "256"}, "exits-with]: '256' is not an exit code", id="too-large"),
    ],
)
def test_nonsense(annotations: dict[str, str], complaint: str) -> None:
    """What makes no sense is reported with the annotation."""
    with pytest.raises(ValueError, match=r"^metadata\.annotations") as caught:
        Script.of({"metadata": {"annotations": annotations}, "spec": {}})
    assert complaint in str(caught.value)
