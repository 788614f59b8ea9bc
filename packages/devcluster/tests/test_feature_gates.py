from __future__ import annotations

import pytest

from trainer_devcluster.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", DEFAULT_FEATURE_GATES, id="nothing"),
        pytest.param("ElasticJobSet=true", FeatureGates(elastic_job_set=True), id="on"),
    ],
)
def test_notation_is_that_of_kubernetes(text: str, expected: FeatureGates) -> None:
    """Gates that are not named keep their default."""
    assert FeatureGates.parse(text) == expected


def test_defaults_are_those_of_the_projects() -> None:
    """JobSet ships its features off, and Kubernetes its streaming lists on."""
    assert FeatureGates(elastic_job_set=False, watch_list=True) == DEFAULT_FEATURE_GATES


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("Elastic=true", "unrecognized feature gate 'Elastic', known are: ElasticJobSet", id="unknown"),
        pytest.param("ElasticJobSet", "write ElasticJobSet=true or ElasticJobSet=false", id="no value"),
        pytest.param("ElasticJobSet=yes", "'ElasticJobSet=yes': write ElasticJobSet=true", id="another value"),
    ],
)
def test_typing_errors_are_explained(text: str, complaint: str) -> None:
    """The message names what there is."""
    with pytest.raises(ValueError, match=complaint):
        FeatureGates.parse(text)
