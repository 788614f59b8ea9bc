"""What an OCI archive says and holds."""

from __future__ import annotations

import io
import json
import os
import tarfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from hack.images.archive import Archive

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files their owners")


def layer(files: dict[str, str | None]) -> bytes:
    """A layer of files by path; None is a directory."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            if text is None:
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            else:
                entry.size = len(text)
            archive.addfile(entry, io.BytesIO((text or "").encode()))
    return content.getvalue()


def image(directory: Path, *layers: dict[str, str | None], **settings: Any) -> Archive:
    """An archive of an image."""
    files: dict[str, bytes] = {}

    def blob(content: bytes) -> dict[str, Any]:
        name = sha256(content).hexdigest()
        files[f"blobs/sha256/{name}"] = content
        return {"digest": f"sha256:{name}", "size": len(content)}

    configuration = blob(json.dumps({"config": settings}).encode())
    described = [blob(layer(each)) for each in layers]
    manifest = blob(json.dumps({"config": configuration, "layers": described}).encode())
    files["index.json"] = json.dumps({"manifests": [manifest]}).encode()
    with tarfile.open(directory / "image.oci.tar", "w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return Archive(directory / "image.oci.tar")


@pytest.mark.parametrize(
    ("layers", "files"),
    [
        pytest.param([{"a": "1"}], {"a": "1"}, id="one layer"),
        pytest.param([{"a": "1", "b": "2"}, {"a": "3"}], {"a": "3", "b": "2"}, id="replaced"),
        pytest.param([{"d": None, "d/a": "1", "d/b": "2"}, {"d/.wh.a": ""}], {"d/b": "2"}, id="removed"),
        pytest.param([{"d": None, "d/a": "1"}, {".wh.d": ""}], {}, id="removed directory"),
        pytest.param(
            [{"d": None, "d/a": "1"}, {"d": None, "d/.wh..wh..opq": "", "d/b": "2"}],
            {"d/b": "2"},
            id="hidden directory",
        ),
    ],
)
def test_unpack(tmp_path: Path, layers: list[dict[str, str | None]], files: dict[str, str]) -> None:
    """Layers lie on each other, and whiteouts remove what is below them."""
    root = tmp_path / "root"
    root.mkdir()
    image(tmp_path, *layers).unpack(root)
    found = {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}
    assert found == files


def test_settings(tmp_path: Path) -> None:
    """What is not said has the defaults of the image specification."""
    said = image(tmp_path, {}, Entrypoint=["trainer"], Env=["A=b=c"], User="1:1").settings()
    assert (said.entrypoint, said.command, said.environment) == (("trainer",), (), {"A": "b=c"})
    assert (said.user, said.directory, said.labels) == ("1:1", "/", {})
