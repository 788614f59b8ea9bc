"""What a training leaves on a volume for the initializers and the exporter, which have credentials that it has not."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from packages.initializers.tests.conftest import Initializer, contents
from trainer_initializers.errors import TransferError, UnavailableSourceError
from trainer_initializers.local import files_to_export
from trainer_initializers.options import read_options
from trainer_initializers.staging import Staging

SECRET = "the-key-of-the-bucket"


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    """A volume that a training has written, with a file that belongs to nobody's result beside its directory."""
    volume = tmp_path / "volume"
    (volume / "adapters").mkdir(parents=True)
    (volume / "adapters" / "weights.bin").write_bytes(b"weights")
    (volume / "private.txt").write_text("private")
    return volume


@pytest.fixture
def initializer(tmp_path: Path) -> Initializer:
    return Initializer(tmp_path)


def link(path: Path, target: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def chain(directory: Path, *names: str) -> None:
    """Links, each to the next name."""
    for name, target in pairwise(names):
        link(directory / name, target)


def listen(path: Path) -> None:
    os.chdir(path.parent)  # the path of a socket has 108 bytes at most
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)


@pytest.mark.parametrize(
    ("attack", "name"),
    [
        pytest.param(lambda a: link(a / "config.json", "/proc/self/environ"), "config.json", id="environ"),
        pytest.param(lambda a: link(a / "config.json", "../private.txt"), "config.json", id="file above"),
        pytest.param(lambda a: link(a / "proc", "/proc/self"), "proc", id="directory"),
        pytest.param(lambda a: link(a / "x" / "up", "../../.."), "up", id="directory above"),
        pytest.param(lambda a: chain(a, "first", "second", "/proc/self/environ"), "first", id="two links"),
        pytest.param(lambda a: link(a / "loop", "loop"), "loop", id="loop"),
        pytest.param(lambda a: link(a / "gone", "nowhere"), "gone", id="nowhere"),
        pytest.param(lambda a: os.mkfifo(a / "pipe"), "pipe", id="pipe"),
    ],
)
def test_what_is_no_file_of_the_directory(
    initializer: Initializer, volume: Path, tmp_path: Path, attack: Callable[[Path], object], name: str
) -> None:
    """The export of a real process has the files, and neither its variables nor what is elsewhere, and says so."""
    attack(volume / "adapters")
    variables = initializer.variables(
        f"file://{tmp_path}/out", TRANSFER_PATH=str(volume / "adapters"), SECRET_ACCESS_KEY=SECRET, HF_TOKEN=SECRET
    )

    done = subprocess.run(
        [sys.executable, "-m", "trainer_initializers", "export"],
        env={**variables, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert contents(tmp_path / "out") == {"weights.bin": b"weights"}
    assert done.returncode == 2
    assert f"{name}' is " in initializer.message
    assert "is not exported" in initializer.message
    assert "the other 1 files are in " in initializer.message


@pytest.mark.parametrize(
    "target",
    [pytest.param("/proc/self", id="of the exporter"), pytest.param("elsewhere", id="of the volume")],
)
def test_directory_that_is_a_link(initializer: Initializer, volume: Path, tmp_path: Path, target: str) -> None:
    """A directory that the training has exchanged for a link is not exported."""
    (volume / "adapters").rename(volume / "elsewhere")
    link(volume / "adapters", target)
    assert initializer.run(f"file://{tmp_path}/out", "export", TRANSFER_PATH=str(volume / "adapters")) == 2
    assert "adapters is a symbolic link or a file" in initializer.message
    assert not (tmp_path / "out").exists()


def test_links_within_the_directory(initializer: Initializer, volume: Path, tmp_path: Path) -> None:
    """Links to files of the same directory are exported as these files; those to directories add nothing."""
    adapters = volume / "adapters"
    link(adapters / "last.bin", "weights.bin")
    link(adapters / "best" / "model.bin", "../weights.bin")
    link(adapters / "absolute.bin", str(adapters / "weights.bin"))
    link(adapters / "latest", "best")
    assert initializer.run(f"file://{tmp_path}/out", "export", TRANSFER_PATH=str(adapters)) == 0, initializer.message
    names = ["absolute.bin", "best/model.bin", "last.bin", "weights.bin"]
    assert contents(tmp_path / "out") == dict.fromkeys(names, b"weights")


@pytest.mark.parametrize("path", ["config.json", "x/config.json"])
def test_file_that_becomes_a_link(volume: Path, path: str) -> None:
    """A file that becomes a link, or its directory, after it was listed and before it is read, is not followed."""
    adapters = volume / "adapters"
    (adapters / path).parent.mkdir(exist_ok=True)
    (adapters / path).write_text("{}")
    (volume / "config.json").write_text("private")
    options = read_options("export", {"STORAGE_URI": "file:///out", "TRANSFER_PATH": str(adapters)})
    files, _ = files_to_export(options)
    exchanged = adapters / path.partition("/")[0]
    exchanged.rename(volume / "away")
    link(exchanged, ".." if path.startswith("x/") else "../config.json")
    (file,) = (file for file in files if file.path == path)
    with pytest.raises(TransferError, match="is a symbolic link"):
        file.open()


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        pytest.param("pvc://shared/link", "link is a symbolic link, which is not followed", id="file"),
        pytest.param("pvc://shared/proc", "proc is a symbolic link, which is not followed", id="directory"),
        pytest.param("pvc://shared/proc/environ", "is a symbolic link, which is not followed", id="in a directory"),
        pytest.param("pvc://shared/set", "'evil.json' is a symbolic link that leads out of", id="in the dataset"),
        pytest.param("file://{}/shared/link", "is a symbolic link", id="path of a file"),
        pytest.param("file://{}/shared/set", "'evil.json' is a symbolic link that leads out of", id="path"),
        pytest.param("pvc://shared/pipe", "pipe is neither a file nor a directory", id="pipe"),
        pytest.param("pvc://shared/socket", "socket is neither a file nor a directory", id="socket"),
    ],
)
def test_imports(
    initializer: Initializer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uri: str, message: str
) -> None:
    """A dataset on a claim has its own files only; what is none is refused before the first byte."""
    claim = tmp_path / "shared"
    link(claim / "link", "/proc/self/environ")
    link(claim / "proc", "/proc/self")
    link(claim / "set" / "evil.json", "/proc/self/environ")
    (claim / "set" / "good.json").write_text("{}")
    os.mkfifo(claim / "pipe")
    monkeypatch.chdir(tmp_path)
    listen(claim / "socket")
    assert initializer.run(uri.format(tmp_path), PVC_PATH=str(tmp_path)) == 2
    assert message in initializer.message
    assert not initializer.target.exists()


def test_links_within_a_claim(initializer: Initializer, tmp_path: Path) -> None:
    """A cache of a Hub on a claim, whose files are links to other directories of the claim, can be imported."""
    blobs = tmp_path / "shared" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / "123").write_text("{}")
    link(tmp_path / "shared" / "snapshots" / "main" / "config.json", "../../blobs/123")
    uri = "pvc://shared/snapshots/main"
    assert initializer.run(uri, PVC_PATH=str(tmp_path)) == 0, initializer.message
    assert initializer.fetched() == {"config.json": b"{}"}


def index(source: str, path: str = "a.json", size: object = 2, digest: object = None) -> str:
    """An index as initializers write it, but for what is given."""
    return json.dumps({"source": source, "files": [{"path": path, "size": size, "version": "1", "digest": digest}]})


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(index("SOURCE", "../../precious.txt"), id="above"),
        pytest.param(index("SOURCE", "/precious.txt"), id="absolute"),
        pytest.param(index("SOURCE", "a/../../../precious.txt"), id="above by a detour"),
        pytest.param(index("SOURCE", ".trainer-index.json"), id="itself"),
        pytest.param(index("SOURCE", ".dataset.fetching/log"), id="log of parts"),
        pytest.param(index("SOURCE", "x\0"), id="zero byte"),
        pytest.param(index("SOURCE", size="2"), id="size"),
        pytest.param(index("SOURCE", digest=[1]), id="digest"),
        pytest.param("[" * 100_000, id="deep"),
        pytest.param("{", id="no JSON"),
    ],
)
def test_index_of_a_stranger(initializer: Initializer, tmp_path: Path, written: str) -> None:
    """An index with names that no server could give ends the fetch, and nothing is deleted."""
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "a.json").write_text("{}")
    precious = tmp_path / "precious.txt"
    precious.write_text("precious")
    initializer.target.mkdir(parents=True)
    (initializer.target / ".trainer-index.json").write_text(written.replace("SOURCE", f"file://{tmp_path}/source"))
    assert initializer.run(f"file://{tmp_path}/source") == 2
    assert ".trainer-index.json is not what an initializer has written: empty the directory" in initializer.message
    assert precious.read_text() == "precious"


@pytest.mark.parametrize("name", ["data", ".dataset.fetching", ".dataset.fetching/files", ".dataset.fetching/log"])
def test_targets_that_are_links(initializer: Initializer, tmp_path: Path, name: str) -> None:
    """What is fetched is written nowhere else: neither through the target nor through the place where it is filled."""
    (tmp_path / "source" / "data").mkdir(parents=True)
    (tmp_path / "source" / "data" / "a.json").write_text("{}")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.json").write_text("precious")
    (tmp_path / "other" / "log").write_text("precious")
    initializer.target.mkdir(parents=True)
    (initializer.target / ".trainer-index.json").write_text(index(f"file://{tmp_path}/source", "data/log"))
    place = initializer.target / name if name == "data" else initializer.target.parent / name
    link(place, str(tmp_path / "other" / ("log" if name.endswith("log") else "")))
    assert initializer.run(f"file://{tmp_path}/source") == 2, initializer.message
    assert "link" in initializer.message
    assert contents(tmp_path / "other") == {"a.json": b"precious", "log": b"precious"}


@pytest.mark.parametrize("name", ["sub", "sub/.weights.bin.fetching", ".trainer-index.json.fetching"])
def test_target_of_an_export_with_links(initializer: Initializer, volume: Path, tmp_path: Path, name: str) -> None:
    """An export to a claim writes into this claim alone, whatever links others have left there."""
    (volume / "adapters" / "sub").mkdir()
    (volume / "adapters" / "weights.bin").rename(volume / "adapters" / "sub" / "weights.bin")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "precious.txt").write_text("precious")
    link(tmp_path / "claim" / "out" / name, str(tmp_path / "other" / ("" if name == "sub" else "precious.txt")))
    code = initializer.run("pvc://claim/out", "export", TRANSFER_PATH=str(volume / "adapters"), PVC_PATH=str(tmp_path))
    assert code == (2 if name == "sub" else 0), initializer.message
    assert contents(tmp_path / "other") == {"precious.txt": b"precious"}


def test_names_that_forge_lines(
    initializer: Initializer, volume: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The name of a file is one printable word in the log, also one with line breaks or bytes that are no text."""
    (volume / "adapters" / "a\n[trainer]\x1b[2J").touch()
    (volume / "adapters" / os.fsdecode(b"\xff")).touch()
    assert initializer.run(f"file://{tmp_path}/out", "export", TRANSFER_PATH=str(volume / "adapters")) == 0
    output = capsys.readouterr().out
    assert "/a\\n[trainer]\\x1b[2J, 0 bytes\n" in output
    assert "/\\udcff, 0 bytes\n" in output


def test_directory_above_the_target_is_removed(tmp_path: Path) -> None:
    """A fetch ends, rather than try without end, when others have removed the directory that the target is to be in."""
    above = tmp_path / "above"
    above.mkdir()
    staging = Staging(above / "dataset")
    above.rmdir()
    with pytest.raises(UnavailableSourceError, match="was removed meanwhile: start again"), staging.locked():
        pass


def test_leftovers_that_are_too_deep(initializer: Initializer, tmp_path: Path) -> None:
    """Directories that a training has nested deeper than they can be removed do not fail a fetch."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.bin").write_bytes(b"x")
    below = initializer.target.with_name(".dataset.fetching")
    below.mkdir(parents=True)
    descriptor = os.open(below, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=descriptor)
        entered = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = entered
    os.close(descriptor)
    try:
        assert initializer.run(f"file://{source}") == 0, initializer.message
        assert initializer.fetched() == {"a.bin": b"x"}
    finally:
        subprocess.run(["rm", "-rf", str(below)], check=True)  # pytest cannot either


def test_message_with_a_name_of_a_training(initializer: Initializer, volume: Path) -> None:
    """A name in a message commands no terminal."""
    initializer.environ["TRANSFER_PATH"] = str(volume / "adapters")
    (volume / "target" / "a\x1b[2Jb").mkdir(parents=True)
    (volume / "adapters" / "a\x1b[2Jb").mkdir()
    (volume / "adapters" / "a\x1b[2Jb" / "c").write_bytes(b"c")
    (volume / "target" / "a\x1b[2Jb").rmdir()
    link(volume / "target" / "a\x1b[2Jb", "..")
    assert initializer.run(f"file://{volume}/target", "export") == 2
    assert "a\\x1b[2Jb" in initializer.message
