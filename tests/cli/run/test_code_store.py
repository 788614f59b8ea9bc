"""Code in buckets and on claims, from the upload to the node."""

from __future__ import annotations

import os
import random
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.run.test_start import Node
from tests.initializers.s3 import S3Server, run_s3_server
from trainer.cli.errors import BadInputError, CommandError
from trainer.cli.run.code_store import StoredCode, code_store, upload
from trainer.cli.run.folder import files_of_folder
from trainer.cli.run.package import pack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from trainer.cli.run.code_store import CodeStore
    from trainer.cli.run.package import CodePackage


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A server that speaks S3."""
    yield from run_s3_server(tmp_path_factory.mktemp("bucket"))


def packed(folder: Path, store: CodeStore) -> CodePackage:
    """Code that no ConfigMap holds."""
    folder.mkdir()
    (folder / "train.py").write_text("print('trains', flush=True)")
    (folder / "weights.bin").write_bytes(random.Random(0).randbytes(1024 * 1024))
    package = pack(files_of_folder(folder), folder, store=store)
    assert "code.tar.gz" not in package.binary
    return package


def node_with(package: CodePackage, directory: Path) -> Node:
    """A node whose ConfigMap is that of the package."""
    source = directory / "source"
    source.mkdir()
    for name, content in {**package.binary, **{key: text.encode() for key, text in package.data.items()}}.items():
        (source / name).write_bytes(content)
    return Node(source, directory / "work", {})


def test_bucket(bucket: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code is uploaded once, and a node fetches it with the keys of the Secret and runs nothing else."""
    for name, value in bucket.environ.items():
        monkeypatch.setenv(name, value)
    store = code_store("s3://bucket/code/", "access")
    package = packed(tmp_path / "code", store)
    code = StoredCode.of(store, package.archive)

    said = [upload(code, package.archive), upload(code, package.archive)]

    assert [line.partition(":")[0] for line in said] == ["the code is uploaded", "the code is there already"]
    assert f"code/{code.digest}/code.tar.gz" in bucket.objects()
    (tmp_path / "secret").mkdir()
    for name, value in bucket.environ.items():
        monkeypatch.delenv(name)
        (tmp_path / "secret" / name).write_text(value)
    node = node_with(package, tmp_path)
    assert node.run(sys.executable, "train.py", options=tuple(code.options)) == (0, "trains\n", "")
    node.work = tmp_path / "other"
    other = ("--fetch", code.uri, "0" * 64)
    exit_code, stdout, stderr = node.run(sys.executable, "train.py", options=other)
    assert (exit_code, stdout) == (1, "")
    assert f"is not the code that was submitted: its SHA-256 is {code.digest}" in stderr
    node.work = tmp_path / "third"
    missing = ("--fetch", "s3://bucket/none", code.digest)
    assert "s3://bucket/none does not exist (404)" in node.run(sys.executable, "train.py", options=missing)[2]


def test_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the claim is mounted the code is copied to it once, and nodes read it there."""
    monkeypatch.setenv("PVC_PATH", str(tmp_path / "mounts"))
    (tmp_path / "mounts" / "shared").mkdir(parents=True)
    store = code_store("pvc://shared/code", None)
    package = packed(tmp_path / "code", store)
    code = StoredCode.of(store, package.archive)

    said = [upload(code, package.archive), upload(code, package.archive)]

    assert [line.partition(":")[0] for line in said] == ["the code is uploaded", "the code is there already"]
    option, path, digest = code.options
    assert path == f"/mnt/trainer/store/code/{code.digest}/code.tar.gz"
    here = str(tmp_path / "mounts" / "shared") + path.removeprefix("/mnt/trainer/store")
    node = node_with(package, tmp_path)
    assert node.run(sys.executable, "train.py", options=(option, here, digest)) == (0, "trains\n", "")
    assert not (node.work / "code.tar.gz").exists()


def test_damaged_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive on the claim that has the right size and another content is uploaded again."""
    monkeypatch.setenv("PVC_PATH", str(tmp_path))
    (tmp_path / "shared").mkdir()
    code = StoredCode.of(code_store("pvc://shared/my%20code", None), b"archive")
    upload(code, b"archive")
    stored = tmp_path / "shared" / "my code" / code.digest / "code.tar.gz"
    stored.write_bytes(b"ARCHIVE")
    assert upload(code, b"archive").startswith("the code is uploaded: ")
    assert stored.read_bytes() == b"archive"


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "link"])
def test_what_a_training_has_put_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None]
) -> None:
    """What is no file in the place of the archive is not read, and gives way to the archive."""
    monkeypatch.setenv("PVC_PATH", str(tmp_path))
    code = StoredCode.of(code_store("pvc://shared", None), b"archive")
    stored = tmp_path / "shared" / code.digest / "code.tar.gz"
    stored.parent.mkdir(parents=True)
    make(stored)
    assert upload(code, b"archive").startswith("the code is uploaded: ")
    assert stored.read_bytes() == b"archive"


def test_directory_that_a_training_has_made_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link in place of the directory of the archive is refused, and nothing is removed where it leads."""
    monkeypatch.setenv("PVC_PATH", str(tmp_path))
    code = StoredCode.of(code_store("pvc://shared", None), b"archive")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "code.tar.gz").write_bytes(b"precious")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / code.digest).symlink_to(tmp_path / "home")
    with pytest.raises(CommandError, match="symbolic link"):
        upload(code, b"archive")
    assert (tmp_path / "home" / "code.tar.gz").read_bytes() == b"precious"


def test_archive_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands in the place of the archive and is none is named."""
    monkeypatch.setenv("PVC_PATH", str(tmp_path))
    code = StoredCode.of(code_store("pvc://shared", None), b"x")
    (tmp_path / "shared" / code.digest / "code.tar.gz").mkdir(parents=True)
    with pytest.raises(CommandError, match=r"the code cannot be uploaded to pvc://shared/.*: .* Is a directory"):
        upload(code, b"x")


def test_archive_that_changes(tmp_path: Path) -> None:
    """A node reads an archive that others may write once: what it has checked is what it unpacks."""
    store = code_store("pvc://shared/code", None)
    package = packed(tmp_path / "code", store)
    node, pipe = node_with(package, tmp_path), tmp_path / "code.tar.gz"
    os.mkfifo(pipe)  # whose content is gone when it is opened a second time
    options = ("--archive", str(pipe), StoredCode.of(store, package.archive).digest)
    process = node.start(*options, "--", sys.executable, "train.py")
    with pipe.open("wb") as opened:
        opened.write(package.archive)
    assert process.communicate() == ("trains\n", "")


def test_claim_that_is_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim that is not mounted here cannot be written, and the message says where it can be."""
    monkeypatch.setenv("PVC_PATH", str(tmp_path))
    code = StoredCode.of(code_store("pvc://shared/code", None), b"x")
    with pytest.raises(CommandError, match=r"the claim shared is not mounted here: run this where it is mounted"):
        upload(code, b"x")


@pytest.mark.parametrize(
    ("uri", "secret", "problem"),
    [
        pytest.param("bucket", None, "--code-store: bucket: must be s3://BUCKET/PREFIX", id="no URI"),
        pytest.param("https://h/x", None, "--code-store: https://h/x: must be s3:", id="scheme"),
        pytest.param("s3:///x", None, "must be s3:", id="no bucket"),
        pytest.param("s3://b/x?sig=hidden", None, "--code-store: the URI: must be", id="query"),
        pytest.param("s3://a:hidden@b/x", None, "name a Secret with --code-secret", id="password"),
        pytest.param("pvc://c/../x", None, "must have no ..", id="parent"),
        pytest.param("s3://b/x", "A b", "--code-secret: A b: must be the name of a Secret", id="secret"),
    ],
)
def test_wrong_store(uri: str, secret: str | None, problem: str) -> None:
    """The message names the option and the form, and no password."""
    with pytest.raises(BadInputError) as caught:
        code_store(uri, secret)
    assert problem in str(caught.value)
    assert "hidden" not in str(caught.value)
