"""`https://`: one file, with its checksum as the fragment: `https://host/data.tar#sha256=HEX`.

urllib3 reads the bytes: it is small and pure Python, follows redirects without carrying credentials to other hosts, and
its answers are read in pieces of a size that we choose, so that memory stays small however fast they come.
"""

from __future__ import annotations

import hashlib
import re
import urllib.request
from collections.abc import Collection, Iterator, Mapping
from posixpath import basename
from urllib.parse import unquote, urlsplit

import urllib3
from urllib3.util import Retry, Timeout

from trainer_initializers.errors import InterruptedTransferError, TransferError, UnavailableSourceError
from trainer_initializers.file_store import RemoteFile
from trainer_initializers.options import TransferOptions

CHUNK = 1 << 20
"""Bytes that are held for each connection."""
_CONNECT_SECONDS = 10.0
_REDIRECTS = 8
_CONTENT_RANGE = re.compile(r"bytes (\d{1,19})-(\d{1,19})/")
_CHECKSUM = re.compile(r"sha256=([0-9a-fA-F]{64})")
_RETRY_AFTER_LIMIT = 60.0


class RangeReader:
    """Reads ranges of URLs over kept connections; safe to use from several threads."""

    def __init__(self, url: str, *, timeout: float, connections: int) -> None:
        settings = {
            "maxsize": connections,
            "timeout": Timeout(connect=min(_CONNECT_SECONDS, timeout), read=timeout),
            "retries": Retry(total=_REDIRECTS, connect=0, read=0, status=0, other=0, respect_retry_after_header=False),
        }
        proxy = _proxy(url)
        self._pool: urllib3.PoolManager = (
            urllib3.ProxyManager(proxy, **settings) if proxy else urllib3.PoolManager(**settings)  # type: ignore[arg-type]
        )

    def open(self, url: str, start: int, end: int | None, headers: Mapping[str, str] = {}) -> urllib3.BaseHTTPResponse:
        """The answer to a request for a range, whose body is not read yet.

        Raises:
            InterruptedTransferError: the server cannot answer now.
            TransferError: the URL is wrong.
        """
        asked = {"Accept-Encoding": "identity", **headers}
        if start or end is not None:
            asked["Range"] = f"bytes={start}-{'' if end is None else end - 1}"
        try:
            response = self._pool.request("GET", url, headers=asked, preload_content=False)
        except urllib3.exceptions.LocationValueError as error:
            raise TransferError(f"{url} is no URL: {error}") from error
        except urllib3.exceptions.MaxRetryError as error:
            if isinstance(error.reason, urllib3.exceptions.SSLError):
                raise TransferError(
                    f"the certificate of {urlsplit(url).netloc} is not trusted ({error.reason}): "
                    "name the file of its authority in SSL_CERT_FILE"
                ) from error
            raise InterruptedTransferError(f"{url}: {error.reason or 'too many redirects'}") from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise InterruptedTransferError(f"{url}: {error}") from error
        if response.status in {408, 425, 429} or response.status >= 500:
            after = response.headers.get("Retry-After", "")
            response.drain_conn()
            seconds = min(float(after), _RETRY_AFTER_LIMIT) if after.isdecimal() else 0.0
            raise InterruptedTransferError(f"{url} answered {response.status}", retry_after=seconds)
        if response.status == 206 and not _is_within(response, start, end):
            response.close()
            raise TransferError(
                f"{url} answered with another range than was asked for: check the server and its proxies"
            )
        return response


def _is_within(response: urllib3.BaseHTTPResponse, start: int, end: int | None) -> bool:
    """Whether a partial answer begins where it should, and does not go on beyond the end."""
    found = _CONTENT_RANGE.match(response.headers.get("Content-Range", ""))
    return found is not None and int(found[1]) == start and (end is None or int(found[2]) < end)


def chunks(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """The body of an answer, piece by piece.

    Raises:
        InterruptedTransferError: it ended early, or nothing came for too long.
    """
    try:
        while data := response.read(CHUNK):
            yield data
        response.release_conn()
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise InterruptedTransferError(f"the answer broke off: {error}") from error
    finally:
        if not response.closed:
            response.close()


class WebFile:
    """The FileStore of one URL."""

    def __init__(self, options: TransferOptions) -> None:
        location = options.location
        self._url = location._replace(fragment="").geturl()
        self._options, self._shown = options, options.shown
        self._digest = _digest(location.fragment, options.shown)
        self._name = basename(unquote(location.path)) or "index.html"
        self._reader = RangeReader(self._url, timeout=options.timeout, connections=options.connections)
        self._state = ""
        token = options.variable("ACCESS_TOKEN")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def files(self) -> Iterator[RemoteFile]:
        """The one file; its first byte is asked for, since many servers answer HEAD wrongly."""
        if not self._options.selects(self._name):
            return
        response = self._reader.open(self._url, 0, 1, self._headers)
        self._check(response.status, {200, 206, 416})
        self._state = _state_of(response)
        _, _, total = response.headers.get("Content-Range", "").rpartition("/")
        is_ranged = response.status == 206 and total.isdecimal()
        length = total if is_ranged else response.headers.get("Content-Length", "")
        size = int(length) if length.isdecimal() else None
        if response.status == 416:
            size, is_ranged = 0, False
        version = hashlib.sha256(f"{self._url} {self._state} {size}".encode()).hexdigest()
        response.close() if not is_ranged else response.drain_conn()
        yield RemoteFile(self._name, size, self._digest or f"{self._state} {version[:16]}", self._digest, is_ranged)

    def read(self, file: RemoteFile, start: int, end: int | None) -> Iterator[bytes]:
        """The bytes of the range."""
        whole = not file.is_ranged or (start == 0 and end == file.size)
        response = self._reader.open(self._url, 0 if whole else start, None if whole else end, self._headers)
        self._check(response.status, {200, 206})
        # With a checksum it is known at the end what was fetched, also from servers that disagree about the ETag.
        has_changed = file.digest is None and _state_of(response) != self._state
        if has_changed or (response.status == 200 and not whole):
            response.close()
            raise UnavailableSourceError(f"{self._shown} has changed while it was fetched: start again")
        return chunks(response)

    def _check(self, status: int, expected: Collection[int]) -> None:
        if status in expected:
            return
        reason = {
            401: "wants credentials: give ACCESS_TOKEN by secretRef",
            403: "refuses access (403): give an ACCESS_TOKEN that may read it, or renew the signed URL",
            404: "does not exist (404): check storageUri",
            410: "does not exist any more (410): check storageUri",
        }.get(status, f"answered {status}: check storageUri")
        raise TransferError(f"{self._shown} {reason}")


def open_web(options: TransferOptions) -> WebFile:
    """The FileStore of an `http(s)://` URI."""
    if not options.location.hostname:
        raise TransferError(f"STORAGE_URI {options.shown} names no host: write it as https://host/path")
    return WebFile(options)


def _state_of(response: urllib3.BaseHTTPResponse) -> str:
    """What changes with the content of a URL; "" where the server does not say."""
    return response.headers.get("ETag") or response.headers.get("Last-Modified") or ""


def _digest(fragment: str, shown: str) -> str | None:
    if not fragment:
        return None
    if found := _CHECKSUM.fullmatch(fragment):
        return f"sha256:{found[1].lower()}"
    raise TransferError(f"STORAGE_URI {shown}: the part after # must be sha256= and 64 hexadecimal digits")


def _proxy(url: str) -> str | None:
    """The proxy that the environment names for a URL, as every client on Linux takes it."""
    parts = urlsplit(url)
    if not parts.hostname or urllib.request.proxy_bypass(parts.hostname):
        return None
    return urllib.request.getproxies().get(parts.scheme)
