"""Unpacks the code of `trainer run SCRIPT` in a container, installs its requirements, and becomes the training.

It travels in a ConfigMap, mostly with the code, and needs nothing but Python 3.8. Every process of a training may call
it: the first one on a node does the work, the others wait for it. What goes wrong is the last line of the log, and the
termination message of the container.

    python3 start.py [--git URL COMMIT] -- COMMAND ...
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import tarfile
import time
import venv
from collections import deque
from pathlib import Path

ARCHIVE = Path(__file__).absolute().parent / "code.tar.gz"
WORK = Path(os.environ.get("TRAINER_CODE_DIRECTORY", "/mnt/trainer/work"))
"""A volume of the pod, which all processes of a node share and which outlives a container that starts again."""
CODE = WORK / "code"
PACKAGES = WORK / "packages"
REQUIREMENTS, PROJECT = "requirements.txt", "pyproject.toml"
STATED = WORK / "stated-requirements.txt"
"""What the project of a repository states; elsewhere they are written where the code is packed."""
MESSAGE = Path("/dev/termination-log")
PIP_SETTINGS = ("PIP_CONFIG_FILE", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX")
"""How images and pods name their package index to pip; uv reads other variables."""
SATISFIED = "Requirement already satisfied"
"""Begins the lines of pip that say nothing: there may be a hundred."""
TAIL = 3
"""Lines of a failed command in the message."""
ERROR = ("ERROR:", "error:", "fatal:")
"""Begins the lines of pip, uv and git that say why; with them, no other line is in the message."""
WARNING = ("WARNING:", "warning:", "[notice]")
"""Begins the lines that are in no message."""


class StartError(Exception):
    """Why the training cannot start, as its author reads it."""


def main(arguments: list[str]) -> int:
    """Prepare the node, and replace this process by the command."""
    began = time.time()
    options, command = arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :]
    try:
        prepare_once(options, began)
        become(command)
    except StartError as error:
        return fail(str(error))
    except (OSError, tarfile.TarError) as error:
        return fail(f"cannot prepare the code in {WORK}: {error}")
    return 0


def fail(message: str) -> int:
    """Say why the training does not start."""
    line = f"trainer: {message}"
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
    with contextlib.suppress(OSError):  # not in a container
        MESSAGE.write_text(line[:4096], encoding="utf-8")
    return 1


def prepare_once(options: list[str], began: float) -> None:
    """Do the work unless another process of this node has done it; one that failed while this one waited counts."""
    WORK.mkdir(parents=True, exist_ok=True)
    done, failed = WORK / "done", WORK / "failed"
    with (WORK / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.exists():
            return
        if failed.exists() and failed.stat().st_mtime >= began:
            raise StartError(failed.read_text(encoding="utf-8"))
        try:
            prepare(options)
        except StartError as error:
            failed.write_text(str(error), encoding="utf-8")
            raise
        done.touch()


def prepare(options: list[str]) -> None:
    """Fetch the code, and install what it requires."""
    for leftover in (CODE, PACKAGES):
        shutil.rmtree(leftover, ignore_errors=True)
    if options[:1] == ["--git"]:
        clone(*options[1:3])
    else:
        unpack()
    if (CODE / REQUIREMENTS).exists():
        install(REQUIREMENTS, REQUIREMENTS)
    elif options[:1] == ["--git"] and (stated := project_requirements()):
        STATED.write_text("".join(f"{each}\n" for each in stated), encoding="utf-8")
        install(str(STATED), f"the dependencies of {PROJECT}")


def project_requirements() -> list[str]:
    """The dependencies that the pyproject.toml of the code states."""
    file = CODE / PROJECT
    if not file.exists():
        return []
    try:
        import tomllib as toml  # noqa: PLC0415 - older images have none
    except ImportError:
        try:
            from pip._vendor import tomli as toml  # type: ignore[no-redef]  # noqa: PLC0415
        except ImportError:
            version = ".".join(map(str, sys.version_info[:2]))
            raise StartError(
                f"cannot read {PROJECT} with Python {version}: take an image with 3.11, or add a {REQUIREMENTS}"
            ) from None
    try:
        project = toml.loads(file.read_text(encoding="utf-8")).get("project", {})
    except ValueError as error:  # no TOML, or no UTF-8
        raise StartError(f"cannot read {PROJECT}: {error}") from None
    stated = project.get("dependencies", []) if isinstance(project, dict) else None
    if not isinstance(stated, list) or not all(isinstance(each, str) for each in stated):
        raise StartError(f"cannot install what {PROJECT} states: project.dependencies must be a list of requirements")
    return stated


def unpack() -> None:
    """Extract the code."""
    with tarfile.open(ARCHIVE) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(CODE, filter="data")
        else:  # Python before the security releases of 2023; the archive is the author's own
            archive.extractall(CODE)  # noqa: S202


def clone(url: str, commit: str) -> None:
    """Fetch one commit; where the server gives no single commits, everything."""
    if shutil.which("git") is None:
        raise StartError("the image has no git, which --code-from needs: take an image with git")
    CODE.mkdir(parents=True)
    git = ["git", "-C", str(CODE)]
    run([*git, "init", "--quiet"], f"prepare a repository for {url}")
    run([*git, "remote", "add", "origin", url], f"prepare a repository for {url}")
    fetch = [*git, "fetch", "--quiet", "origin"]
    if subprocess.run([*fetch, "--depth=1", commit], env=git_environment(), check=False).returncode:
        run(fetch, f"fetch {url}")
    run([*git, "checkout", "--quiet", "--detach", commit], f"check out {commit} of {url}")


def git_environment() -> dict[str, str]:
    """The environment of this process, with password prompts of git switched off."""
    return {**os.environ, "GIT_TERMINAL_PROMPT": "0"}


def install(requirements: str, what: str) -> None:
    """Install what the image lacks into a directory of its own: the image may be read-only, or somebody's laptop."""
    venv.create(str(PACKAGES), symlinks=True)
    present = [path for path in sys.path if path and Path(path).name in {"site-packages", "dist-packages"}]
    lines = [f"import site; site.addsitedir({path!r})\n" for path in present]
    (packages_in(PACKAGES) / "of_the_image.pth").write_text("".join(lines), encoding="utf-8")
    python = str(PACKAGES / "bin" / "python")
    uv = shutil.which("uv")
    if uv is not None and not prefers_pip(python):
        name, command = "uv", [uv, "pip", "install", "--python", python]
        stubs = stub_packages(present, packages_in(PACKAGES))
    elif has_module(python, "pip"):
        name, command = "pip", [python, "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
        stubs = []
    else:
        raise StartError(f"cannot install {what}: the image has neither uv nor pip; take one that has")
    try:
        run([*command, "-r", requirements], f"install {what} with {name}", directory=CODE)
    finally:
        for stub in stubs:
            shutil.rmtree(stub, ignore_errors=True)


def prefers_pip(python: str) -> bool:
    """Whether pip knows the indexes of this pod and uv does not."""
    of_pip = any(name in os.environ for name in PIP_SETTINGS) or Path("/etc/pip.conf").exists()
    of_uv = any(name.startswith("UV_") for name in os.environ) or Path("/etc/uv/uv.toml").exists()
    return of_pip and not of_uv and has_module(python, "pip")


def has_module(python: str, name: str) -> bool:
    """Whether an installation has a module."""
    check = [python, "-c", f"import {name}"]
    return subprocess.run(check, stderr=subprocess.DEVNULL, check=False).returncode == 0


def packages_in(directory: Path) -> Path:
    """The directory that an installation fills."""
    return next((directory / "lib").glob("python*/site-packages"))


def stub_packages(present: list[str], purelib: Path) -> list[Path]:
    """Show uv what the image has, which it would otherwise install again: it only looks into one directory.

    A stub is the description of a package, without files. uv replaces it if the requirements need another version.
    """
    stubs = []
    for directory in present:
        for metadata in Path(directory).glob("*.dist-info/METADATA"):
            stub = purelib / metadata.parent.name
            if stub.exists():  # two directories have it, the first one counts
                continue
            stub.mkdir()
            shutil.copy(str(metadata), str(stub))
            (stub / "INSTALLER").write_text("image\n", encoding="utf-8")
            names = [f"{stub.name}/{name},,\n" for name in ("METADATA", "INSTALLER", "RECORD")]
            (stub / "RECORD").write_text("".join(names), encoding="utf-8")
            stubs.append(stub)
    return stubs


def run(command: list[str], purpose: str, directory: Path | None = None) -> None:
    """Run a command with its output in the log; raises a StartError with the last lines when it fails."""
    tail: deque[str] = deque(maxlen=TAIL)
    errors: deque[str] = deque(maxlen=TAIL)
    with subprocess.Popen(
        command, cwd=directory, env=git_environment(), stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace",
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(SATISFIED):
                continue
            sys.stdout.write(line)
            sys.stdout.flush()
            if line.strip() and not line.startswith(WARNING):
                (errors if line.startswith(ERROR) else tail).append(line.strip())
    if process.returncode:
        raise StartError(f"cannot {purpose} (exit code {process.returncode}): {' '.join(errors or tail)}"[:2000])


def become(command: list[str]) -> None:
    """Replace this process by the command, in the directory of the code."""
    os.chdir(CODE)
    directories = [str(CODE)]
    if PACKAGES.exists():
        directories.append(str(packages_in(PACKAGES)))
        os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), str(PACKAGES / "bin")])
    own = [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
    os.environ["PYTHONPATH"] = os.pathsep.join([*directories, *own])
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    try:
        os.execvp(command[0], command)  # noqa: S606 - the command is the user's
    except FileNotFoundError:
        raise StartError(
            f"the image has no {command[0]}: take an image with it, or another runtime; "
            "a dev cluster has no images: install it in the environment that has trainer"
        ) from None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
