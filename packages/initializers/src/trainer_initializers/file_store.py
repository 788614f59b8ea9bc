"""What a provider of a URI scheme offers, and which provider serves a URI."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import BinaryIO, Protocol, runtime_checkable

from trainer_initializers.errors import TransferError
from trainer_initializers.options import TransferOptions
from trainer_initializers.shared_directory import SharedDirectory

GROUP = "trainer.initializers"
"""Entry point group: the name is a scheme, the value a function from TransferOptions to a FileStore."""

_PROVIDERS = {
    "hf": "trainer_initializers.hub:open_hub",
    "s3": "trainer_initializers.object_store:open_s3",
    "gs": "trainer_initializers.object_store:open_gcs",
    "az": "trainer_initializers.object_store:open_azure",
    "https": "trainer_initializers.web:open_web",
    "http": "trainer_initializers.web:open_web",
    "pvc": "trainer_initializers.local:open_claim",
    "file": "trainer_initializers.local:open_file",
}
"""Imported when their scheme is used, so that each needs its own library only."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """One file of a dataset or model."""

    path: str
    """Relative to the directory that is fetched, with `/`."""
    size: int | None
    """Size in bytes; None if the server does not report it."""
    version: str
    """Changes whenever the content does, such as an ETag or a commit."""
    digest: str | None = None
    """`sha256:HEX`, or `git-blob:HEX` (SHA-1 of a Git object); None where the source has none."""
    is_ranged: bool = True
    """Whether a part of it can be read; else it is fetched in one piece, from the beginning after each interruption."""


@dataclass(frozen=True, slots=True)
class LocalFile:
    """One file that is exported."""

    path: str
    """Relative to the directory that is exported, with `/`."""
    size: int
    directory: SharedDirectory
    """The directory that is exported."""

    def open(self) -> BinaryIO:
        """Open it for reading; a library that wants a path takes `path_of` this file."""
        return self.directory.read_file(self.path, follow=True)


class FileStore(Protocol):
    """Where files are read from. Methods are called from several threads."""

    def files(self) -> Iterable[RemoteFile]:
        """The files that the options select.

        Raises:
            TransferError: there is no such thing, or no right to read it.
            InterruptedTransferError: the server does not answer now.
        """

    def read(self, file: RemoteFile, start: int, end: int | None) -> Iterator[bytes]:
        """The bytes from `start` up to and without `end`, or to the end of the file; raises as `files` does."""


@runtime_checkable
class Exporter(Protocol):
    """A FileStore that can be written."""

    def export(self, files: Sequence[LocalFile], report: Callable[[int], None]) -> int:
        """Write the changed files, report the transferred bytes, and return how many files were written."""


def open_store(options: TransferOptions) -> FileStore:
    """The storage of the URI.

    Raises:
        TransferError: no provider serves the scheme, or what it needs is missing.
    """
    scheme = options.location.scheme
    if scheme == "cache":
        raise TransferError(
            "cache:// is served by the data cache of Kubeflow Trainer (Go) only: use its image "
            "ghcr.io/kubeflow/trainer/dataset-initializer in the runtime, or name the files with s3:// or hf://"
        )
    if provider := _PROVIDERS.get(scheme):
        module, _, name = provider.partition(":")
        opened: Callable[[TransferOptions], FileStore] = getattr(_import(module, scheme), name)
        return opened(options)
    found = {point.name: point for point in entry_points(group=GROUP)}
    if scheme not in found:
        known = ", ".join(f"{name}://" for name in sorted({*_PROVIDERS, *found}))
        raise TransferError(f"STORAGE_URI {options.shown}: {scheme}:// is not supported: use one of {known}")
    plugin: Callable[[TransferOptions], FileStore] = found[scheme].load()
    return plugin(options)


def _import(module: str, scheme: str) -> object:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("trainer"):
            raise
        raise TransferError(
            f"{scheme}:// needs the package {error.name}: install trainer-operator[initializers]"
        ) from error
