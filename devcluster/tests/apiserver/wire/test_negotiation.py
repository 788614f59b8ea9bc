"""Content negotiation."""

from __future__ import annotations

import pytest

from trainer.kube.errors import ApiError
from trainer_devcluster.apiserver.wire.negotiation import AnswerFormat, Shape, answer_format, wants_aggregated_discovery

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        pytest.param("", AnswerFormat(), id="no header"),
        pytest.param("*/*", AnswerFormat(), id="anything"),
        pytest.param("application/json", AnswerFormat(), id="json"),
        pytest.param("application/vnd.kubernetes.protobuf,application/json", AnswerFormat(), id="protobuf or json"),
        pytest.param(f"{TABLE},application/json", AnswerFormat(Shape.TABLE), id="table"),
        pytest.param(
            "application/json;as=Table;v=v1beta1;g=meta.k8s.io", AnswerFormat(Shape.TABLE, "v1beta1"), id="old table"
        ),
        pytest.param(
            "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            AnswerFormat(Shape.METADATA),
            id="metadata",
        ),
        pytest.param("application/json;as=Chart;v=v1;g=meta.k8s.io,application/json", AnswerFormat(), id="fallback"),
        pytest.param(f"{TABLE};q=0.5,application/json", AnswerFormat(), id="quality decides"),
        pytest.param("application/json; charset=utf-8", AnswerFormat(), id="character set"),
    ],
)
def test_answer_format(accept: str, expected: AnswerFormat) -> None:
    """The most wanted alternative that can be written wins."""
    assert answer_format(accept) == expected


@pytest.mark.parametrize(
    "accept",
    [
        pytest.param("application/vnd.kubernetes.protobuf", id="protobuf alone"),
        pytest.param("text/html", id="html"),
        pytest.param("application/json;as=Table;v=v9;g=meta.k8s.io", id="unknown table version alone"),
    ],
)
def test_nothing_acceptable(accept: str) -> None:
    """Without an alternative that can be written the answer is 406."""
    with pytest.raises(ApiError) as caught:
        answer_format(accept)
    assert caught.value.code == 406


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        pytest.param(
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json", True, id="kubectl"
        ),
        pytest.param(
            "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json",
            False,
            id="old version",
        ),
        pytest.param("application/json", False, id="plain"),
        pytest.param("", False, id="no header"),
    ],
)
def test_aggregated_discovery(accept: str, expected: bool) -> None:
    """The aggregated document is sent to those who ask for its present version."""
    assert wants_aggregated_discovery(accept) is expected
