"""The S3 server of a test, and what is in its bucket."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from obstore.store import S3Store

from packages.initializers.tests.bucket import Bucket
from trainer.cli.processes.parent_death import ending_with_parent


class S3Server(Bucket):
    """A running server with a bucket named `bucket`."""

    def __init__(self, url: str) -> None:
        self.url = url
        store = S3Store(
            "bucket",
            endpoint=self.url,
            region="us-east-1",
            access_key_id="x",
            secret_access_key="x",
            client_options={"allow_http": True},
        )
        environ = {
            "ENDPOINT": self.url,
            "ACCESS_KEY_ID": "test-access-key",
            "SECRET_ACCESS_KEY": "test-secret-key",
            "REGION": "us-east-1",
        }
        super().__init__(store, environ)


def run_s3_server(directory: Path) -> Iterator[S3Server]:
    """Start a server whose bucket has the files of the directory, and end it after use."""
    program = [sys.executable, "-m", "packages.initializers.tests.servers.s3_server", f"bucket={directory}"]
    with subprocess.Popen(ending_with_parent(program), text=True, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            assert url
            yield S3Server(url)
        finally:
            process.terminate()
