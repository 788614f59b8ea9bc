"""Fetches datasets and models before a training and exports the model after it (KEP-2170).

It runs in its own image and imports nothing of the operator but the progress reporter.
`python -m trainer_initializers dataset|model|export` is its interface; other schemes are
added by the entry point group `trainer.initializers`, with what this front door exports.
"""

from trainer_initializers.errors import InterruptedTransferError, TransferError, UnavailableSourceError
from trainer_initializers.file_store import Exporter, FileStore, LocalFile, RemoteFile
from trainer_initializers.options import TransferOptions
from trainer_initializers.shared_directory import path_of

__version__ = "0.2.0"

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
