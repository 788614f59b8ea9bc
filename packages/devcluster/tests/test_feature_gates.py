from __future__ import annotations

import pytest

from trainer_devcluster.feature_gates import FeatureGates


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("ElasticJobSet", "write ElasticJobSet=true or ElasticJobSet=false", id="no value"),
        pytest.param("GangScheduling=true", "needs GenericWorkload: write GenericWorkload=true", id="needs another"),
        pytest.param("ElasticJobSet=yes", "'ElasticJobSet=yes': write ElasticJobSet=true", id="another value"),
    ],
)
def test_typing_errors_are_explained(text: str, complaint: str) -> None:
    """The message names what there is."""
    with pytest.raises(ValueError, match=complaint):
        FeatureGates.parse(text)
