"""What tests do with a bucket of a running server, whatever it speaks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import obstore

if TYPE_CHECKING:
    from obstore.store import AzureStore, S3Store


class Bucket:
    """A bucket, or a container of Azure.

    Args:
        store: the bucket with all rights.
        environ: the variables with which an initializer reaches it.
    """

    def __init__(self, store: S3Store | AzureStore, environ: dict[str, str]) -> None:
        self._store = store
        self.environ = environ

    def put(self, key: str, content: bytes) -> None:
        obstore.put(self._store, key, content, use_multipart=False)

    def objects(self) -> dict[str, bytes]:
        """The objects in the bucket but the index of an export."""
        keys = sorted(self.versions())
        return {key: bytes(obstore.get(self._store, key).bytes()) for key in keys if ".trainer-index" not in key}

    def versions(self) -> dict[str, object]:
        """When each object was written."""
        return {str(found["path"]): found["last_modified"] for chunk in obstore.list(self._store) for found in chunk}

    def clear(self) -> None:
        for key in self.versions():
            obstore.delete(self._store, key)
