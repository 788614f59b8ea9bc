"""Request parameters."""

from __future__ import annotations

import pytest

from trainer.kube.client import Propagation
from trainer.kube.errors import ApiError
from trainer_devcluster.apiserver.wire.params import (
    DeleteParameters,
    delete_parameters,
    list_parameters,
)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        pytest.param({"timeoutSeconds": "soon"}, 400, id="no number"),
        pytest.param({"resourceVersion": "9" * 5000}, 400, id="version of more than 64 bits"),
        pytest.param({"resourceVersionMatch": "Newest", "resourceVersion": "1"}, 422, id="unknown match"),
        pytest.param({"resourceVersionMatch": "Exact"}, 422, id="match without version"),
        pytest.param({"resourceVersionMatch": "Exact", "resourceVersion": "0"}, 422, id="exactly any version"),
        pytest.param(
            {"resourceVersionMatch": "Exact", "resourceVersion": "1", "continue": "t"}, 422, id="match with continue"
        ),
        pytest.param({"resourceVersion": "1", "continue": "t"}, 400, id="version with continue"),
        pytest.param({"sendInitialEvents": "true"}, 422, id="initial events of a list"),
        pytest.param({"sendInitialEvents": "true", "watch": "1"}, 422, id="initial events without match"),
        pytest.param(
            {"resourceVersionMatch": "NotOlderThan", "resourceVersion": "1", "watch": "1"},
            422,
            id="match of a watch without initial events",
        ),
    ],
)
def test_refused_list_parameters(query: dict[str, str], code: int) -> None:
    """What cannot be read, or makes no sense together, is refused."""
    with pytest.raises(ApiError) as caught:
        list_parameters(query)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("query", "body", "expected"),
    [
        pytest.param({}, None, DeleteParameters(), id="nothing"),
        pytest.param({"orphanDependents": "true"}, None, DeleteParameters(None, Propagation.ORPHAN), id="old orphan"),
    ],
)
def test_delete_parameters(query: dict[str, str], body: dict[str, object] | None, expected: DeleteParameters) -> None:
    """Options come from the body, or without one from the query."""
    assert delete_parameters(query, body) == expected


@pytest.mark.parametrize(
    ("query", "body"),
    [
        pytest.param({}, {"gracePeriodSeconds": -1}, id="negative grace"),
        pytest.param({}, {"dryRun": ["Some"]}, id="unknown dry run"),
        pytest.param({}, {"orphanDependents": True, "propagationPolicy": "Orphan"}, id="old and new policy"),
    ],
)
def test_refused_delete_parameters(query: dict[str, str], body: dict[str, object] | None) -> None:
    """Impossible options are answered with 422."""
    with pytest.raises(ApiError) as caught:
        delete_parameters(query, body)
    assert caught.value.code == 422
