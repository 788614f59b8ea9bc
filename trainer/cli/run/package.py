"""The code of a script as one compressed archive, and the ConfigMap that has it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import MappingProxyType

from trainer.cli.console import printable, size
from trainer.cli.errors import BadInputError
from trainer.cli.run.folder import PackedFile, too_large
from trainer.cli.run.requirements import REQUIREMENTS, included_files, project_requirements
from trainer.kube.objects import Object, ObjectKey, key_of, mapping_at
from trainer.kube.resource import CONFIG_MAPS

START, ARCHIVE = "start.py", "code.tar.gz"
"""Keys of the ConfigMap."""
MOST_COMPRESSED = 900 * 1024
"""Bytes; with start.py and its metadata a ConfigMap of this size is accepted everywhere (1 MiB)."""
_NAMED = 5
"""Files that are named when a package is described."""
_INFIX, _HASH = "-code-", 10
"""What joins the parts of the ConfigMap's name, and the digits of the digest in it."""


@dataclass(frozen=True, slots=True)
class CodePackage:
    """The code that is sent to the nodes."""

    data: dict[str, str]
    binary: dict[str, bytes]
    description: str
    """Names and sizes of the files, such as `train.py and requirements.txt (2.1 KiB, 1.0 KiB compressed)`."""

    @property
    def digest(self) -> str:
        """Digest of the content, so that other code has another name."""
        digest = hashlib.sha256()
        for key, value in sorted({**self.binary, **{key: text.encode() for key, text in self.data.items()}}.items()):
            digest.update(f"{key} {len(value)} ".encode())
            digest.update(value)
        return digest.hexdigest()[:_HASH]

    def config_map(self, train_job: str, namespace: str) -> Object:
        """The ConfigMap of a TrainJob, which cannot be changed, with a name that follows from its content."""
        encoded = {key: base64.b64encode(value).decode("ascii") for key, value in self.binary.items()}
        return {
            "apiVersion": CONFIG_MAPS.api_version,
            "kind": CONFIG_MAPS.kind,
            "metadata": {"name": self.config_map_name(train_job), "namespace": namespace},
            "immutable": True,
            "data": self.data,
            **({"binaryData": encoded} if encoded else {}),
        }

    def config_map_name(self, train_job: str) -> str:
        """The name of `config_map`."""
        return f"{train_job}{_INFIX}{self.digest}"


def is_code_of(config_map: Object, train_job: ObjectKey) -> bool:
    """Whether it is a ConfigMap that was made for a TrainJob of this name."""
    namespace, name = key_of(config_map)
    stem, _, digest = name.rpartition(_INFIX)
    is_made_here = config_map.get("immutable") is True and START in mapping_at(config_map, "data")
    return is_made_here and (namespace, stem) == train_job and len(digest) == _HASH


def pack(
    files: Sequence[PackedFile],
    folder: Path,
    additions: Mapping[str, bytes] = MappingProxyType({}),
    *,
    reads_project: bool = True,
) -> CodePackage:
    """Compress files; times, owners and the umask do not count.

    Args:
        files: of the folder.
        folder: whose pyproject.toml states the requirements if there is no requirements.txt.
        additions: files that are not in the folder, by name. Default: none.
        reads_project: whether the requirements of pyproject.toml count. Default: yes.

    Raises:
        BadInputError: they do not fit, or one of them cannot be read.
    """
    names, added = [file.name for file in files], dict(additions)
    if reads_project and REQUIREMENTS not in names and (stated := project_requirements(folder)):
        added[REQUIREMENTS] = "".join(f"{each}\n" for each in stated).encode()
    packed = set(names)
    if REQUIREMENTS in packed and (lost := [name for name in included_files(folder) if name not in packed]):
        raise BadInputError(f"{printable(lost[0])}, which {REQUIREMENTS} includes, is ignored: it must travel")
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as zipped, tarfile.open(fileobj=zipped, mode="w") as archive:
        for file in files:
            _add(archive, file)
        for name, content in sorted(added.items()):
            archive.addfile(_entry(name, len(content), 0o644), io.BytesIO(content))
    total, compressed = sum(file.size for file in files) + sum(map(len, added.values())), buffer.getvalue()
    amount = f"{size(total)}, {size(len(compressed))} compressed"
    # A short script is shorter than the archive that holds it.
    shown = amount if len(compressed) < total else size(total)
    description = f"{_listed(sorted({*names, *added}))} ({shown})"
    if len(compressed) > MOST_COMPRESSED:
        problem = f"the {len(files)} files of {folder} have {amount}; at most {size(MOST_COMPRESSED)} fit a ConfigMap"
        raise too_large(files, problem)
    return CodePackage({START: start_program()}, {ARCHIVE: compressed}, description)


def start_program() -> str:
    """The program that unpacks the code in a container."""
    return resources.files(__package__).joinpath(START).read_text("utf-8")


def _add(archive: tarfile.TarFile, file: PackedFile) -> None:
    entry = _entry(file.name, file.size, file.mode)
    if file.link:
        entry.type, entry.linkname = tarfile.SYMTYPE, file.link
        archive.addfile(entry)
        return
    try:
        content = file.path.read_bytes()
    except OSError as error:
        raise BadInputError(f"{printable(str(file.path))}: {error.strerror}") from None
    entry.size = len(content)  # it may have grown since
    archive.addfile(entry, io.BytesIO(content))


def _entry(name: str, length: int, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = length, mode
    return entry


def _listed(names: Sequence[str]) -> str:
    shown = [printable(name) for name in names[:_NAMED]]
    rest = len(names) - len(shown)
    if rest:
        return f"{', '.join(shown)} and {rest} more files"
    return " and ".join(part for part in (", ".join(shown[:-1]), shown[-1]) if part)
