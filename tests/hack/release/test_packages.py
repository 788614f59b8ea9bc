"""Source distributions and wheels, built twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.release.packages import NotReproducibleError, build, check_metadata, members
from hack.release.settings import release
from tests.hack.release.commits import FILES, PROJECT, commit

HOOK = """\
[tool.hatch.build.targets.wheel.hooks.custom]
"""
NAMES_ITS_FOLDER = """\
from pathlib import Path
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

class Hook(BuildHookInterface):
    def initialize(self, version, build_data):
        place = Path(self.root, "trainer", "place.py")
        place.write_text(repr(self.root))
"""


def test_the_same_twice(tmp_path: Path) -> None:
    """A commit gives one wheel and one source distribution, with links to its tag, that an index accepts."""
    root = commit(tmp_path / "root")
    files = build(release("https://github.com/o/n", root=root), tmp_path / "dist", tmp_path / "work", root)

    assert [file.name for file in files] == ["trainer_operator-1.2.3-py3-none-any.whl", "trainer_operator-1.2.3.tar.gz"]
    check_metadata(files)
    metadata = members(files[0])["trainer_operator-1.2.3.dist-info/METADATA"].decode()
    assert "[the page](https://github.com/o/n/blob/v1.2.3/docs/page.md#there)" in metadata
    assert "Project-URL: Issues, https://github.com/o/n/issues\n" in metadata


def test_not_the_same_twice(tmp_path: Path) -> None:
    """The error names the file, and what differs in it."""
    root = commit(tmp_path / "root", FILES | {"pyproject.toml": PROJECT + HOOK, "hatch_build.py": NAMES_ITS_FOLDER})
    with pytest.raises(NotReproducibleError, match=r"\.whl: two builds differ, first in trainer"):
        build(release(root=root), tmp_path / "dist", tmp_path / "work", root)


def test_what_an_index_refuses(tmp_path: Path) -> None:
    """A file that is no distribution is refused before anybody uploads it."""
    wrong = tmp_path / "trainer_operator-1.2.3-py3-none-any.whl"
    wrong.write_bytes(b"")
    with pytest.raises(RuntimeError, match="package index would refuse"):
        check_metadata([wrong])
