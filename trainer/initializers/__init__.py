"""Fetches datasets and models before a training and exports the model after it (KEP-2170).

A package of its own: it runs in its own image, imports nothing of the operator but the progress reporter, and needs
only the extra `initializers`. `python -m trainer.initializers dataset|model|export` is its interface; other schemes are
added by the entry point group `trainer.initializers`, with what this front door exports.
"""

from trainer.initializers.errors import InterruptedTransferError, TransferError, UnavailableSourceError
from trainer.initializers.file_store import Exporter, FileStore, LocalFile, RemoteFile
from trainer.initializers.options import TransferOptions
from trainer.initializers.shared_directory import path_of

__all__ = [
    "Exporter",
    "FileStore",
    "InterruptedTransferError",
    "LocalFile",
    "RemoteFile",
    "TransferError",
    "TransferOptions",
    "UnavailableSourceError",
    "path_of",
]
