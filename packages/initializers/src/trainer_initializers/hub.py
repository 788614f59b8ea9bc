"""`hf://`: datasets and models of a Hugging Face Hub; HF_ENDPOINT names another one.

huggingface_hub finds files, rights and signed addresses, and makes commits. The bytes come by our own ranges, since its
snapshot_download (2.4) begins a file anew after a restart, compares sizes and no checksums, reads a file over one
connection, and follows links in the directory that it fills.
"""

from __future__ import annotations

import resource
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import NoReturn, TypeVar
from urllib.parse import unquote, urlsplit

from httpx2 import HTTPError
from huggingface_hub import CommitOperationAdd, HfApi, get_hf_file_metadata, hf_hub_url
from huggingface_hub.constants import ENDPOINT
from huggingface_hub.errors import (
    DisabledRepoError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils.tqdm import disable_progress_bars

from trainer_initializers.endpoints import endpoint_of
from trainer_initializers.errors import InterruptedTransferError, TransferError, UnavailableSourceError
from trainer_initializers.file_store import LocalFile, RemoteFile
from trainer_initializers.index import digest_of
from trainer_initializers.options import TransferOptions
from trainer_initializers.shared_directory import path_of
from trainer_initializers.web import RangeReader, chunks

Result = TypeVar("Result")

_TYPES = {"datasets": "dataset", "models": "model"}
_EXPIRED = frozenset({400, 401, 403, 404, 410})
"""What a content server answers for a signed address that is too old."""


class HubRepository:
    """One revision of a repository."""

    def __init__(self, options: TransferOptions) -> None:
        self._options = options
        self._kind, self._name, self._revision, self._below = _parse(options)
        self._endpoint = endpoint_of(options, "HF_ENDPOINT") or ENDPOINT.rstrip("/")
        self._token = options.variable("ACCESS_TOKEN") or options.variable("HF_TOKEN")
        self._api = HfApi(endpoint=self._endpoint, token=self._token or False)
        self._commit = ""
        self._large: frozenset[str] = frozenset()
        self._addresses: dict[str, str] = {}
        self._lock = threading.Lock()
        self._reader = RangeReader(self._endpoint, timeout=options.timeout, connections=options.connections)

    def files(self) -> Iterator[RemoteFile]:
        """The files of the commit that the revision names now."""
        found = self._tree()
        self._large = frozenset(file.path for file in found if file.lfs is not None)
        for file in found:
            if self._selects(file.path):
                digest = _digest(file)
                yield RemoteFile(file.path, int(file.size), digest, digest)

    def read(self, file: RemoteFile, start: int, end: int | None) -> Iterator[bytes]:
        """The bytes of the range; large files come from the content server that the Hub names."""
        url = hf_hub_url(self._name, file.path, repo_type=self._kind, revision=self._commit, endpoint=self._endpoint)
        address = self._address(url) if file.path in self._large else url
        is_own = urlsplit(address).netloc == urlsplit(self._endpoint).netloc
        headers = {"Authorization": f"Bearer {self._token}"} if self._token and is_own else {}
        whole = start == 0 and end == file.size
        response = self._reader.open(address, 0 if whole else start, None if whole else end, headers)
        if response.status in _EXPIRED and address != url:
            with self._lock:
                self._addresses.pop(url, None)
            response.close()
            raise InterruptedTransferError(f"{file.path}: the signed address has expired ({response.status})")
        if response.status not in {200, 206} or (response.status == 200 and not whole):
            response.close()
            raise TransferError(f"{self._options.shown}: {file.path} answered {response.status}: check ACCESS_TOKEN")
        return chunks(response)

    def export(self, files: Sequence[LocalFile], report: Callable[[int], None]) -> int:
        """Commit what has changed, to a repository that is made where it is missing."""
        name, kind = self._name, self._kind
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # all files of the commit are open
        self._call(lambda: self._api.create_repo(name, repo_type=kind, exist_ok=True))
        known = {file.path: _digest(file) for file in self._tree()}
        revision = self._revision
        with ExitStack() as stack:
            added, size = [], 0
            for file in files:
                path = f"{self._below}/{file.path}" if self._below else file.path
                before = known.get(path, "").partition(":")[0] or "sha256"
                opened = file.open()
                if digest_of(opened, before) == known.get(path):
                    opened.close()
                    report(file.size)
                    continue
                stack.enter_context(opened)  # until the commit is made: its name may lead elsewhere by then
                added.append(CommitOperationAdd(path_in_repo=path, path_or_fileobj=path_of(opened)))
                size += file.size
            if added:
                self._call(
                    lambda: self._api.create_commit(
                        name, added, commit_message="Export of a TrainJob", repo_type=kind, revision=revision
                    )
                )
                report(size)
            return len(added)

    def _tree(self) -> list[RepoFile]:
        """The files of the newest commit of the revision."""
        name, kind, revision = self._name, self._kind, self._revision
        info = self._call(lambda: self._api.repo_info(name, repo_type=kind, revision=revision))
        commit = self._commit = str(info.sha)
        tree = self._call(lambda: list(self._api.list_repo_tree(name, recursive=True, revision=commit, repo_type=kind)))
        return [file for file in tree if isinstance(file, RepoFile)]

    def _selects(self, path: str) -> bool:
        if self._below and path != self._below and not path.startswith(f"{self._below}/"):
            return False
        return self._options.selects(path)

    def _address(self, url: str) -> str:
        """Where the content of a large file is; asked once, since the Hub counts such questions."""
        with self._lock:
            if url not in self._addresses:
                found = self._call(
                    lambda: get_hf_file_metadata(url, token=self._token or False, endpoint=self._endpoint)
                )
                self._addresses[url] = str(found.location)
            return self._addresses[url]

    def _call(self, function: Callable[[], Result]) -> Result:
        """What the function returns, its errors as those of a transfer."""
        try:
            return function()
        except (HTTPError, HFValidationError) as error:
            self._raise(error)
        except (ConnectionError, RuntimeError) as error:  # of hf_xet, which uploads
            remedy = ": set HF_HUB_DISABLE_XET=1, since this Hub has no Xet storage" if "xet-" in str(error) else ""
            raise InterruptedTransferError(f"{self._endpoint}: {error}{remedy}") from error

    def _raise(self, error: HTTPError | HFValidationError) -> NoReturn:
        name, remedy = f"{self._kind} {self._name}", "give an ACCESS_TOKEN that may by secretRef"
        if isinstance(error, GatedRepoError):
            page = f"{self._endpoint}/{'datasets/' if self._kind == 'dataset' else ''}{self._name}"
            raise TransferError(f"the {name} is gated: accept its terms at {page}, and {remedy} read it") from error
        if isinstance(error, RevisionNotFoundError):
            raise TransferError(f"the {name} has no revision {self._revision}: check what follows @") from error
        if isinstance(error, RepositoryNotFoundError | DisabledRepoError):
            raise TransferError(
                f"there is no {name}, or it is private: check storageUri, or {remedy} read it"
            ) from error
        if isinstance(error, RemoteEntryNotFoundError):
            raise UnavailableSourceError(f"the {name} has changed while it was fetched: start again") from error
        if isinstance(error, HFValidationError):
            raise TransferError(f"STORAGE_URI {self._options.shown}: {error}: write it as hf://user/name") from error
        status = error.response.status_code if isinstance(error, HfHubHTTPError) else 0
        if status == 401:
            raise TransferError(f"the Hub does not know the ACCESS_TOKEN: give one that is valid for {name}") from error
        if status == 403:
            raise TransferError(f"the ACCESS_TOKEN has no right to do this with {name}: {remedy}") from error
        if 400 <= status < 500 and status not in {408, 429}:
            raise TransferError(f"the Hub refuses the {name}: {error}") from error
        raise InterruptedTransferError(f"{self._endpoint}: {error}") from error


def open_hub(options: TransferOptions) -> HubRepository:
    """The store of an `hf://` URI."""
    disable_progress_bars()  # the log has lines of our own
    return HubRepository(options)


def _parse(options: TransferOptions) -> tuple[str, str, str, str]:
    """Kind, name and revision of a repository, and the path in it: `hf://[datasets/]user/name[@revision][/path]`."""
    words = [unquote(word) for word in options.uri.removeprefix("hf://").split("/") if word]
    kind = "dataset" if options.command == "dataset" else "model"
    if len(words) > 1 and words[0] in _TYPES:
        kind = _TYPES[words.pop(0)]
    if not words:
        raise TransferError(f"STORAGE_URI {options.shown} names no repository: write it as hf://user/name")
    count = 1 if "@" in words[0] else 2
    name, _, revision = "/".join(words[:count]).partition("@")
    return kind, name, revision or "main", "/".join(words[count:])


def _digest(file: RepoFile) -> str:
    return f"sha256:{file.lfs.sha256}" if file.lfs is not None else f"git-blob:{file.blob_id}"
