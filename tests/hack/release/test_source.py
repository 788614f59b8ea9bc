"""Links of readmes in package indexes, which have no other file of the repository."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hack.release.settings import ROOT, Release, release
from hack.release.source import distributions, stage, with_absolute_links
from tests.hack.release.commits import commit

RELEASE = Release("1.2.3", "c" * 40, 0, "https://github.com/o/n")
U = "https://github.com/o/n"


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        pytest.param("[a](docs/install.md)", "", f"[a]({U}/blob/v1.2.3/docs/install.md)", id="page"),
        pytest.param("[a](docs/install.md#verify)", "", f"[a]({U}/blob/v1.2.3/docs/install.md#verify)", id="fragment"),
        pytest.param("![a](docs/README.md)", "", f"![a]({U}/raw/v1.2.3/docs/README.md)", id="picture"),
        pytest.param("[a](../../docs/kube.md)", "packages/sweeps", f"[a]({U}/blob/v1.2.3/docs/kube.md)", id="upwards"),
        pytest.param("[a](https://example.com/b)", "", "[a](https://example.com/b)", id="absolute"),
        pytest.param("[a](#b)", "", "[a](#b)", id="same-page"),
    ],
)
def test_links(text: str, place: str, expected: str) -> None:
    """Those that are relative lead to the tag of the release."""
    assert with_absolute_links(text, place, RELEASE, ROOT) == expected


def test_link_to_nothing() -> None:
    """One that leads nowhere is an error that names it."""
    with pytest.raises(ValueError, match=r"packages/a/README\.md: the link gone\.md leads to no file"):
        with_absolute_links("[a](gone.md)", "packages/a", RELEASE, ROOT)


def test_runbooks(tmp_path: Path) -> None:
    """Alerts link to the page of the tag, from the manifest and from the chart."""
    root = commit(tmp_path / "root")
    stage(release(U, root=root), tmp_path / "tree", root)
    for name in ("charts/kubeflow-trainer/values.yaml", "config/prometheus/runbooks.yaml"):
        assert f": {U}/blob/v1.2.3/docs/troubleshooting.md\n" in (tmp_path / "tree" / name).read_text()


@pytest.mark.parametrize("folder", distributions(ROOT), ids=lambda folder: folder.name)
def test_readmes(folder: Path) -> None:
    """No readme of ours keeps a relative link."""
    place = folder.relative_to(ROOT).as_posix()
    text = with_absolute_links((folder / "README.md").read_text("utf-8"), place, RELEASE, ROOT)
    assert re.findall(r"\]\((?!https://|#)", text) == []
