"""The files of the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from packages.dashboard.tests.conftest import UserClient, visiting
from trainer.kube.errors import ConfigurationError
from trainer_dashboard.bundle import Bundle


@pytest.mark.parametrize(
    ("path", "status", "content_type"),
    [
        pytest.param("/", 200, "text/html", id="page"),
        pytest.param("/jobs/default/demo/logs", 200, "text/html", id="view"),
        pytest.param("/jobs/default/resnet.js", 200, "text/html", id="view-of-a-name-with-a-dot"),
        pytest.param("/assets/dashboard.js", 200, "text/javascript", id="script"),
        pytest.param("/assets/index.css", 200, "text/css", id="style"),
        pytest.param("/assets/old.js", 404, "application/json", id="other-script"),
        pytest.param("/%2e%2e/%2e%2e/etc/passwd", 200, "text/html", id="outside"),
    ],
)
async def test_paths(client: UserClient, path: str, status: int, content_type: str) -> None:
    """Views are the page, whatever they are called, and files are those of the bundle alone."""
    async with visiting(client) as visitor, visitor.ask(path, token="") as answer:
        assert (answer.status, answer.content_type) == (status, content_type)


def test_built() -> None:
    """The package has the page, without anything inline or from elsewhere."""
    files = Bundle.read().files
    page = files["index.html"].decode()
    assert "<style" not in page
    assert "<script>" not in page
    assert "http" not in page
    assert {"assets/dashboard.js", "assets/index.css", "licenses.txt"} <= set(files)


def test_not_built(tmp_path: Path) -> None:
    """A package without the page says so."""
    with pytest.raises(ConfigurationError, match="the page is missing"):
        Bundle.read(tmp_path)
