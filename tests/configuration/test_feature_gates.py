"""Which features are on."""

from __future__ import annotations

import pytest

from trainer.configuration.feature_gates import (
    KNOWN_GATES,
    PROGRESS_HISTORY,
    TRAIN_JOB_PROGRESS,
    TRAIN_JOB_STATUS,
    FeatureGate,
    FeatureGates,
    Stage,
    described,
    parse_feature_gates,
)
from trainer.kube.errors import ConfigurationError

NEW = FeatureGate("New", Stage.ALPHA, default=False, description="", needs="Tried")
TRIED = FeatureGate("Tried", Stage.BETA, default=True, description="")
OLD = FeatureGate("Old", Stage.GA, default=True, description="", locked="it is there for good")
GATES = (NEW, OLD, TRIED)
KNOWN = (
    'supported values: "AllAlpha (Alpha, default false)", "AllBeta (Beta, default false)", '
    '"New (Alpha, default false)", "Old (GA, always true)", "Tried (Beta, default true)"'
)


@pytest.mark.parametrize(
    ("settings", "enabled"),
    [
        pytest.param("", ["Old", "Tried"], id="defaults"),
        pytest.param("AllAlpha=true", ["New", "Old", "Tried"], id="all-alpha"),
        pytest.param("AllAlpha=true,New=false", ["Old", "Tried"], id="all-alpha-but-one"),
        pytest.param("New=false,AllAlpha=true", ["Old", "Tried"], id="order-does-not-matter"),
        pytest.param("AllBeta=false", ["Old"], id="no-beta"),
        pytest.param("AllBeta=false,Tried=true", ["Old", "Tried"], id="no-beta-but-one"),
        pytest.param("Old=true", ["Old", "Tried"], id="locked-to-what-it-is"),
        pytest.param(" New = true , Tried=1,", ["New", "Old", "Tried"], id="spaces"),
        pytest.param("New=true,New=false", ["Old", "Tried"], id="the-last-counts"),
    ],
)
def test_enabled(settings: str, enabled: list[str]) -> None:
    """What is said of a gate counts, else what is said of its stage, else its default."""
    gates = FeatureGates(parse_feature_gates(settings), GATES)

    assert [name for name, on in gates.effective().items() if on] == enabled
    assert list(gates.errors("featureGates")) == []


@pytest.mark.parametrize(
    ("settings", "errors"),
    [
        pytest.param("Nwe=true", [f'featureGates: Unsupported value: "Nwe": {KNOWN}'], id="unknown"),
        pytest.param(
            "Old=false", ["featureGates[Old]: Forbidden: cannot be off: it is there for good"], id="there-for-good"
        ),
        pytest.param(
            "New=true,Tried=false",
            ["featureGates[New]: Invalid value: true: does nothing without Tried: switch that on, or this off"],
            id="needs-another",
        ),
        pytest.param(
            "AllAlpha=true,AllBeta=false",
            ["featureGates[New]: Invalid value: true: does nothing without Tried: switch that on, or this off"],
            id="stages-that-do-not-fit",
        ),
    ],
)
def test_errors(settings: str, errors: list[str]) -> None:
    """Wrong settings are told with what there is, or why."""
    gates = FeatureGates(parse_feature_gates(settings), GATES)

    assert [str(error) for error in (*gates.errors("featureGates"), *gates.conflicts("featureGates"))] == errors


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("New", '--feature-gates: Invalid value: "New": must be a list such as A=true,B=false', id="bare"),
        pytest.param(
            "=true", '--feature-gates: Invalid value: "=true": must be a list such as A=true,B=false', id="no-name"
        ),
        pytest.param(
            "New=yes", '--feature-gates[New]: Invalid value: "yes": must be true or false', id="no-truth-value"
        ),
    ],
)
def test_no_list(text: str, message: str) -> None:
    """What the command line says must be a list."""
    with pytest.raises(ConfigurationError) as caught:
        parse_feature_gates(text)

    assert str(caught.value) == message


def test_our_gates() -> None:
    """Progress is followed, its history is served to nobody, and pods send none."""
    gates = FeatureGates({})

    assert gates.enabled(TRAIN_JOB_PROGRESS)
    assert not gates.enabled(PROGRESS_HISTORY)
    assert not FeatureGates({"AllAlpha": True}).enabled(TRAIN_JOB_STATUS)
    assert [gate.name for gate in KNOWN_GATES] == sorted(gate.name for gate in KNOWN_GATES)
    assert {gate.needs for gate in KNOWN_GATES} <= {"", *gates.effective()}
    assert len(described()) == len(KNOWN_GATES) + 2
