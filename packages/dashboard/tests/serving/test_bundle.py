"""The files of the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from packages.dashboard.tests.conftest import UserClient, visiting
from trainer.kube.errors import ConfigurationError
from trainer_dashboard.serving.bundle import Bundle

FIRST_LOAD = 120_000
"""Bytes of gzip that the list and the pages of trainings need."""
WHOLE = 260_000
"""Bytes of gzip of all scripts, styles and icons."""


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


@pytest.mark.parametrize(
    ("path", "is_kept"),
    [pytest.param("/assets/dashboard.js", True, id="script"), pytest.param("/jobs/default/demo", False, id="page")],
)
async def test_cache(client: UserClient, path: str, is_kept: bool) -> None:
    """A browser keeps scripts and styles, and asks whether they have changed; it does not keep the page."""
    async with visiting(client) as visitor:
        async with visitor.ask(path, token="") as answer:
            tag = answer.headers.get("ETag", "")
            assert answer.headers["Cache-Control"] == ("no-cache" if is_kept else "no-store")
            assert answer.headers["Content-Encoding"] == "gzip"
        visitor.session.headers["If-None-Match"] = tag
        async with visitor.ask(path, token="") as answer:
            assert answer.status == (304 if is_kept else 200)
            assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


async def test_not_compressed(client: UserClient) -> None:
    """Who takes no gzip gets the file as it is."""
    async with visiting(client) as visitor:
        visitor.session.headers["Accept-Encoding"] = "identity"
        async with visitor.ask("/assets/index.css", token="") as answer:
            assert "Content-Encoding" not in answer.headers
            assert await answer.read() == b"a{}"


def test_built() -> None:
    """The package has the page, without anything inline or from elsewhere."""
    files = Bundle.read().files
    page = files["index.html"].content.decode()
    assert "<style" not in page
    assert "<script>" not in page
    assert "http" not in page
    assert {"assets/dashboard.js", "assets/index.css", "licenses.txt"} <= set(files)


def test_budget() -> None:
    """What the first page loads, and all that any page loads, is small enough for a slow line."""
    files = Bundle.read().files
    page = files["index.html"].content.decode()
    assets = {path: len(file.compressed) for path, file in files.items() if path.startswith("assets/")}
    first = sum(size for path, size in assets.items() if path in page)
    total = sum(assets.values())
    assert first < FIRST_LOAD, assets
    assert total < WHOLE, assets


def test_not_built(tmp_path: Path) -> None:
    """A package without the page says so."""
    with pytest.raises(ConfigurationError, match="the page is missing"):
        Bundle.read(tmp_path)
