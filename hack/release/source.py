"""The files of a commit, with the addresses of the release."""

from __future__ import annotations

import io
import posixpath
import re
import subprocess
import tarfile
from pathlib import Path

from hack.release.settings import ROOT, Release

_LINK = re.compile(r"(!?\[[^\]]*\])\(([^()\s#]+)([^()\s]*)\)")
_URLS = """
[project.urls]
Homepage = "{repository}"
Documentation = "{repository}/blob/{tag}/docs/README.md"
Changelog = "{repository}/blob/{tag}/CHANGELOG.md"
Issues = "{repository}/issues"
Source = "{repository}/tree/{tag}"
"""
RUNBOOKS = "https://example.com/trainer/docs/troubleshooting.md"
"""The page that alerts link to, in the source."""
_TROUBLESHOOTING = "docs/troubleshooting.md"
_WITH_RUNBOOKS = ("config/prometheus/runbooks.yaml", "charts/kubeflow-trainer/values.yaml")


def stage(release: Release, target: Path, root: Path = ROOT) -> tuple[Path, ...]:
    """Write the tree of the commit to an empty folder, and give the folders of its distributions.

    Readmes link to the repository by URL, since a package index has no other file of it, each pyproject.toml has
    `project.urls`, and alerts link to the page on troubleshooting: where a release is published is no matter of the
    source.
    """
    archive = subprocess.run(["git", "-C", root, "archive", release.commit], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tree:
        tree.extractall(target, filter="data")
    folders = distributions(target)
    for folder in folders:
        readme = folder / "README.md"
        place = folder.relative_to(target).as_posix()
        readme.write_text(with_absolute_links(readme.read_text("utf-8"), place, release, target), "utf-8")
        with (folder / "pyproject.toml").open("a", encoding="utf-8") as project:
            project.write(_URLS.format(repository=release.repository, tag=release.tag))
    runbooks = f"{release.repository}/blob/{release.tag}/{_TROUBLESHOOTING}"
    for file in (target / name for name in _WITH_RUNBOOKS):
        text = file.read_text("utf-8")
        if RUNBOOKS not in text:
            raise ValueError(f"{file.relative_to(target)}: alerts do not link to {RUNBOOKS}")
        file.write_text(text.replace(RUNBOOKS, runbooks), "utf-8")
    return folders


def distributions(tree: Path) -> tuple[Path, ...]:
    """Give the folders of all distributions, that of trainer-operator first."""
    return (tree, *sorted(path.parent for path in tree.glob("packages/*/pyproject.toml")))


def with_absolute_links(text: str, place: str, release: Release, tree: Path) -> str:
    """Give Markdown whose relative links are URLs of the release's tag.

    Args:
        text: the Markdown.
        place: its folder, relative to the tree.
        release: names repository and tag.
        tree: the files that links may lead to.

    Raises:
        ValueError: a link leads to no file.
    """

    def absolute(link: re.Match[str]) -> str:
        label, target, fragment = link.groups()
        if "://" in target or target.startswith("mailto:"):
            return link[0]
        path = posixpath.normpath(posixpath.join(place, target))
        if not (tree / path).exists():
            raise ValueError(f"{place}/README.md: the link {target} leads to no file of the repository")
        # An image is loaded as it is, any other file is read as a page.
        kind = "raw" if label.startswith("!") else "blob"
        return f"{label}({release.repository}/{kind}/{release.tag}/{path}{fragment})"

    return _LINK.sub(absolute, text)
