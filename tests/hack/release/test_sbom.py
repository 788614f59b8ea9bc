"""Bills of materials of wheels and images."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from hack.oci.listing import Image
from hack.release import sbom
from hack.release.settings import Release

RELEASE = Release("1.2.3", "c" * 40, 1_700_000_000, registry="ghcr.io/o")
HASH = "ab" * 32
DPKG = """\
Package: zlib1g
Status: install ok installed
Architecture: amd64
Version: 1:1.2

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1
"""
METADATA = "Metadata-Version: 2.4\nName: msgspec\nVersion: 0.20.0\nLicense-Expression: BSD-3-Clause\n"
LOCK = {
    "packages": {
        "": {},
        "node_modules/@a/b": {"version": "1.0.0", "integrity": f"sha512-{'q6ur' * 21}qw==", "license": "MIT"},
        "node_modules/tool": {"version": "2.0.0", "dev": True},
    }
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Of a commit: what is pinned, and what the page is made of."""
    tree = tmp_path / "tree"
    for name, text in {
        "constraints.txt": f"aiohttp=={version('aiohttp')}\nmsgspec=={version('msgspec')}\n",
        "images/manager/requirements.txt": f"msgspec==0.20.0 \\\n    --hash=sha256:{HASH}\n",
        "packages/dashboard/web/package-lock.json": json.dumps(LOCK),
    }.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    return tree


def wheel(folder: Path, name: str, *requires: str) -> Path:
    """A wheel with nothing in it but metadata."""
    path = folder / f"{name.replace('-', '_')}-1.2.3-py3-none-any.whl"
    metadata = f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.2.3\nLicense-Expression: Apache-2.0\n"
    with zipfile.ZipFile(path, "w") as archive:
        place = f"{path.name.removesuffix('-py3-none-any.whl')}.dist-info/METADATA"
        archive.writestr(place, metadata + "".join(f"Requires-Dist: {each}\n" for each in requires))
    return path


def written(tree: Path, output: Path, wheels: Iterable[Path] = (), images: Iterable[Image] = ()) -> dict[str, Any]:
    """The only bill that is written."""
    output.mkdir()
    (path,) = sbom.write(RELEASE, tree, wheels, images, output)
    bill: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return bill


def components(bill: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """By their purl."""
    return {each["purl"]: each for each in bill["components"]}


def test_wheel(tree: Path, tmp_path: Path) -> None:
    """It names the file by its hash, all that it requires in the pinned version, and what its page is made of."""
    built = wheel(tmp_path, "trainer-dashboard", "msgspec>=0.20", 'pyarrow; extra == "parquet"')
    bill = written(tree, tmp_path / "bills", [built])

    subject = bill["metadata"]["component"]
    assert subject["purl"] == "pkg:pypi/trainer-dashboard@1.2.3"
    assert subject["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(built.read_bytes()).hexdigest()}]
    assert subject["licenses"] == [{"license": {"id": "Apache-2.0"}}]
    assert bill["metadata"]["timestamp"] == "2023-11-14T22:13:20+00:00"
    found = components(bill)
    requirement = f"pkg:pypi/msgspec@{version('msgspec')}"
    assert found.keys() == {requirement, "pkg:npm/%40a/b@1.0.0"}
    assert found["pkg:npm/%40a/b@1.0.0"]["hashes"] == [{"alg": "SHA-512", "content": "ab" * 64}]
    depends = {each["ref"]: each.get("dependsOn", []) for each in bill["dependencies"]}
    assert requirement in depends[subject["bom-ref"]]


def test_the_same_twice(tree: Path, tmp_path: Path) -> None:
    """A wheel has one bill, its serial number included."""
    built = wheel(tmp_path, "trainer-operator", "msgspec")
    assert written(tree, tmp_path / "first", [built]) == written(tree, tmp_path / "second", [built])


def test_requirement_without_a_pin(tree: Path, tmp_path: Path) -> None:
    """What is installed in another version than the pinned one is not what was tested."""
    built = wheel(tmp_path, "trainer-operator", "anyio")
    with pytest.raises(ValueError, match=r"anyio .* is installed, the version of constraints\.txt is none"):
        written(tree, tmp_path / "bills", [built])


def test_image(tree: Path, tmp_path: Path) -> None:
    """It names packages of Debian and Python with their licences, as the last layer has them."""
    first = {
        "var/lib/dpkg/status": DPKG,
        "usr/lib/os-release": 'ID=debian\nVERSION_ID="12"\n',
        "usr/share/doc/zlib1g/copyright": "Files: *\nLicense: Zlib\n",
        "usr/lib/python3/dist-packages/pip-1.dist-info/METADATA": "Name: pip\nVersion: 1\n",
        "opt/x/msgspec-0.20.0.dist-info/METADATA": METADATA,
    }
    second = {"usr/lib/python3/dist-packages/.wh.pip-1.dist-info": ""}
    image = archive_of(tmp_path / "a.oci.tar", [first, second])
    bill = written(tree, tmp_path / "bills", images=[image])

    assert (tmp_path / "bills" / "trainer-operator-1.2.3-linux-amd64.cdx.json").exists()
    found = components(bill)
    assert found.keys() == {"pkg:deb/debian/zlib1g@1:1.2?arch=amd64&distro=debian-12", "pkg:pypi/msgspec@0.20.0"}
    library, package = found.values()
    assert package["licenses"] == [{"license": {"name": "Zlib"}}]
    assert library["externalReferences"][0]["hashes"] == [{"alg": "SHA-256", "content": HASH}]
    assert bill["metadata"]["component"]["hashes"][0]["content"] == image.digest.removeprefix("sha256:")


def archive_of(path: Path, layers: Iterable[Mapping[str, str]]) -> Image:
    """An image of some files, layer by layer."""
    blobs: dict[str, bytes] = {}

    def blob(content: bytes) -> dict[str, str]:
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"digest": f"sha256:{digest}"}

    configuration = {"os": "linux", "architecture": "amd64", "config": {}}
    manifest = {
        "config": blob(json.dumps(configuration).encode()),
        "layers": [blob(gzip.compress(tar_of(encoded(layer)))) for layer in layers],
    }
    top = blob(json.dumps(manifest).encode())
    path.write_bytes(tar_of({"index.json": json.dumps({"manifests": [top]}).encode(), **blobs}))
    return Image("trainer-operator", "trainer-operator:1.2.3", top["digest"], path)


def tar_of(files: Mapping[str, bytes]) -> bytes:
    """A tar archive."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return target.getvalue()


def encoded(files: Mapping[str, str]) -> dict[str, bytes]:
    """The texts of files as bytes."""
    return {name: text.encode() for name, text in files.items()}
