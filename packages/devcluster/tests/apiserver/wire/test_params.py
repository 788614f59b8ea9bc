"""Request parameters."""

from __future__ import annotations

import pytest

from trainer.kube.client import Propagation
from trainer.kube.errors import ApiError
from trainer_devcluster.apiserver.wire.params import (
    DeleteParameters,
    FieldValidation,
    ListParameters,
    ResourceVersionMatch,
    WriteParameters,
    delete_parameters,
    list_parameters,
    write_parameters,
)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param({}, ListParameters(), id="nothing"),
        pytest.param(
            {"resourceVersion": "7", "resourceVersionMatch": "Exact"},
            ListParameters(resource_version=7, match=ResourceVersionMatch.EXACT),
            id="exact version",
        ),
        pytest.param(
            {"watch": "True", "resourceVersion": "0", "timeoutSeconds": "5", "allowWatchBookmarks": "true"},
            ListParameters(resource_version=0, watch=True, timeout_seconds=5, allow_bookmarks=True),
            id="watch",
        ),
    ],
)
def test_list_parameters(query: dict[str, str], expected: ListParameters) -> None:
    """Query strings become typed parameters."""
    assert list_parameters(query) == expected


@pytest.mark.parametrize(
    ("query", "code"),
    [
        pytest.param({"timeoutSeconds": "soon"}, 400, id="no number"),
        pytest.param({"limit": ""}, 400, id="empty number"),
        pytest.param({"resourceVersion": "9" * 5000}, 400, id="version of more than 64 bits"),
        pytest.param({"resourceVersion": "abc", "watch": "1"}, 500, id="watch from an unreadable version"),
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


def test_streaming_lists_can_be_off() -> None:
    """A watch that asks for the objects that there are is refused as without the feature; other watches are not."""
    initial = {"watch": "1", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    assert list_parameters(initial).send_initial_events
    assert list_parameters({"watch": "1"}, streams_lists=False).watch
    with pytest.raises(ApiError, match="forbidden for watch unless the WatchList feature gate") as caught:
        list_parameters(initial, streams_lists=False)
    assert caught.value.code == 422


@pytest.mark.parametrize(
    ("query", "agent", "expected"),
    [
        pytest.param({}, "kubectl/v1.37 (linux)", WriteParameters("kubectl"), id="manager from the user agent"),
        pytest.param({}, "", WriteParameters("unknown"), id="nobody"),
        pytest.param(
            {"fieldManager": "me", "dryRun": "All", "fieldValidation": "Strict", "force": "true"},
            "kubectl",
            WriteParameters("me", True, True, FieldValidation.STRICT, True),
            id="everything",
        ),
    ],
)
def test_write_parameters(query: dict[str, str], agent: str, expected: WriteParameters) -> None:
    """The field manager is named or derived; the rest has defaults."""
    assert write_parameters(query, agent) == expected


@pytest.mark.parametrize(
    ("query", "body", "expected"),
    [
        pytest.param({}, None, DeleteParameters(), id="nothing"),
        pytest.param(
            {"propagationPolicy": "Foreground", "gracePeriodSeconds": "0", "dryRun": "All"},
            None,
            DeleteParameters(0, Propagation.FOREGROUND, dry_run=True),
            id="query",
        ),
        pytest.param({"orphanDependents": "true"}, None, DeleteParameters(None, Propagation.ORPHAN), id="old orphan"),
    ],
)
def test_delete_parameters(query: dict[str, str], body: dict[str, object] | None, expected: DeleteParameters) -> None:
    """Options come from the body, or without one from the query."""
    assert delete_parameters(query, body) == expected


@pytest.mark.parametrize(
    ("query", "body"),
    [
        pytest.param({"propagationPolicy": "Wrong"}, None, id="unknown policy"),
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
