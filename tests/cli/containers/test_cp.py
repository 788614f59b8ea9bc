"""`trainer cp`, with the tar of this machine in the container."""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest
from typer.testing import CliRunner

from tests.cli.containers.conftest import Machine, NeverRun
from trainer.cli.app import app
from trainer.cli.containers.cp import _Tar
from trainer.cli.run.script_job import WORK
from trainer.kube.errors import ForbiddenError, InternalError
from trainer.kube.remote_command import OutputStream
from trainer.progress.containers import StartedContainer

pytestmark = [
    pytest.mark.usefixtures("cluster", "served"),
    pytest.mark.skipif(shutil.which("tar") is None, reason="there is no tar"),
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the command runs."""
    directory = tmp_path / "here"
    directory.mkdir()
    monkeypatch.chdir(directory)
    return directory


def tree(directory: Path) -> dict[str, str]:
    """The files of a folder with their content, links with where they lead."""
    return {
        str(path.relative_to(directory)): f"-> {path.readlink()}" if path.is_symlink() else path.read_text()
        for path in directory.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def fill(directory: Path) -> None:
    """A folder with files, a link, an empty folder and one that its owner may not write to."""
    (directory / "out" / "deep").mkdir(parents=True)
    (directory / "out" / "empty").mkdir()
    (directory / "out" / "model").write_text("weights")
    (directory / "out" / "deep" / ("n" * 200)).write_text("long name")
    (directory / "out" / "last").symlink_to("model")
    (directory / "out" / "deep").chmod(0o555)
    (directory / "-dash").write_text("dash")
    (directory / "run").write_text("#!/bin/sh\n")
    (directory / "run").chmod(0o755)


OUT = {"model": "weights", f"deep/{'n' * 200}": "long name", "last": "-> model"}


@pytest.mark.parametrize(
    ("source", "target", "expected", "said"),
    [
        pytest.param("out/model", ".", {"model": "weights"}, "node-0:out/model to model (1 file, 7 bytes)", id="file"),
        pytest.param("out/model", "m", {"m": "weights"}, "node-0:out/model to m (1 file, 7 bytes)", id="another name"),
        pytest.param("-dash", "x", {"x": "dash"}, "node-0:-dash to x (1 file, 4 bytes)", id="a dash in front"),
        pytest.param(
            "out", ".", {f"out/{name}": text for name, text in OUT.items()}, "node-0:out to out (3 files, 16 bytes)",
            id="a folder",
        ),
        pytest.param(
            "./out/", "new", {f"new/{name}": text for name, text in OUT.items()},
            "node-0:out to new (3 files, 16 bytes)", id="a folder under another name",
        ),
        pytest.param(
            "out", "made/", {f"made/out/{name}": text for name, text in OUT.items()},
            "node-0:out to made/out (3 files, 16 bytes)", id="into a new folder",
        ),
    ],
)  # fmt: skip
def test_out(machine: Machine, here: Path, source: str, target: str, expected: dict[str, str], said: str) -> None:
    """Files come as cp copies them, under their own name or another one, and how much it was is said."""
    fill(machine.directory)

    result = CliRunner().invoke(app, ["cp", f"demo:{source}", target])

    assert (result.exit_code, result.stderr, result.stdout) == (0, "", f"copied {said}\n")
    assert tree(here) == expected


def test_to_the_folder_above(machine: Machine, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The content of a folder may go to one that is named by dots."""
    (machine.directory / "a").write_text("1")
    (here / "below").mkdir()
    monkeypatch.chdir(here / "below")

    result = CliRunner().invoke(app, "cp demo: ..")

    assert (result.exit_code, result.stderr) == (0, "")
    assert (here / "a").read_text() == "1"


@pytest.mark.parametrize("source", ["", ".", "ABSOLUTE"])
def test_all_of_a_folder(machine: Machine, here: Path, source: str) -> None:
    """Without a path it is the content of the working directory; absolute paths work as well."""
    (machine.directory / "a").write_text("1")
    source = str(machine.directory) if source == "ABSOLUTE" else source

    result = CliRunner().invoke(app, ["cp", "--node", "1", f"demo:{source}", "all"])

    assert (result.exit_code, result.stderr) == (0, "")
    assert tree(here) == {"all/a": "1"}
    assert machine.asked[0][0] == "demo-node-0-1-abcde"


def test_modes(machine: Machine, here: Path) -> None:
    """What can be executed stays so, and what is there is replaced."""
    fill(machine.directory)
    (here / "run").write_text("before")

    assert CliRunner().invoke(app, "cp demo:run .").exit_code == 0

    assert (here / "run").read_text() == "#!/bin/sh\n"
    assert stat.S_IMODE((here / "run").stat().st_mode) == 0o755


@pytest.mark.parametrize(
    ("source", "target", "expected", "said"),
    [
        pytest.param("out/model", "", {"model": "weights"}, "out/model to node-0:model", id="working directory"),
        pytest.param("out/model", "m", {"m": "weights"}, "out/model to node-0:m", id="another name"),
        pytest.param("out/model", "there", {"there/model": "weights"}, "out/model to node-0:there/model", id="folder"),
        pytest.param("./-dash", "there/", {"there/-dash": "dash"}, "-dash to node-0:there/-dash", id="dash"),
        pytest.param("out/last", "x", {"x": "weights"}, "out/last to node-0:x", id="what a link leads to"),
        pytest.param("out", "new", {f"new/{name}": text for name, text in OUT.items()}, "out to node-0:new", id="all"),
        pytest.param(
            "out/deep/..",
            "",
            {f"out/{name}": text for name, text in OUT.items()},
            "out/deep/.. to node-0:out",
            id="the folder above",
        ),
    ],
)
def test_into(machine: Machine, here: Path, source: str, target: str, expected: dict[str, str], said: str) -> None:
    """The same in the other direction."""
    fill(here)
    (machine.directory / "there").mkdir()

    result = CliRunner().invoke(app, ["cp", source, f"demo:{target}"])

    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(f"copied {said} (")
    assert tree(machine.directory) == expected


def test_more_than_a_pipe_holds(machine: Machine, here: Path) -> None:
    """Large files arrive as they are, there and back."""
    content = os.urandom(3_000_000)
    (here / "large").write_bytes(content)

    there = CliRunner().invoke(app, "cp large demo:large")
    back = CliRunner().invoke(app, "cp demo:large back")

    assert there.stdout == "copied large to node-0:large (1 file, 2.9 MiB)\n"
    assert back.stdout == "copied node-0:large to back (1 file, 2.9 MiB)\n"
    assert (here / "back").read_bytes() == content


def test_special_files(machine: Machine, here: Path) -> None:
    """What is no file, and links that lead elsewhere, are left out, and named."""
    (machine.directory / "out").mkdir()
    os.mkfifo(machine.directory / "out" / "pipe")
    for number in range(6):
        (machine.directory / "out" / f"link{number}").symlink_to("/etc/passwd")
    (machine.directory / "out" / "a").write_text("1")

    result = CliRunner().invoke(app, "cp demo:out .")

    assert (result.exit_code, tree(here)) == (0, {"out/a": "1"})
    assert len(result.stderr.splitlines()) == 6
    assert "left out ./out/link" in result.stderr
    assert result.stderr.endswith("warning: left out 2 more\n")


def test_nothing_but_special_files(machine: Machine, here: Path) -> None:
    """A copy of which nothing is left has failed."""
    os.mkfifo(machine.directory / "pipe")
    result = CliRunner().invoke(app, "cp demo:pipe .")
    assert (result.exit_code, tree(here), result.stdout) == (1, {}, "")
    assert result.stderr.endswith("error: nothing of node-0:pipe was copied\n")


def program(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("line", "code", "complaint"),
    [
        pytest.param(
            "cp a b", 2, "one of SOURCE and TARGET must be NAME:PATH, a path in the TrainJob NAME,", id="no remote"
        ),
        pytest.param("cp demo:a demo:b", 2, "one of SOURCE and TARGET must be NAME:PATH,", id="two remotes"),
        pytest.param("cp ./demo:a ./b", 2, "one of SOURCE and TARGET must be NAME:PATH,", id="colons here"),
        pytest.param("cp outptu demo:", 2, "there is no outptu to copy: did you mean output?", id="no such file here"),
        pytest.param("cp demo:a no/such", 2, "there is no folder no to copy to", id="no such folder here"),
        pytest.param("cp demo:a b --node 9", 2, "--node: TrainJob demo has no node-9;", id="no such node"),
        pytest.param(
            "cp demo:nosuch .",
            1,
            "node-0:nosuch: ./nosuch: Cannot stat: No such file or directory; the path is "
            f"below the working directory of the image, and trainer run works in {WORK}/code",
            id="no such file",
        ),
        pytest.param(
            "cp demo:/nosuch .", 1, "node-0:/nosuch: ./nosuch: Cannot stat: No such file or directory\n", id="absolute"
        ),
        pytest.param("cp output demo:no/such", 1, "node-0:no/such: no: Cannot open: No such file", id="no such folder"),
        pytest.param("cp demo:last .", 1, "last is a link to model: name that path", id="a link"),
    ],
)
def test_mistakes(machine: Machine, here: Path, line: str, code: int, complaint: str) -> None:
    """What is wrong is said, in the words of the tar in the container where it knows more."""
    (here / "output").write_text("1")
    (machine.directory / "last").symlink_to("model")

    result = CliRunner().invoke(app, line)

    assert result.exit_code == code
    assert result.stderr.startswith(f"error: {complaint}")
    assert tree(here) == {"output": "1"}


@pytest.mark.parametrize("line", ["cp demo:a .", "cp a demo:"])
def test_image_without_tar(machine: Machine, here: Path, line: str) -> None:
    """An image without tar is the reason that is given."""
    (here / "a").write_text("1")
    runtime = "OCI runtime exec failed: unable to start container process"
    text = f'{runtime}: exec: "tar": executable file not found in $PATH: unknown'
    machine.programs["tar"] = InternalError(500, f"error executing command in container: {text}")

    result = CliRunner().invoke(app, line)

    place = "container trainer of pod demo-node-0-0-abcde"
    complaint = f"the image of {place} has no tar, which trainer cp needs: use an image that has it"
    assert (result.exit_code, result.stderr) == (1, f"error: {complaint}\n")


def test_forbidden(machine: Machine, here: Path) -> None:
    """Who may not run commands may not copy either."""
    machine.refusal = ForbiddenError(403, "no")

    result = CliRunner().invoke(app, "cp demo:a .")

    assert (result.exit_code, "the verbs get and create on pods/exec" in result.stderr) == (1, True)


@pytest.mark.parametrize(
    ("script", "code", "complaint"),
    [
        pytest.param(
            "echo 'tar: ./a: file changed as we read it' >&2; command tar \"$@\"; exit 1", 0,
            "warning: files changed while they were read: ./a: file changed as we read it", id="a file that grows",
        ),
        pytest.param("command tar \"$@\" | head -c 900", 1, "error: what the container sent is cut off:", id="cut off"),
        pytest.param("exit 2", 1, "error: node-0:a: tar ended with exit code 2", id="silence"),
    ],
)  # fmt: skip
def test_what_tar_does(machine: Machine, here: Path, tmp_path: Path, script: str, code: int, complaint: str) -> None:
    """A file that changes while it is read is no failure; whatever else tar ends with is one."""
    (machine.directory / "a").write_text("1" * 1000)
    machine.programs["tar"] = program(tmp_path / "tar.sh", script)

    result = CliRunner().invoke(app, "cp demo:a .")

    assert (result.exit_code, result.stderr.startswith(complaint)) == (code, True)


def test_tar_that_stops_reading(machine: Machine, here: Path, tmp_path: Path) -> None:
    """A tar that ends before it has all of it is a failure, whatever its exit code."""
    (here / "a").write_bytes(bytes(20_000_000))
    machine.programs["tar"] = program(tmp_path / "tar.sh", "echo 'tar: enough' >&2; exit 0")

    result = CliRunner().invoke(app, "cp a demo:a")

    assert (result.exit_code, result.stderr) == (1, "error: node-0:a: enough\n")


async def test_cancelled(tmp_path: Path) -> None:
    """Ctrl-C ends a copy also while there is always more to read."""
    header = tarfile.TarInfo("base")
    header.size = 10_000_000_000

    class Endless(NeverRun):
        async def output(self) -> AsyncGenerator[tuple[OutputStream, bytes], None]:
            yield OutputStream.OUTPUT, header.tobuf()
            scope.cancel()
            for _ in range(100):
                yield OutputStream.OUTPUT, bytes(1000)
            raise AssertionError

    container = StartedContainer("uid", "ns", "pod", "main", "node-0")
    with anyio.CancelScope() as scope:
        await _Tar(Endless(Exception()), container).receive("base", tmp_path / "target")

    assert scope.cancelled_caught
