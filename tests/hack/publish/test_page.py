"""The release page: its files are those that the sums name."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from hack.publish.__main__ import main
from hack.publish.signatures import BUNDLE
from hack.release.checksums import NAME as SUMS
from hack.release.notes import NAME as NOTES
from tests.hack.programs import Programs, programs

__all__ = ["programs"]

FILES = ("install-v2alpha1.yaml", "trainer_operator-9.8.7-py3-none-any.whl")


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    """A signed release."""
    folder = tmp_path / "dist"
    folder.mkdir()
    for name in (*FILES, NOTES, BUNDLE):
        (folder / name).write_text(name, encoding="utf-8")
    sums = (f"{sha256(name.encode()).hexdigest()}  {name}\n" for name in (*FILES, NOTES))
    (folder / SUMS).write_text("".join(sums), encoding="utf-8")
    return folder


def test_page(dist: Path, programs: Programs) -> None:
    """Notes are its text, and all other files are attached."""
    programs.reply("gh", "release view", code=1)
    programs.add("gh")
    assert main(["page", "v9.8.7", str(dist)]) == 0
    _, call = programs.calls
    assert call[:4] == ["gh", "release", "create", "v9.8.7"]
    assert "--verify-tag" in call
    assert call[call.index("--notes-file") + 1] == str(dist / NOTES)
    assert {word.removeprefix(f"{dist}/") for word in call if word.startswith(str(dist))} == {
        *FILES,
        NOTES,
        SUMS,
        BUNDLE,
    }


def test_page_of_a_run_that_was_broken_off(dist: Path, programs: Programs) -> None:
    """It gets all files again, and is no draft any more."""
    programs.add("gh")
    assert main(["page", "v9.8.7", str(dist)]) == 0
    _, upload, edit = programs.calls
    assert upload[:5] == ["gh", "release", "upload", "v9.8.7", "--clobber"]
    assert {Path(word).name for word in upload[5:]} == {*FILES, SUMS, BUNDLE}
    assert edit[:5] == ["gh", "release", "edit", "v9.8.7", "--draft=false"]
    assert edit[edit.index("--notes-file") + 1] == str(dist / NOTES)


@pytest.mark.parametrize("name", [SUMS, BUNDLE, NOTES, FILES[0]])
def test_a_file_is_missing(name: str, dist: Path, programs: Programs, capsys: pytest.CaptureFixture[str]) -> None:
    """There is no page without it, and the message names it and what makes it."""
    (dist / name).unlink()
    programs.add("gh")
    assert main(["page", "v9.8.7", str(dist)]) == 1
    said = capsys.readouterr().err
    assert name in said
    assert ("make sign-sums" if name == BUNDLE else "make release") in said
    assert programs.calls == []


def test_another_file(dist: Path, programs: Programs, capsys: pytest.CaptureFixture[str]) -> None:
    """What has changed since the sums were signed is not published."""
    (dist / FILES[1]).write_text("changed", encoding="utf-8")
    programs.add("gh")
    assert main(["page", "v9.8.7", str(dist)]) == 1
    assert f"{FILES[1]} is not the file that {SUMS} names" in capsys.readouterr().err
    assert programs.calls == []
