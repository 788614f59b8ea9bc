"""What a requirements.txt includes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trainer.cli.errors import BadInputError
from trainer.cli.run.folder import files_of_folder, files_of_script
from trainer.cli.run.package import pack
from trainer.cli.run.requirements import included_files

if TYPE_CHECKING:
    from pathlib import Path

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
