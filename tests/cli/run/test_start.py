"""The program that prepares a node, run as containers run it."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import pytest

from tests.cli.run.test_code_source import git
from trainer.cli.run.folder import files_of_folder
from trainer.cli.run.package import pack, start_program

SHOW = "import os, sys; print('trains', sys.argv[1:], os.getcwd(), flush=True)"
UV = f"""#!{sys.executable}
import pathlib, sys
packages = next(pathlib.Path(sys.argv[4]).parents[1].glob("lib/python*/site-packages"))
stub = next(packages.glob("pytest-*.dist-info"))
print("uv", sys.argv[1:4], sys.argv[5:], "knows", sorted(file.name for file in stub.iterdir()))
"""
"""Stands in for uv; what it does with real indexes is its business."""


@dataclass(slots=True)
class Node:
    """A node of a training, whose pod has these directories."""

    source: Path
    work: Path
    variables: dict[str, str]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start the program."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_", "UV_"))}
        command = [sys.executable, str(self.source / "start.py"), *arguments]
        environment = {**clean, "TRAINER_CODE_DIRECTORY": str(self.work), **self.variables}
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment)

    def run(self, *command: str, options: tuple[str, ...] = ()) -> tuple[int, str, str]:
        """Run it to the end of the training; returns exit code, standard output and standard error."""
        process = self.start(*options, "--", *command)
        stdout, stderr = process.communicate()
        return process.returncode, stdout, stderr


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """A node without code."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "start.py").write_text(start_program())
    return Node(source, tmp_path / "work", {})


def provide(node: Node, folder: Path, **contents: str) -> None:
    """Give the node code, as its ConfigMap does; `__` in a name is the dot."""
    folder.mkdir(exist_ok=True)
    for name, content in contents.items():
        (folder / name.replace("__", ".")).write_text(content)
    (node.source / "code.tar.gz").write_bytes(pack(files_of_folder(folder), folder).binary["code.tar.gz"])


def wheel(directory: Path, name: str) -> None:
    """A distribution with one module, in a directory that pip finds it in."""
    directory.mkdir(exist_ok=True)
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(directory / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}.py", "VALUE = 42")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


def test_training(node: Node, tmp_path: Path) -> None:
    """The training runs in the directory of its code and finds modules there, also for a script in a subdirectory."""
    provide(node, tmp_path / "code", train__py=f"import model\n{SHOW}", model__py="")
    (tmp_path / "code" / "sub").mkdir()
    provide(node, tmp_path / "code", **{"sub/train__py": "import model; print('sub')"})

    assert node.run(sys.executable, "train.py", "--a", "b c") == (
        0,
        f"trains ['--a', 'b c'] {node.work}/code\n",
        "",
    )
    assert node.run(sys.executable, "sub/train.py") == (0, "sub\n", "")
    assert node.run(sys.executable, "-c", "raise SystemExit(7)")[0] == 7


def test_requirements_once(node: Node, tmp_path: Path) -> None:
    """Processes of one node that start together install requirements once, and all find them."""
    wheel(tmp_path / "wheels", "madeforthistest")
    requirements = f"--no-index\n--find-links {tmp_path}/wheels\nmadeforthistest\npytest\n"
    script = "import madeforthistest, pytest; print('found', madeforthistest.VALUE, madeforthistest.__file__)"
    provide(node, tmp_path / "code", train__py=script, requirements__txt=requirements)

    processes = [node.start("--", sys.executable, "train.py") for _ in range(3)]
    outputs = [process.communicate() for process in processes]

    assert [process.returncode for process in processes] == [0, 0, 0], outputs
    everything = "".join(stdout for stdout, _ in outputs)
    assert everything.count("Successfully installed madeforthistest-1.0") == 1
    assert everything.count(f"found 42 {node.work}/packages/") == 3
    assert "already satisfied" not in everything


def test_failed_requirements(node: Node, tmp_path: Path) -> None:
    """What cannot be installed is the last line, and a container that starts again tries again."""
    code = tmp_path / "code"
    provide(node, code, train__py=SHOW, requirements__txt="--no-index\nno-such-thing==3\n")

    code_of_exit, stdout, stderr = node.run(sys.executable, "train.py")

    assert (code_of_exit, "trains" in stdout) == (1, False)
    line = stderr.splitlines()[-1]
    assert line.startswith("trainer: cannot install requirements.txt with pip (exit code 1): ")
    assert "No matching distribution found for no-such-thing==3" in line
    provide(node, code, requirements__txt="--no-index\npytest\n")
    assert node.run(sys.executable, "train.py")[0] == 0


def test_errors_of_the_installer(node: Node, tmp_path: Path) -> None:
    """Of what an installer says only its errors are in the message, whatever it says after them."""
    tools = tmp_path / "tools"
    tools.mkdir()
    lines = ["WARNING: slow", "ERROR: no such thing", "WARNING: old", "[notice] new"]
    (tools / "uv").write_text(f"#!{sys.executable}\nprint(*{lines}, sep='\\n')\nraise SystemExit(1)\n")
    (tools / "uv").chmod(0o755)
    node.variables = {"PATH": f"{tools}:{os.environ['PATH']}", "UV_NO_CACHE": "1"}
    provide(node, tmp_path / "code", train__py=SHOW, requirements__txt="pytest\n")

    code, stdout, stderr = node.run(sys.executable, "train.py")

    assert (code, stdout.splitlines()) == (1, lines)
    assert stderr == "trainer: cannot install requirements.txt with uv (exit code 1): ERROR: no such thing\n"


def test_uv(node: Node, tmp_path: Path) -> None:
    """An image with uv uses it, and uv learns what the image has; nothing of that stays."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "uv").write_text(UV)
    (tools / "uv").chmod(0o755)
    node.variables = {"PATH": f"{tools}:{os.environ['PATH']}", "UV_NO_CACHE": "1"}
    provide(node, tmp_path / "code", train__py="import pytest", requirements__txt="pytest\n")

    code, stdout, stderr = node.run(sys.executable, "train.py")

    assert (code, stderr) == (0, "")
    expected = ["INSTALLER", "METADATA", "RECORD"]
    assert stdout == f"uv ['pip', 'install', '--python'] ['-r', 'requirements.txt'] knows {expected}\n"
    assert not list(node.work.rglob("packages/lib/python*/site-packages/pytest-*"))


def test_repository(node: Node, tmp_path: Path) -> None:
    """The code of a repository is that of the commit."""
    options = repository_of(tmp_path / "repository", train__py="print('from git')")
    (tmp_path / "repository" / "train.py").write_text("print('later')")
    git(tmp_path / "repository", "commit", "--quiet", "-a", "-m", "y")

    assert node.run(sys.executable, "train.py", options=options)[:2] == (0, "from git\n")


def repository_of(folder: Path, **contents: str) -> tuple[str, str, str]:
    """The options of start.py for a repository with these files; `__` in a name is the dot."""
    folder.mkdir()
    git(folder, "init", "--quiet")
    for name, content in contents.items():
        (folder / name.replace("__", ".")).write_text(content)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "x")
    return "--git", f"file://{folder}", git(folder, "rev-parse", "HEAD")


def test_requirements_of_a_repository(node: Node, tmp_path: Path) -> None:
    """Those that its pyproject.toml states are installed, unless it has a requirements.txt."""
    wheel(tmp_path / "wheels", "madeforthistest")
    node.variables = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "wheels")}
    project = '[project]\nname = "a"\nversion = "1"\ndependencies = ["madeforthistest"]\n'
    script = "import madeforthistest; print('found', madeforthistest.VALUE)"
    options = repository_of(tmp_path / "stated", train__py=script, pyproject__toml=project)

    code, stdout, stderr = node.run(sys.executable, "train.py", options=options)

    assert (code, stdout.splitlines()[-1], stderr) == (0, "found 42", "")
    shutil.rmtree(node.work)
    options = repository_of(tmp_path / "both", train__py=SHOW, pyproject__toml=project, requirements__txt="pytest\n")
    assert "madeforthistest" not in node.run(sys.executable, "train.py", options=options)[1]


@pytest.mark.parametrize(
    ("project", "problem"),
    [
        pytest.param("[project", "cannot read pyproject.toml: Expected ']'", id="no TOML"),
        pytest.param('[project]\ndependencies = "torch"', "project.dependencies must be a list", id="no list"),
    ],
)
def test_wrong_project_of_a_repository(node: Node, tmp_path: Path, project: str, problem: str) -> None:
    """What cannot be read is one line."""
    options = repository_of(tmp_path / "repository", train__py=SHOW, pyproject__toml=project)
    code, _, stderr = node.run(sys.executable, "train.py", options=options)
    assert (code, "Traceback" in stderr, problem in stderr.splitlines()[-1]) == (1, False, True), stderr


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        pytest.param(("--git", "file:///nowhere", "0" * 40), "trainer: cannot fetch file:///nowhere (exit", id="git"),
        pytest.param((), "trainer: cannot prepare the code in ", id="no code"),
    ],
)
def test_no_code(node: Node, options: tuple[str, ...], problem: str) -> None:
    """Code that cannot be had is one line."""
    code, _, stderr = node.run(sys.executable, "train.py", options=options)
    assert (code, stderr.splitlines()[-1].startswith(problem)) == (1, True)
    assert "Traceback" not in stderr


def test_no_command(node: Node, tmp_path: Path) -> None:
    """An image without the framework says so."""
    provide(node, tmp_path / "code", train__py="")
    code, _, stderr = node.run("no-such-torchrun", "train.py")
    assert (code, stderr) == (
        1,
        (
            "trainer: the image has no no-such-torchrun: take an image with it, or another runtime; "
            "a dev cluster has no images: install it in the environment that has trainer\n"
        ),
    )


def test_old_python() -> None:
    """The program is valid for Python 3.8, which images may have."""
    source = resources.files("trainer.cli.run").joinpath("start.py").read_text("utf-8")
    assert ast.parse(source, feature_version=(3, 8)).body
