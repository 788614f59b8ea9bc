"""What is installed in an image: packages of Debian and of Python, read from its OCI archive."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email import message_from_bytes
from email.message import Message
from pathlib import Path, PurePosixPath
from typing import Any

from hack.oci.archive import Archive, opened

_READ = re.compile(
    r"var/lib/dpkg/status(\.d/[^/]+)?|usr/share/doc/[^/]+/copyright|.+\.dist-info/METADATA|usr/lib/os-release"
)
_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
_LICENCE = re.compile(r"^License: *(\S.*?) *$", re.MULTILINE)


@dataclass(frozen=True)
class Debian:
    """A package of Debian."""

    name: str
    version: str
    architecture: str
    licences: tuple[str, ...]
    """Short names of its copyright file; none where that is written for people alone."""


@dataclass(frozen=True)
class Contents:
    """What an image has for one platform."""

    platform: str
    """Such as linux/amd64."""
    digest: str
    """Of the manifest."""
    distribution: str
    """As PURLs name it, such as debian-12; empty where the image does not say."""
    debian: tuple[Debian, ...]
    python: tuple[Message, ...]
    """Metadata of distributions."""
    interpreter: str
    """Version of a Python that is no package of Debian, as the images of Docker's library have it; or empty."""


def contents(archive: Path) -> Iterator[Contents]:
    """Read an archive, for each of its platforms.

    Raises:
        ArchiveError: it is no OCI archive.
    """
    with opened(archive) as image:
        for digest, manifest in image.manifests():
            yield _contents(image, digest, manifest)


def _contents(archive: Archive, digest: str, manifest: Mapping[str, Any]) -> Contents:
    image = archive.document(manifest["config"]["digest"])
    files = _files(archive, [layer["digest"] for layer in manifest["layers"]])
    variables = dict(each.split("=", 1) for each in image["config"].get("Env", ()))
    system = files.get("usr/lib/os-release", b"").decode()
    release = dict(re.findall(r'^(ID|VERSION_ID)="?([^"\n]+)', system, re.MULTILINE))
    python = [message_from_bytes(files[name]) for name in sorted(files) if name.endswith("/METADATA")]
    return Contents(
        f"{image['os']}/{image['architecture']}",
        digest,
        "-".join(release[key] for key in ("ID", "VERSION_ID") if key in release),
        tuple(sorted(_debian(files), key=lambda package: package.name)),
        tuple(sorted(python, key=lambda metadata: str(metadata["Name"]).lower())),
        variables.get("PYTHON_VERSION", ""),
    )


def _files(archive: Archive, layers: list[str]) -> dict[str, bytes]:
    """Read the files that matter, as the layers upon each other have them."""
    found: dict[str, bytes] = {}
    for digest in layers:
        added: dict[str, bytes] = {}
        with tarfile.open(fileobj=archive.blob(digest)) as layer:
            for member in layer:
                path = PurePosixPath(member.name.removeprefix("./").lstrip("/"))
                if path.name.startswith(_WHITEOUT):
                    gone = path.parent if path.name == _OPAQUE else path.with_name(path.name.removeprefix(_WHITEOUT))
                    found = {name: text for name, text in found.items() if not PurePosixPath(name).is_relative_to(gone)}
                elif member.isfile() and _READ.fullmatch(str(path)):
                    content = layer.extractfile(member)
                    added[str(path)] = content.read() if content is not None else b""
        found |= added
    return found


def _debian(files: dict[str, bytes]) -> Iterator[Debian]:
    for name, text in files.items():
        if not name.startswith("var/lib/dpkg/status") or name.endswith(".md5sums"):
            continue
        for paragraph in text.decode().split("\n\n"):
            fields = dict(re.findall(r"^(Package|Version|Architecture|Status): (.+)$", paragraph, re.MULTILINE))
            if "Package" not in fields or "deinstall" in fields.get("Status", ""):
                continue
            copyright_text = files.get(f"usr/share/doc/{fields['Package']}/copyright", b"").decode("utf-8", "replace")
            licences = tuple(sorted(set(_LICENCE.findall(copyright_text))))
            yield Debian(fields["Package"], fields["Version"], fields["Architecture"], licences)
