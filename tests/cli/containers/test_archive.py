"""Archives that are not what was asked for."""

from __future__ import annotations

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
