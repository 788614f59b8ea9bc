"""The files that travel with a script."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from trainer.cli.errors import BadInputError
from trainer.cli.run import folder as folder_module
from trainer.cli.run.folder import files_of_folder, files_of_script, likely_secrets

if TYPE_CHECKING:
    from pathlib import Path


def write(folder: Path, **contents: str) -> None:
    """Write files; `__` in a name is a slash and `_DOT_` a dot."""
    for name, content in contents.items():
        file = folder / name.replace("__", "/").replace("_DOT_", ".")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)


def names(folder: Path) -> list[str]:
    return [file.name for file in files_of_folder(folder)]


def test_ignored(tmp_path: Path) -> None:
    """Rules of .trainerignore, of git at every level, and what tools make stay behind; ! takes something back."""
    write(
        tmp_path,
        _DOT_git__config="",
        _DOT_git__info__exclude="*.private",
        project__notes_DOT_private="",
        _DOT_gitignore="*.log\n/secret/\nkept.bin\n",
        project__train_DOT_py="",
        project__a_DOT_log="",
        project__data__big_DOT_csv="",
        project__data__small_DOT_csv="",
        project__secret__key="",
        project____pycache____train_DOT_pyc="",
        project__kept_DOT_bin="",
        project__venv__pyvenv_DOT_cfg="",
        project__sub__x_DOT_tmp="",
        project__sub___DOT_gitignore="*.tmp",
        project___DOT_trainerignore="data/*\n!data/small.csv\n!kept.bin\n",
    )

    assert names(tmp_path / "project") == ["data/small.csv", "kept.bin", "secret/key", "train.py"]


def test_without_repository(tmp_path: Path) -> None:
    """Above a folder that is in no repository nothing counts."""
    write(tmp_path, _DOT_gitignore="*", project__train_DOT_py="")
    assert names(tmp_path / "project") == ["train.py"]


def test_script_that_is_a_link(tmp_path: Path) -> None:
    """What it points at is not packed, so that the file itself travels."""
    write(tmp_path, src__train_DOT_py="print()")
    (tmp_path / "train.py").symlink_to("src/train.py")
    (packed,) = files_of_script(tmp_path / "train.py", [])
    assert (packed.name, packed.link, packed.size) == ("train.py", "", 7)


@pytest.mark.parametrize("pattern", ["!", "\\"])
def test_wrong_pattern(tmp_path: Path, pattern: str) -> None:
    """The message names the file and the line."""
    write(tmp_path, _DOT_trainerignore=f"*.log\n{pattern}\n")
    with pytest.raises(BadInputError, match=r"\.trainerignore: line 2: .* is no pattern of \.gitignore"):
        files_of_folder(tmp_path)


def test_ignore_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the file."""
    write(tmp_path, _DOT_trainerignore="")

    def read_text(path: Path, **_options: str) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(type(tmp_path), "read_text", read_text)
    with pytest.raises(BadInputError, match=r"\.trainerignore cannot be read: Permission denied"):
        files_of_folder(tmp_path)


def test_script_alone(tmp_path: Path) -> None:
    """A script travels with the modules that it imports and its requirements, and nothing else."""
    write(tmp_path, train_DOT_py="", model_DOT_py="", lib__a_DOT_py="", data_DOT_csv="", requirements_DOT_txt="")
    found = files_of_script(tmp_path / "train.py", [tmp_path / "model.py", tmp_path / "lib"])
    assert [file.name for file in found] == ["lib/a.py", "model.py", "requirements.txt", "train.py"]


def test_links(tmp_path: Path) -> None:
    """A link into the folder stays a link, relative to its own place."""
    write(tmp_path, data__a_DOT_txt="a", sub__b_DOT_txt="b")
    (tmp_path / "sub" / "link").symlink_to(tmp_path / "data")
    links = {file.name: file.link for file in files_of_folder(tmp_path)}
    assert links == {"data/a.txt": "", "sub/b.txt": "", "sub/link": "../data"}


@pytest.mark.parametrize("target", ["runs/42/best.pt", "latest.log"])
def test_link_to_what_is_ignored(tmp_path: Path, target: str) -> None:
    """A link to an ignored file travels as it is, whether the file is there or not."""
    write(tmp_path, _DOT_gitignore="*.log\n/runs/\n", train_DOT_py="")
    (tmp_path / "link").symlink_to(target)
    assert {file.name: file.link for file in files_of_folder(tmp_path)} == {"link": target, "train.py": ""}


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        pytest.param("/etc/passwd", "is a symbolic link that leaves the folder", id="absolute"),
        pytest.param("../outside", "is a symbolic link that leaves the folder", id="relative"),
        pytest.param("missing", "is a symbolic link to nothing", id="broken"),
        pytest.param("link", "cannot be read", id="circle"),
    ],
)
def test_refused_links(tmp_path: Path, target: str, problem: str) -> None:
    """A link that could not be followed on a node is refused, unless it is ignored."""
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "outside").write_text("")
    (project / "link").symlink_to(target)

    with pytest.raises(BadInputError, match=problem):
        files_of_folder(project)

    (project / ".trainerignore").write_text("link")
    assert names(project) == []


def test_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be read is named, with the remedy."""
    write(tmp_path, train_DOT_py="", locked="")
    readable = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: "locked" not in str(path) and readable(path, mode))
    with pytest.raises(BadInputError, match=r"locked of .* cannot be read: Permission denied: make it readable"):
        files_of_folder(tmp_path)


def test_special_files(tmp_path: Path) -> None:
    """A pipe has no content that could travel."""
    write(tmp_path, train_DOT_py="")
    os.mkfifo(tmp_path / "pipe")
    assert names(tmp_path) == ["train.py"]


def test_too_large(tmp_path: Path) -> None:
    """A folder that never fits is refused before it is read, with its largest files."""
    write(tmp_path, train_DOT_py="x")
    with (tmp_path / "weights.bin").open("wb") as file:
        file.truncate(65 * 1024 * 1024)
    with pytest.raises(BadInputError) as caught:
        files_of_folder(tmp_path)
    assert "at most 64.0 MiB are packed; the largest files are weights.bin (65.0 MiB), train.py (1 bytes)" in str(
        caught.value
    )
    assert ".trainerignore" in str(caught.value)


def test_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home directory is left after its first files."""
    monkeypatch.setattr(folder_module, "MOST_FILES", 2)
    write(tmp_path, a="", b="", c="", d="")
    with pytest.raises(BadInputError, match="has more than 2 files"):
        files_of_folder(tmp_path)


def test_likely_secrets(tmp_path: Path) -> None:
    """Files that often hold passwords are found by their names."""
    write(tmp_path, _DOT_env="", keys__tls_DOT_key="", train_DOT_py="")
    assert likely_secrets(files_of_folder(tmp_path)) == [".env", "keys/tls.key"]
