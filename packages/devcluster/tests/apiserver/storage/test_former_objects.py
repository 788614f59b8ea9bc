"""The objects of a dev cluster 0.1: taken over, and left for the way back."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from packages.devcluster.tests.apiserver.builders import PARTITION, key, put
from trainer.kube.objects import resource_version_of
from trainer_devcluster.apiserver.storage.former_objects import leave, take_over
from trainer_devcluster.apiserver.storage.journal import Database
from trainer_devcluster.apiserver.storage.storage import Storage

FIRST = 1000
DATABASE = "objects.sqlite"


def line(document: Any) -> bytes:
    encoded = json.dumps(document).encode()
    return b"%08x %s\n" % (zlib.crc32(encoded), encoded)


def header(revision: int, objects: int = 0) -> bytes:
    return line({"format": "trainer-dev-cluster/1", "revision": revision, "objects": objects})


def entry(name: str, revision: int, kind: str = "", value: str = "") -> dict[str, Any]:
    found = {"group": PARTITION.group, "plural": PARTITION.plural, "name": name, "namespace": "default"}
    if kind == "DELETED":
        return found | {"type": kind}
    metadata = {"name": name, "namespace": "default", "resourceVersion": str(revision)}
    return found | ({"type": kind} if kind else {}) | {"object": {"metadata": metadata, "value": value}}


def batch(first: int, *changes: dict[str, Any]) -> bytes:
    return line({"first": first, "changes": list(changes)})


@pytest.fixture
def former(tmp_path: Path) -> Path:
    """What a dev cluster 0.1 leaves: `a` was changed, `b` deleted, `c` created since the snapshot."""
    directory = tmp_path / "objects"
    directory.mkdir()
    snapshot = [entry("a", FIRST - 2), entry("b", FIRST - 1)]
    (directory / f"snapshot-{FIRST}").write_bytes(header(FIRST, 2) + line(snapshot))
    first = batch(FIRST + 1, entry("a", FIRST + 1, "MODIFIED", "new"), entry("b", FIRST + 2, "DELETED"))
    second = batch(FIRST + 3, entry("c", FIRST + 3, "ADDED"))
    (directory / f"journal-{FIRST}").write_bytes(header(FIRST) + first + second)
    return directory


def loaded(path: Path, first_revision: int = 1) -> Storage:
    """What a server finds in its database."""
    storage, database = Storage(), Database(path)
    database.load(storage, first_revision)
    database.close()
    return storage


def content(storage: Storage) -> dict[str, tuple[str, str]]:
    items = storage.snapshot(PARTITION)
    return {obj["metadata"]["name"]: (resource_version_of(obj), obj.get("value", "")) for obj in items}


def append(path: Path, *names: str) -> None:
    """What a server leaves in its database that has written further objects and was killed."""
    storage, database = Storage(), Database(path)
    database.load(storage, 1)
    database.close()
    for name in names:
        put(storage, name)
    path.unlink()
    again = Database(path)
    again.fill(storage.state(), storage.revision)
    again.close()


def kept(directory: Path) -> list[Path]:
    return sorted(directory.glob(f"{DATABASE}.replaced-*"))


def test_objects_are_taken_over(former: Path, tmp_path: Path) -> None:
    """The database has the objects with their resource versions, and goes on after the last one; 0.1 finds them too."""
    take_over(former, tmp_path / DATABASE)

    storage = loaded(tmp_path / DATABASE)
    assert content(storage) == {"a": (str(FIRST + 1), "new"), "c": (str(FIRST + 3), "")}
    assert storage.revision == FIRST + 3
    assert [file.name for file in former.iterdir()] == [f"snapshot-{FIRST + 3}"]
    take_over(former, tmp_path / "another.sqlite")
    assert content(loaded(tmp_path / "another.sqlite")) == content(storage)


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_taken_over_once(former: Path, tmp_path: Path, is_interrupted: bool) -> None:
    """A server that was killed at any moment leaves nothing, and its objects stay."""
    path, journal = tmp_path / DATABASE, former / f"journal-{FIRST}"
    written = journal.read_bytes()
    take_over(former, path)
    if is_interrupted:  # before what is left for 0.1 was written
        (snapshot,) = former.iterdir()
        snapshot.rename(former / f"snapshot-{FIRST}").write_bytes(header(FIRST, 1) + line([entry("b", FIRST - 1)]))
        journal.write_bytes(written)
        take_over(former, path)
    append(path, "later")

    take_over(former, path)

    assert set(content(loaded(path))) == {"a", "c", "later"}
    assert kept(tmp_path) == []


def test_later_run_of_the_former_counts(former: Path, tmp_path: Path) -> None:
    """Objects of the last run are those that count, also where the server before it was killed and had changed more."""
    path = tmp_path / DATABASE
    take_over(former, path)
    append(path, "x", "y", "z")
    name = f"journal-{FIRST + 3}"
    (former / name).write_bytes(header(FIRST + 3) + batch(FIRST + 4, entry("of-0-1", FIRST + 4, "ADDED")))

    take_over(former, path)

    assert set(content(loaded(path))) == {"a", "c", "of-0-1"}
    (before,) = kept(tmp_path)
    assert set(content(loaded(before))) == {"a", "c", "x", "y", "z"}


def test_way_back_and_forth(former: Path, tmp_path: Path) -> None:
    """What is left when a server stops is what 0.1 goes on from; after it has, its objects are taken over again."""
    path = tmp_path / DATABASE
    take_over(former, path)
    storage = loaded(path)
    put(storage, "later")
    leave(former, storage.state(), storage.revision)
    (snapshot,) = former.iterdir()
    assert snapshot.name == f"snapshot-{FIRST + 4}"
    assert snapshot.stat().st_mode & 0o777 == 0o600
    name = f"journal-{FIRST + 4}"
    (former / name).write_bytes(header(FIRST + 4) + batch(FIRST + 5, entry("of-0-1", FIRST + 5, "ADDED")))

    take_over(former, path)

    again = loaded(path)
    assert set(content(again)) == {"a", "c", "later", "of-0-1"}
    assert again.get(PARTITION, key("later")) == storage.get(PARTITION, key("later"))
    assert [set(content(loaded(each))) for each in kept(tmp_path)] == [{"a", "c"}]


def test_nothing_of_the_former(tmp_path: Path) -> None:
    """Where no dev cluster 0.1 was, no file is made."""
    take_over(tmp_path / "objects", tmp_path / DATABASE)
    leave(tmp_path / "objects", {}, FIRST)

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("torn", [b"", b"0000", batch(FIRST + 4, entry("d", FIRST + 4, "ADDED"))[:-9]])
def test_unfinished_write_is_left_out(former: Path, tmp_path: Path, torn: bytes) -> None:
    """What was being written when 0.1 was killed was never answered."""
    with (former / f"journal-{FIRST}").open("ab") as journal:
        journal.write(torn)

    take_over(former, tmp_path / DATABASE)

    assert set(content(loaded(tmp_path / DATABASE))) == {"a", "c"}


def damage(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content.replace(b"MODIFIED", b"MODIFLED"))


def skip(path: Path) -> None:
    header, _, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(header + last)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param(damage, "line 2 is damaged", id="damaged"),
        pytest.param(skip, f"the changes after resource version {FIRST} are missing", id="gap"),
        pytest.param(lambda path: path.rename(path.with_name("journal-2000")), "1000 and 2000 are missing", id="lost"),
        pytest.param(lambda path: path.write_bytes(header(7)), "its format is trainer-dev-cluster/1", id="renamed"),
    ],
)
def test_what_cannot_be_read_is_refused(former: Path, tmp_path: Path, change: Any, problem: str) -> None:
    """A damaged directory stops the server with the file and the remedy; the database is not begun."""
    change(former / f"journal-{FIRST}")

    with pytest.raises(OSError, match=problem) as refused:
        take_over(former, tmp_path / DATABASE)

    assert f"move {former} away" in str(refused.value)
    assert not (tmp_path / DATABASE).exists()
