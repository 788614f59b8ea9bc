"""What a script requires, by requirements.txt or pyproject.toml."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer.cli.errors import BadInputError
from trainer.cli.run.folder import files_of_folder, files_of_script
from trainer.cli.run.package import pack
from trainer.cli.run.requirements import (
    Requirements,
    included_files,
    project_requirements,
    unread_requirements,
)

INCLUDES = """\
-r more/base.txt  # shared
--constraint=constraints.txt
# -r comment.txt
-r https://example.com/other.txt
-c ${CONSTRAINTS}
torch
"""


def test_included(tmp_path: Path) -> None:
    """Files travel that requirements include, relative to the file that names them; URLs are the pod's business."""
    (tmp_path / "more").mkdir()
    for name, content in {
        "train.py": "",
        "requirements.txt": INCLUDES,
        "constraints.txt": "-r requirements.txt",
        "more/base.txt": "-r'local.txt'\n-c ../constraints.txt",
        "more/local.txt": "",
    }.items():
        (tmp_path / name).write_text(content)

    found = [file.name for file in files_of_script(tmp_path / "train.py", [])]

    assert found == ["constraints.txt", "more/base.txt", "more/local.txt", "requirements.txt", "train.py"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        pytest.param("-r missing.txt", "requirements.txt of .*, line 2: there is no file missing.txt", id="missing"),
        pytest.param("-c ../c.txt", r"line 2: \.\./c\.txt is not in the folder of the code", id="outside"),
        pytest.param("--constraint /etc/c.txt", "line 2: /etc/c.txt is not in the folder", id="absolute"),
    ],
)
def test_wrong_include(tmp_path: Path, line: str, problem: str) -> None:
    """A file that cannot travel is named with its line."""
    (tmp_path / "requirements.txt").write_text(f"torch\n{line}\n")
    with pytest.raises(BadInputError, match=problem):
        included_files(tmp_path)


def test_ignored_include(tmp_path: Path) -> None:
    """A folder whose ignored file is needed in the pod is not packed."""
    (tmp_path / "requirements.txt").write_text("-c constraints.txt")
    (tmp_path / "constraints.txt").write_text("")
    (tmp_path / ".trainerignore").write_text("constraints.txt")
    with pytest.raises(BadInputError, match=r"constraints\.txt, which requirements\.txt includes, is ignored"):
        pack(files_of_folder(tmp_path), tmp_path)


@pytest.mark.parametrize(
    ("content", "stated"),
    [
        pytest.param('[project]\ndependencies = ["numpy>=2"]', ["numpy>=2"], id="stated"),
        pytest.param("[tool.ruff]", [], id="only tools"),
        pytest.param("[project]\nname = 'x'", [], id="none"),
    ],
)
def test_project_requirements(tmp_path: Path, content: str, stated: list[str]) -> None:
    """The dependencies of pyproject.toml are requirements."""
    (tmp_path / "pyproject.toml").write_text(content)
    assert project_requirements(tmp_path) == stated


@pytest.mark.parametrize("content", ["[project", "[project]\ndependencies = 3", "project = 1", "\0"])
def test_wrong_project(tmp_path: Path, content: str) -> None:
    """A pyproject.toml that says nothing clear is refused by its name."""
    (tmp_path / "pyproject.toml").write_text(content)
    with pytest.raises(BadInputError, match=r"pyproject\.toml: "):
        project_requirements(tmp_path)


@pytest.mark.parametrize(
    ("content", "table"),
    [
        pytest.param('[project]\ndynamic = ["dependencies"]', "project.dynamic", id="dynamic"),
        pytest.param('[tool.poetry.dependencies]\npython = "3"\ntorch = "2"', "tool.poetry.dependencies", id="poetry"),
        pytest.param('[project]\ndependencies = ["a"]\n[tool.poetry.dependencies]\nb = "1"', "", id="both"),
        pytest.param("project = 1\ntool = 2", "", id="no tables"),
    ],
)
def test_unread_requirements(tmp_path: Path, content: str, table: str) -> None:
    """Dependencies that a build tool would have to be run for are found, to be warned of."""
    (tmp_path / "pyproject.toml").write_text(content)
    assert unread_requirements(tmp_path) == table


def test_required_packages(tmp_path: Path) -> None:
    """Names of packages are those of requirements.txt and what it includes, else of pyproject.toml."""
    found = Requirements.of_folder(tmp_path)
    assert (found.names, found.file) == (set(), None)
    (tmp_path / "pyproject.toml").write_text("[project]\ndependencies = [\"Torch>=2; python_version>'3'\"]")
    found = Requirements.of_folder(tmp_path)
    assert (found.names, found.packages, found.file) == ({"torch"}, [], None)
    file = tmp_path / "requirements.txt"
    file.write_text(
        "-r more.txt\n-c limits.txt\nTransformers[torch] @ https://x # a\n# b\ngit+https://x/y\n-e .\n./z\n"
    )
    (tmp_path / "more.txt").write_text("  ruamel.yaml==1\nnumpy ; python_version < '3'\n")
    (tmp_path / "limits.txt").write_text("other<2\n")
    found = Requirements.of_folder(tmp_path)
    assert found.names == {"transformers", "ruamel-yaml", "numpy"}
    assert (found.packages, found.file) == (["transformers", "ruamel-yaml"], file)


@pytest.mark.parametrize("line", ["--index-url https://x", "-i https://x", "  --find-links=wheels", "--no-index"])
def test_chosen_index(line: str) -> None:
    """A line may say where packages are found."""
    assert Requirements(("torch", line)).chooses_index
    assert not Requirements(("torch", "-r more.txt")).chooses_index
