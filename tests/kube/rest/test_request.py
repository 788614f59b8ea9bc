"""The target of a request."""

from __future__ import annotations

import pytest

from trainer.kube.rest.request import Request


@pytest.mark.parametrize(
    ("path", "params", "target"),
    [
        pytest.param("/api/v1/pods", {}, "/api/v1/pods", id="path"),
        pytest.param("/a b/ü", {}, "/a%20b/%C3%BC", id="escaped"),
        pytest.param("/a", {"limit": 5, "watch": True, "name": ""}, "/a?limit=5&watch=true", id="parameters"),
        pytest.param("/a", {"continue": None}, "/a", id="absent"),
        pytest.param("/a", {"labelSelector": "a=b,c"}, "/a?labelSelector=a%3Db%2Cc", id="selector"),
        pytest.param("/a?x=1", {"y": 2}, "/a?x=1&y=2", id="query-in-the-path"),
    ],
)
def test_target(path: str, params: dict[str, str | int | bool | None], target: str) -> None:
    """Path and query are escaped; parameters that are None or empty are left out."""
    assert Request("GET", path, params).target == target
