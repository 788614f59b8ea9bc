"""A server that speaks Azure's Blob Storage: Azurite of npm, in a process of its own."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from obstore.store import AzureStore

from packages.initializers.tests.bucket import Bucket

NODE = shutil.which("node")
PROGRAM = Path(sys.prefix) / "azurite" / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
"""Where `make` installs packages/initializers/tests/azurite."""
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The published key of Azurite's only account."""

_READY = "successfully listens on "


class AzureServer(Bucket):
    """A running server with an empty container named `bucket`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.environ_of_anybody = {"ENDPOINT": f"{url}/{ACCOUNT}", "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT}
        self._make_container()
        store = AzureStore(
            "bucket",
            account_name=ACCOUNT,
            account_key=KEY,
            endpoint=f"{url}/{ACCOUNT}",
            client_options={"allow_http": True},
        )
        super().__init__(store, self.environ_of_anybody | {"AZURE_STORAGE_ACCOUNT_KEY": KEY})

    def _make_container(self) -> None:
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=30)
        connection.request("PUT", f"/{ACCOUNT}/bucket?restype=container&{signature('rwdlc')}")
        assert connection.getresponse().status == http.HTTPStatus.CREATED
        connection.close()


def signature(rights: str) -> str:
    """A shared access signature of the account for containers and blobs."""
    fields = {"sv": "2020-08-04", "ss": "b", "srt": "sco", "sp": rights, "se": "2099-01-01T00:00:00Z"}
    signed = [ACCOUNT, rights, "b", "sco", "", fields["se"], "", "", fields["sv"], ""]
    digest = hmac.new(base64.b64decode(KEY), "\n".join(signed).encode(), hashlib.sha256).digest()
    return urlencode(fields | {"sig": base64.b64encode(digest).decode()})


def run_azure_server() -> Iterator[AzureServer]:
    """Start a server, and end it after use."""
    assert NODE is not None
    command = [NODE, str(PROGRAM), "--blobPort", "0", "--inMemoryPersistence", "--silent", "--disableTelemetry"]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        try:
            said = []
            for line in process.stdout:
                said.append(line)
                if _READY in line:
                    yield AzureServer(line.partition(_READY)[2].strip())
                    return
            raise AssertionError("".join(said))
        finally:
            process.kill()
