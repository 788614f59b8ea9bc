"""A server that speaks S3: moto in a process of its own, since its libraries do not fit beside ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from obstore.store import S3Store

from tests.initializers.bucket import Bucket

if TYPE_CHECKING:
    from collections.abc import Iterator

LIBRARIES = Path(sys.prefix) / "s3-server"
"""Where `make` installs tests/initializers/s3_requirements.txt."""

_PROGRAM = """
import json, sys
import boto3
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1",
                      aws_access_key_id="x", aws_secret_access_key="x")
client.create_bucket(Bucket="bucket")
print(port, flush=True)
sys.stdin.read()
"""


class S3Server(Bucket):
    """A running server with an empty bucket named `bucket`."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
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


def run_s3_server() -> Iterator[S3Server]:
    """Start a server, and end it after use."""
    environ = {**os.environ, "PYTHONPATH": str(LIBRARIES), "MOTO_S3_CUSTOM_ENDPOINTS": ""}
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM],
        env=environ,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            assert line, process.stderr and process.stderr.read()
            yield S3Server(int(line))
        finally:
            process.kill()
