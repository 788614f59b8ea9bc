"""Code as a ConfigMap."""

from __future__ import annotations

import base64
import io
import os
import random
import re
import tarfile
from pathlib import Path

import pytest

from trainer.cli.errors import BadInputError
from trainer.cli.run.folder import files_of_folder
from trainer.cli.run.package import CodePackage, pack


def packed(folder: Path) -> CodePackage:
    return pack(files_of_folder(folder), folder)


def archive_of(package: CodePackage) -> tarfile.TarFile:
    content = base64.b64decode(package.config_map("demo", "team")["binaryData"]["code.tar.gz"])
    return tarfile.open(fileobj=io.BytesIO(content))


def test_config_map(tmp_path: Path) -> None:
    """It cannot be changed, is named by its content, and has the code and what unpacks it."""
    (tmp_path / "train.py").write_text("print(1)")
    (tmp_path / "run.sh").write_text("")
    (tmp_path / "run.sh").chmod(0o700)
    package = packed(tmp_path)

    config_map = package.config_map("demo", "team")

    assert config_map["immutable"] is True
    assert config_map["metadata"] == {"name": f"demo-code-{package.digest}", "namespace": "team"}
    assert "def main" in config_map["data"]["start.py"]
    with archive_of(package) as archive:
        assert {entry.name: oct(entry.mode) for entry in archive} == {"run.sh": "0o755", "train.py": "0o644"}
    assert package.description == "run.sh and train.py (8 bytes)"
    (tmp_path / "run.sh").write_text("echo\n" * 200)
    assert re.fullmatch(r"run.sh and train.py \(1008 bytes, \d+ bytes compressed\)", packed(tmp_path).description)


def test_digest(tmp_path: Path) -> None:
    """Times, owners and the umask do not count; content does."""
    script = tmp_path / "train.py"
    script.write_text("print(1)")
    first = packed(tmp_path).digest
    os.utime(script, (1, 1))
    script.chmod(0o600)
    assert packed(tmp_path).digest == first
    script.write_text("print(2)")
    assert packed(tmp_path).digest != first


def test_requirements_of_project(tmp_path: Path) -> None:
    """Dependencies of pyproject.toml travel as requirements.txt, which wins where both are."""
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["numpy>=2", "tqdm"]')
    with archive_of(packed(tmp_path)) as archive:
        member = archive.extractfile("requirements.txt")
        assert member is not None
        assert member.read() == b"numpy>=2\ntqdm\n"
    (tmp_path / "requirements.txt").write_text("torch")
    with archive_of(packed(tmp_path)) as archive:
        assert archive.getnames() == ["pyproject.toml", "requirements.txt"]


def test_too_large(tmp_path: Path) -> None:
    """What does not fit a ConfigMap when it is compressed is refused with its size and the largest files."""
    (tmp_path / "weights.bin").write_bytes(random.Random(0).randbytes(1024 * 1024))
    (tmp_path / "train.py").write_text("")
    with pytest.raises(BadInputError) as caught:
        packed(tmp_path)
    assert (
        "have 1.0 MiB, 1.0 MiB compressed; at most 900.0 KiB fit a ConfigMap; the largest files are weights.bin"
        in str(caught.value)
    )
    assert "--code-from git+https://" in str(caught.value)


def test_many_files(tmp_path: Path) -> None:
    """The description of many files stays one line."""
    for number in range(30):
        (tmp_path / f"{number:02}.py").write_text("")
    assert packed(tmp_path).description.startswith("00.py, 01.py, 02.py, 03.py, 04.py and 25 more files (0 bytes)")
