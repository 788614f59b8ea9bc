"""Archives that are not what was asked for."""

from __future__ import annotations

import contextlib
import io
import tarfile
from pathlib import Path

import pytest

from trainer.cli.containers.archive import Copied, pack, unpack
from trainer.cli.errors import CommandError


def archive(*members: tuple[str, str, bytes]) -> bytes:
    """An archive of these names, each with where it leads to if it is a link, and its content; `=` is a hard link."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as file:
        for name, link, content in members:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            if link:
                entry.type = tarfile.LNKTYPE if link.startswith("=") else tarfile.SYMTYPE
                entry.linkname = link.removeprefix("=")
            file.addfile(entry, io.BytesIO(content))
    return written.getvalue()


def take(content: bytes, target: Path, base: str = "base", *, size: int = 700) -> Copied:
    """Unpack an archive that comes in pieces."""
    pieces = (content[start : start + size] for start in range(0, len(content), size))
    return unpack(lambda: next(pieces, b""), base, target)


@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        pytest.param([("/etc/x", "", b"1")], "sent /etc/x, which was not asked for", id="absolute"),
        pytest.param([("../x", "", b"1")], r"sent \.\./x, which was not asked for", id="above"),
        pytest.param([("base/../../x", "", b"1")], r"sent base/\.\./\.\./x, which leads elsewhere", id="above again"),
        pytest.param([("other", "", b"1")], "sent other, which was not asked for", id="another one"),
        pytest.param([("base", "/etc", b"")], "base is a link to /etc: name that path", id="a link itself"),
        pytest.param(
            [("base/a", "", b"1"), ("base/b", "=/etc/passwd", b"")], "sent /etc/passwd, which was not", id="hard link"
        ),
        pytest.param([("base/\x1b[2J", "", b"1"), ("\x1b[2J", "", b"")], r"sent \\x1b\[2J", id="escapes"),
    ],
)
def test_hostile_archives(tmp_path: Path, members: list[tuple[str, str, bytes]], complaint: str) -> None:
    """Nothing is written elsewhere than to the target, and what was tried is said."""
    (tmp_path / "here").mkdir()

    with pytest.raises(CommandError, match=complaint):
        take(archive(*members), tmp_path / "here" / "target")

    assert {path.name for path in tmp_path.iterdir()} == {"here"}
    assert {path.name for path in (tmp_path / "here").iterdir()} <= {"target"}


def test_a_folder_that_is_a_link(tmp_path: Path) -> None:
    """A link that leads out is left out, so that nothing can be written through it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "here").mkdir()
    members = archive(("base/l", str(outside), b""), ("base/up", "../../outside", b""), ("base/up/x", "", b"1"))

    copied = take(members, tmp_path / "here" / "target")

    assert copied.left_out == [f"base/l, a link to {outside}", "base/up, a link to ../../outside"]
    assert (tmp_path / "here" / "target" / "up" / "x").read_bytes() == b"1"
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize(
    "members",
    [
        pytest.param([("base/l", "../mine", b""), ("base/l", "", b"theirs")], id="a file over a link"),
        pytest.param([("base/up", "..", b""), ("base/up/mine", "", b"theirs")], id="a file behind a link"),
        pytest.param(
            [("base/l", "../mine", b""), ("base/h", "=base/l", b""), ("base/h", "", b"theirs")], id="hard link"
        ),
        pytest.param(
            [("base/d", ".", b""), ("base/d/l", "../../mine", b""), ("base/l", "", b"theirs")], id="two links"
        ),
        pytest.param([("base/l", "mine", b""), ("base/l/../../mine", "", b"theirs")], id="dots behind a link"),
    ],
)
def test_neighbours_of_the_target(tmp_path: Path, members: list[tuple[str, str, bytes]]) -> None:
    """Files beside the target are out of reach as well: in a home directory they are what a shell starts with."""
    (tmp_path / "mine").write_text("mine")

    with contextlib.suppress(CommandError):
        take(archive(*members), tmp_path / "target")

    assert (tmp_path / "mine").read_text() == "mine"
    target = (tmp_path / "target").resolve()
    assert all(path.resolve().is_relative_to(target) for path in target.rglob("*"))


@pytest.mark.parametrize(
    ("members", "left_out"),
    [
        pytest.param(
            [("base/h", "=base/none", b"")], ["base/h, a hard link to none, which is not there"], id="missing"
        ),
        pytest.param([("base/h", "=base/h", b"")], ["base/h, a hard link to h, which is not there"], id="to itself"),
        pytest.param([("base/a", "", b"1"), ("base/h", "=base/a", b""), ("base/h", "=base/a", b"")], [], id="twice"),
    ],
)
def test_hard_links(tmp_path: Path, members: list[tuple[str, str, bytes]], left_out: list[str]) -> None:
    """A hard link to what is not there is left out, and one that is there already stays."""
    assert take(archive(*members), tmp_path / "base").left_out == left_out


def test_hard_links_again(tmp_path: Path) -> None:
    """What is at the place of a hard link is replaced, also by a copy under the same name."""
    target = tmp_path / "base"
    target.mkdir()
    (target / "h").write_text("before")
    members = archive(("base/a", "", b"1"), ("base/h", "=base/a", b""))

    take(members, target)
    again = take(members, target)

    assert (again.files, again.left_out) == (2, [])
    assert (target / "h").read_text() == "1"


def test_senseless_header(tmp_path: Path) -> None:
    """A header that makes no sense ends the copy with an error, not with a traceback."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.GNU_FORMAT) as file:
        entry = tarfile.TarInfo("base")
        entry.mtime = 2**80
        file.addfile(entry)

    with pytest.raises(CommandError, match="cannot be unpacked: timestamp out of range"):
        take(written.getvalue(), tmp_path / "target")


def test_links_within(tmp_path: Path) -> None:
    """Links and hard links within what is copied are kept."""
    members = archive(("base/a", "", b"1"), ("base/s", "a", b""), ("base/h", "=base/a", b""))

    copied = take(members, tmp_path / "target")

    assert (copied.files, copied.left_out) == (3, [])
    assert (tmp_path / "target" / "s").readlink() == Path("a")
    assert (tmp_path / "target" / "h").read_bytes() == b"1"


def test_empty_answer(tmp_path: Path) -> None:
    """No archive at all is no error of its own: tar has said why."""
    assert take(b"", tmp_path / "target").files == 0
    assert list(tmp_path.iterdir()) == []


def test_pack(tmp_path: Path) -> None:
    """What is packed has no owner, so that it belongs to the user of the container."""
    (tmp_path / "a").write_text("1")
    written = io.BytesIO()

    copied = pack(tmp_path, "name", written.write)

    written.seek(0)
    with tarfile.open(fileobj=written) as file:
        owners = {(entry.name, entry.uid, entry.gid, entry.uname) for entry in file}
    assert owners == {("name", 0, 0, ""), ("name/a", 0, 0, "")}
    assert str(copied) == "1 file, 1 byte"
