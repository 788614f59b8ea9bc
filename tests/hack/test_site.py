"""The documentation as a site: what belongs to it, and that it loads nothing from another host."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.site import ROOT, foreign, loads_from_elsewhere, sources, stage


@pytest.mark.parametrize(
    ("text", "loaded"),
    [
        pytest.param('<img src="docs/images/a.png"><script src="./a.js"></script>', [], id="own"),
        pytest.param('<a href="https://example.com/">there</a>', [], id="a-link-to-follow"),
        pytest.param('<link rel="canonical" href="https://example.com/">', [], id="an-address-nobody-loads"),
        pytest.param('<img src="https://example.com/a.png">', ["https://example.com/a.png"], id="image"),
        pytest.param('<script src="//cdn.example.com/a.js">', ["//cdn.example.com/a.js"], id="script"),
        pytest.param('<link rel="icon x" href="http://example.com/i">', ["http://example.com/i"], id="icon"),
        pytest.param('<pre class="mermaid">', ["//unpkg.com/mermaid"], id="what-the-theme-would-fetch"),
    ],
)
def test_what_a_page_loads(text: str, loaded: list[str]) -> None:
    """Images, scripts and styles of other hosts are found; links that people follow are none."""
    assert loads_from_elsewhere(text, ".html") == loaded


def test_what_a_site_loads(tmp_path: Path) -> None:
    """A font of another host is named with the file that wants it."""
    (tmp_path / "a.css").write_text('@import "b.css"; a {src: url("https://fonts.example.com/a.woff")}')
    (tmp_path / "a.html").write_text('<img src="a.png">')
    assert list(foreign(tmp_path)) == ["a.css loads https://fonts.example.com/a.woff"]


def test_what_is_linked_comes_along(tmp_path: Path) -> None:
    """Pages and files that a page leads to are part of the site, each in its place, and nothing outside the sources."""
    root = tmp_path / "repository"
    (root / "docs").mkdir(parents=True)
    (root / "README.md").write_text("[start](docs/a.md#there) and [out](../secret.md) and [web](https://example.com/)")
    (root / "docs" / "a.md").write_text("[plugin](../plugin/README.md)")
    (root / "plugin").mkdir()
    (root / "plugin" / "README.md").write_text("[code](plugin.toml), ![picture](nothing.png)")
    (root / "plugin" / "plugin.toml").touch()
    (root / "plugin" / "other.md").touch()
    (tmp_path / "secret.md").touch()

    stage(tmp_path / "staged", root)

    files = sorted(str(path.relative_to(tmp_path / "staged")) for path in (tmp_path / "staged").rglob("*.*"))
    assert files == ["README.md", "docs/a.md", "plugin/README.md", "plugin/plugin.toml"]


def test_every_page_is_in_the_navigation() -> None:
    """A page that only a search finds has no reader."""
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    listed = [line.rpartition(": ")[2] for line in navigation.splitlines() if line.endswith(".md")]
    assert sorted(listed) == sorted(str(path.relative_to(ROOT)) for path in sources() if path.suffix == ".md")
