"""`s3://` (and what speaks S3: ENDPOINT), `gs://` and `az://`, by obstore.

obstore is the Rust crate object_store in one wheel of 6 MB without dependencies. It signs, lists and uploads in parts
for all three, and moves bytes without Python's lock. The fsspec family would bring botocore, google-auth and Azure's
SDK (over 100 MB), of which botocore cannot be installed beside the client of Kubernetes. docs/initializers.md has
figures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

import obstore
from obstore.exceptions import BaseError, NotFoundError
from obstore.store import AzureStore, GCSStore, S3Store

from trainer_initializers.endpoints import endpoint_of
from trainer_initializers.errors import TransferError
from trainer_initializers.file_names import INDEX_NAME
from trainer_initializers.file_store import LocalFile, RemoteFile
from trainer_initializers.index import SIZE_LIMIT, FileIndex, digest_of
from trainer_initializers.object_errors import translate, translate_configuration
from trainer_initializers.options import TransferOptions
from trainer_initializers.shared_directory import path_of

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

_CHUNK = 1 << 20
_UPLOADS = 3
"""Files at the same time, of `_UPLOAD_PARTS` parts each: 96 MiB are in memory at most."""
_UPLOAD_PARTS = 4
_UPLOAD_PART_SIZE = 8 << 20
_BUCKET = re.compile(r"[A-Za-z0-9$][A-Za-z0-9._-]{0,221}")
_REGION = re.compile(r"[A-Za-z0-9-]{1,63}")
_PARTS_LIMIT = 9000
"""S3 takes 10,000 parts of one file."""


class ObjectStore:
    """The objects below a prefix of a bucket, or one object."""

    def __init__(self, store: S3Store | GCSStore | AzureStore, options: TransferOptions) -> None:
        self._store, self._options = store, options
        self._prefix, self._pattern = _prefix(unquote(options.location.path).strip("/"))
        self._keys: dict[str, str] = {}

    def files(self) -> Iterator[RemoteFile]:
        """The objects that are selected, with the digests of an index that was exported with them."""
        objects = self._list()
        if not objects and self._prefix:
            with self._errors():
                objects = [obstore.head(self._store, self._prefix)]
        names = [found["path"] for found in objects]
        known = self._index(names)
        directories = {name.rsplit("/", 1)[0] for name in names if "/" in name}
        for found in objects:
            key, size = str(found["path"]), int(found["size"])
            path = self._relative(key)
            if (
                path.rpartition("/")[2] == INDEX_NAME
                or (not size and key in directories)
                or not self._selects(path, key)
            ):
                continue
            version = _etag(found.get("e_tag")) or f"{found['last_modified'].isoformat()}-{size}"
            indexed = known.get(path)
            digest = indexed.digest if indexed is not None and indexed.version == version else None
            self._keys[path] = key
            yield RemoteFile(path, size, version, digest)

    def read(self, file: RemoteFile, start: int, end: int | None) -> Iterator[bytes]:
        """The bytes of the range, of the version that was listed."""
        options: obstore.GetOptions = {"range": (start, file.size or 0 if end is None else end)}
        if file.version.startswith('"'):
            options["if_match"] = file.version
        with self._errors():
            answer = obstore.get(self._store, self._keys[file.path], options=options)
            for data in answer.stream(min_chunk_size=_CHUNK):
                yield bytes(data)

    def export(self, files: Sequence[LocalFile], report: Callable[[int], None]) -> int:
        """Upload what has changed, large files in parts, and at last the index."""
        if self._pattern:
            raise TransferError(f"{self._options.shown} has a *: an export needs the prefix to write to")
        present = {self._relative(found["path"]): _etag(found.get("e_tag")) for found in self._list()}
        known = self._index([self._key(name) for name in present])

        def upload(file: LocalFile) -> tuple[RemoteFile, bool]:
            with file.open() as opened:
                digest = digest_of(opened, "sha256")
                before = known.get(file.path)
                if before is not None and before.digest == digest and present.get(file.path) == before.version:
                    report(file.size)
                    return before, False
                version = self._upload(file, path_of(opened))
            report(file.size)
            return RemoteFile(file.path, file.size, version, digest), True

        with ThreadPoolExecutor(_UPLOADS, thread_name_prefix="upload") as threads:
            results = list(threads.map(upload, files))
        index = FileIndex(self._options.shown, tuple(file for file, _ in results))
        changed = sum(is_new for _, is_new in results)
        if changed or index.by_path() != known:
            with self._errors():
                obstore.put(self._store, self._key(INDEX_NAME), index.encode())
        return changed

    def _upload(self, file: LocalFile, source: Path) -> str:
        part = max(_UPLOAD_PART_SIZE, -(-file.size // _PARTS_LIMIT))
        with self._errors():
            result = obstore.put(
                self._store, self._key(file.path), source, chunk_size=part, max_concurrency=_UPLOAD_PARTS
            )
        return _etag(result["e_tag"])

    def _list(self) -> list[obstore.ObjectMeta]:
        """The objects below the prefix."""
        with self._errors():
            return [found for chunk in obstore.list(self._store, self._prefix or None) for found in chunk]

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise the errors of obstore as those of a transfer."""
        try:
            yield
        except (BaseError, OSError) as error:
            raise translate(error, self._options) from error

    def _index(self, keys: Sequence[str]) -> dict[str, RemoteFile]:
        """The files of the last export below this prefix."""
        key = self._key(INDEX_NAME)
        if key not in keys:
            return {}
        content = bytearray()
        with self._errors(), suppress(NotFoundError):
            for data in obstore.get(self._store, key).stream(min_chunk_size=_CHUNK):
                content += data
                if len(content) > SIZE_LIMIT:
                    break
        index = FileIndex.decode(bytes(content))
        return {} if index is None else index.by_path()

    def _selects(self, path: str, key: str) -> bool:
        if self._pattern and not fnmatchcase(key, self._pattern):
            return False
        return self._options.selects(path, key)

    def _relative(self, key: str) -> str:
        """The path in the dataset: below the prefix, or the name of the one object that the prefix is."""
        if key == self._prefix:
            return key.rsplit("/", 1)[-1]
        return key[len(self._prefix) + 1 :] if self._prefix else key

    def _key(self, path: str) -> str:
        return f"{self._prefix}/{path}" if self._prefix else path


def _etag(text: str | None) -> str:
    """The ETag as in headers; lists of Azure have it without quotes."""
    return f'"{text}"' if text and not text.endswith('"') else text or ""


def open_s3(options: TransferOptions) -> ObjectStore:
    """The store of an `s3://` URI; variables of AWS work besides those of the released initializers."""
    names = {
        "access_key_id": "ACCESS_KEY_ID",
        "secret_access_key": "SECRET_ACCESS_KEY",
        "session_token": "SESSION_TOKEN",
        "region": "REGION",
        "role_arn": "ROLE_ARN",
    }
    config = _config(options, names)
    region = options.variable("REGION") or options.variable("AWS_REGION") or options.variable("AWS_DEFAULT_REGION")
    if region and not _REGION.fullmatch(region):
        raise TransferError(f"REGION={region!r} is no region: write it as us-east-1")
    # This name of it counts before all others, also before those that obstore reads itself.
    endpoint = endpoint_of(options, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
    config |= {"aws_endpoint_url_s3": endpoint} if endpoint else {}
    if ("access_key_id" in config) != ("secret_access_key" in config):
        raise TransferError("one of ACCESS_KEY_ID and SECRET_ACCESS_KEY is missing: give both by secretRef")
    if "role_arn" in config and not options.variable("AWS_WEB_IDENTITY_TOKEN_FILE"):
        raise TransferError(
            "ROLE_ARN needs a token of the pod's service account: annotate the service account for IAM roles, which "
            "sets AWS_WEB_IDENTITY_TOKEN_FILE"
        )
    return _opened(S3Store, options, endpoint, config)


def open_gcs(options: TransferOptions) -> ObjectStore:
    """The store of a `gs://` URI, with GOOGLE_APPLICATION_CREDENTIALS or the identity of the node."""
    endpoint = endpoint_of(options, "GOOGLE_BASE_URL")
    config = _config(options, {"bearer_token": "ACCESS_TOKEN"}) | ({"base_url": endpoint} if endpoint else {})
    return _opened(GCSStore, options, endpoint, config)


def open_azure(options: TransferOptions) -> ObjectStore:
    """The store of an `az://` URI, whose host is the container; AZURE_STORAGE_ACCOUNT_NAME names the account."""
    endpoint = endpoint_of(options, "AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")
    config = {"endpoint": endpoint} if endpoint else {}
    if not options.variable("AZURE_STORAGE_ACCOUNT_NAME") and not options.variable("AZURE_STORAGE_USE_EMULATOR"):
        raise TransferError("AZURE_STORAGE_ACCOUNT_NAME is not set: give the name of the account in env or secretRef")
    return _opened(AzureStore, options, endpoint, config)


def _config(options: TransferOptions, names: dict[str, str]) -> dict[str, str]:
    """What the environment sets by the names of the released initializers; obstore itself reads the provider's."""
    return {key: value for key, name in names.items() if (value := options.variable(name))}


def _opened(
    kind: type[S3Store | GCSStore | AzureStore],
    options: TransferOptions,
    endpoint: str | None,
    config: dict[str, str],
) -> ObjectStore:
    """The store of a kind, with few repetitions, since the fetch repeats what is left of a part."""
    bucket = options.location.netloc
    if not bucket:
        scheme = options.location.scheme
        raise TransferError(f"STORAGE_URI {options.shown} names no bucket: write {scheme}://bucket/prefix")
    if not _BUCKET.fullmatch(bucket):
        raise TransferError(f"STORAGE_URI {options.shown} has no name of a bucket before its path: {bucket!r}")
    client: ClientConfig = {
        "connect_timeout": "10s",
        "read_timeout": f"{options.timeout}s",
        "timeout": "1h",
    }
    if (endpoint or "").startswith("http://"):
        client["allow_http"] = True
    wait = timedelta(seconds=max(options.retry_interval, 0.001))  # none at all makes object_store panic
    retry: RetryConfig = {
        "max_retries": 3,
        "retry_timeout": timedelta(minutes=5),
        "backoff": {"init_backoff": wait, "max_backoff": wait * 8, "base": 2},
    }
    try:
        store = kind(bucket, config=cast("Any", config), client_options=client, retry_config=retry)
    except (BaseError, OSError) as error:
        raise translate_configuration(error, options) from error
    return ObjectStore(store, options)


def _prefix(path: str) -> tuple[str, str]:
    """The prefix to list, and the pattern that keys fit where the path has a `*`."""
    if "*" not in path:
        return path, ""
    return path.split("*", 1)[0].rpartition("/")[0], path
