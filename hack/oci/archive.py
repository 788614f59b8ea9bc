"""Archives of images in the layout of OCI."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Final

INDEX: Final = "application/vnd.oci.image.index.v1+json"
MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
_LAYOUT: Final = b'{"imageLayoutVersion": "1.0.0"}'


class ArchiveError(RuntimeError):
    """An archive is missing, or is not what is said of it; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive that is open for reading, of whatever size."""

    file: tarfile.TarFile

    def entries(self) -> list[dict[str, Any]]:
        """Give the descriptors of what it holds."""
        entries: list[dict[str, Any]] = json.loads(self._member("index.json").read())["manifests"]
        return entries

    def manifests(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give digest and content of the manifest for each platform."""
        yield from self._manifests(self.entries())

    def document(self, digest: str) -> dict[str, Any]:
        """Give a manifest, an index or a configuration."""
        document: dict[str, Any] = json.loads(self.blob(digest).read())
        return document

    def blob(self, digest: str) -> IO[bytes]:
        """Give any blob, such as a layer."""
        return self._member(blob_name(digest))

    def blobs(self) -> dict[str, bytes]:
        """Give all blobs by the names of their files.

        Raises:
            ArchiveError: one has another content than its name says.
        """
        blobs = {name: self._member(name).read() for name in self.file.getnames() if name.startswith("blobs/sha256/")}
        for name, data in blobs.items():
            if blob_name(digest_of(data)) != name:
                raise ArchiveError(f"{self.file.name} is damaged: {name} has another content")
        return blobs

    def _manifests(self, entries: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
        for entry in entries:
            document = self.document(entry["digest"])
            if "manifests" in document:
                yield from self._manifests(document["manifests"])
            else:
                yield entry["digest"], document

    def _member(self, name: str) -> IO[bytes]:
        try:
            stream = self.file.extractfile(name)
        except KeyError:
            stream = None
        if stream is None:
            raise ArchiveError(f"{self.file.name} is no archive of an OCI image: it has no file {name}")
        return stream


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """Open an archive.

    Raises:
        ArchiveError: it is none, or what is asked of it within the context is not in it or cut.
    """
    try:
        with tarfile.open(path) as file:
            yield Archive(file)
    except (EOFError, KeyError, OSError, TypeError, ValueError, tarfile.TarError) as error:
        raise ArchiveError(f"{path} is no archive of an OCI image: {error!r}") from error


def write(entry: Mapping[str, Any], blobs: Mapping[str, bytes], archive: Path) -> None:
    """Write an archive, which is the same for the same blobs.

    Args:
        entry: the descriptor of what it holds, a manifest or an index.
        blobs: by the names of their files; that of `entry` is one of them.
        archive: the file.
    """
    top = {"schemaVersion": 2, "manifests": [entry]}
    content = {"oci-layout": _LAYOUT, "index.json": json_of(top), **blobs}
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as opened:
        for name in sorted(content):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content[name]), 0o644
            opened.addfile(member, io.BytesIO(content[name]))


def archive_of(archive: Path, config: tuple[str, bytes], layers: Iterable[tuple[str, bytes]]) -> str:
    """Write an archive of one manifest, and give the digest of that.

    Args:
        archive: the file.
        config: its media type and content.
        layers: media type and content of each.
    """
    blobs: dict[str, bytes] = {}

    def add(kind: str, data: bytes) -> dict[str, Any]:
        digest = digest_of(data)
        blobs[blob_name(digest)] = data
        return {"mediaType": kind, "digest": digest, "size": len(data)}

    parts = {"config": add(*config), "layers": [add(*layer) for layer in layers]}
    manifest = add(MANIFEST, json_of({"schemaVersion": 2, "mediaType": MANIFEST, **parts}))
    write(manifest, blobs, archive)
    digest: str = manifest["digest"]
    return digest


def json_of(value: object) -> bytes:
    """Give the bytes of a document, the same ones for the same value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def digest_of(data: bytes) -> str:
    """Give the digest by which a blob is named."""
    return f"sha256:{sha256(data).hexdigest()}"


def blob_name(digest: str) -> str:
    """Give the name of a blob's file."""
    return f"blobs/{digest.replace(':', '/')}"
