"""A server that speaks S3: moto, in a process of its own, since its libraries do not fit beside ours.

python -m packages.initializers.tests.servers.s3_server --port 9000 bucket=DIRECTORY

It takes any credentials, and forgets everything when it ends.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
from pathlib import Path

from packages.initializers.tests.servers.command import (
    parse_arguments,
    serve_until_ended,
)
from packages.initializers.tests.servers.range_server import LOOPBACK

LIBRARIES = Path(sys.prefix) / "s3-server"
"""Where `make .venv/.s3-server` installs packages/initializers/tests/s3_requirements.txt."""


def main() -> None:
    """Serve a bucket for each directory until the process is ended."""
    given = parse_arguments("such as data=./data; its files become objects")
    if not LIBRARIES.is_dir():
        sys.exit(f"error: there is no moto in {LIBRARIES}, which serves S3: make .venv/.s3-server installs it")
    sys.path.insert(0, str(LIBRARIES))
    os.environ["S3_IGNORE_SUBDOMAIN_BUCKETNAME"] = "true"  # else a host with dots in its name would be a bucket
    import boto3
    from moto.moto_server import werkzeug_app as moto
    from werkzeug.serving import make_server

    listener = socket.create_server((given.host, given.port))
    application = moto.DomainDispatcherApplication(moto.create_backend_app)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)

    def serve(listener: socket.socket) -> str:
        host, port = listener.getsockname()
        options = {"threaded": True, "request_handler": moto.MotoRequestHandler, "fd": listener.fileno()}
        server = make_server(host, port, application, **options)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://{host}:{port}"

    # On a port of its own, so that nobody finds a bucket that is not complete yet.
    keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
    client = boto3.client(
        "s3", endpoint_url=serve(socket.create_server((LOOPBACK, 0))), region_name="us-east-1", **keys
    )
    for bucket, directory in given.directories:
        client.create_bucket(Bucket=bucket)
        for path in sorted(path for path in directory.rglob("*") if path.is_file()):
            client.upload_file(str(path), bucket, path.relative_to(directory).as_posix())
    serve_until_ended(serve(listener))


if __name__ == "__main__":
    main()
