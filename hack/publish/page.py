"""The release page on GitHub."""

from __future__ import annotations

from pathlib import Path

from hack.publish.programs import PublishError, answer, require, run
from hack.publish.signatures import BUNDLE
from hack.release.checksums import NAME as SUMS
from hack.release.checksums import sha256
from hack.release.notes import NAME as NOTES


def publish(tag: str, folder: Path) -> None:
    """Make the page of a tag, with the notes, all files of the folder and the signature of their sums.

    A page that is there, or the draft of a run that was broken off, gets the files again and is published.

    Raises:
        PublishError: gh is missing or fails, or a file is missing or is not the one that the sums name.
    """
    require("gh")
    files = [str(file) for file in _checked(folder)]
    notes = ("--title", tag, "--notes-file", str(folder / NOTES))
    _, missing = answer("gh", "release", "view", tag)
    if missing:
        run("gh", "release", "create", tag, "--verify-tag", *notes, *files)
    else:
        run("gh", "release", "upload", tag, "--clobber", *files)
        run("gh", "release", "edit", tag, "--draft=false", *notes)


def _checked(folder: Path) -> list[Path]:
    for name, remedy in ((SUMS, "make release"), (BUNDLE, "make sign-sums"), (NOTES, "make release")):
        if not (folder / name).exists():
            raise PublishError(f"there is no {folder / name}: {remedy}")
    files = [folder / SUMS, folder / BUNDLE]
    for line in (folder / SUMS).read_text(encoding="utf-8").splitlines():
        digest, _, name = line.partition("  ")
        path = folder / name
        if not path.exists() or sha256(path) != digest:
            raise PublishError(f"{path} is not the file that {SUMS} names: make release")
        if name != NOTES:
            files.append(path)
    return files
