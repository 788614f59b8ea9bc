"""Which features are on."""

from __future__ import annotations

import pytest

from trainer.configuration.feature_gates import FeatureGates, parse_feature_gates
from trainer.kube.errors import ConfigurationError

KNOWN = (
    'supported values: "AllAlpha (Alpha, default false)", "AllBeta (Beta, default false)", '
    '"TrainJobProgress (Beta, default true)", "TrainJobStatus (Alpha, default false)"'
)


@pytest.mark.parametrize(
    ("settings", "enabled"),
    [
        pytest.param("", ["TrainJobProgress"], id="defaults"),
        pytest.param("AllAlpha=true", ["TrainJobProgress", "TrainJobStatus"], id="all-alpha"),
        pytest.param("AllAlpha=true,TrainJobStatus=false", ["TrainJobProgress"], id="all-but-one"),
        pytest.param("TrainJobStatus=false,AllAlpha=true", ["TrainJobProgress"], id="any-order"),
        pytest.param("AllBeta=false", [], id="no-beta"),
        pytest.param("AllBeta=false,TrainJobProgress=true", ["TrainJobProgress"], id="no-beta-but-one"),
        pytest.param(" TrainJobStatus = true , AllBeta=0,", ["TrainJobStatus"], id="spaces"),
        pytest.param("TrainJobStatus=true,TrainJobStatus=false", ["TrainJobProgress"], id="the-last-counts"),
    ],
)
def test_enabled(settings: str, enabled: list[str]) -> None:
    """The setting of a gate counts, else that of its stage, else its default."""
    gates = FeatureGates(parse_feature_gates(settings))

    assert [name for name, on in gates.effective().items() if on] == enabled
    assert list(gates.errors("featureGates")) == []


def test_unknown() -> None:
    """An unknown gate is refused with the known ones."""
    gates = FeatureGates(parse_feature_gates("Nwe=true"))

    assert [str(error) for error in gates.errors("featureGates")] == [
        f'featureGates: Unsupported value: "Nwe": {KNOWN}'
    ]


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
