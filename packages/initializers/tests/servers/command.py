"""The command line of the servers, which demos and benchmarks start as processes."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path

from packages.initializers.tests.servers.range_server import LOOPBACK


def parse_arguments(example: str) -> argparse.Namespace:
    """Read `--host HOST --port PORT NAME=DIRECTORY ...`; `directories` are pairs of name and directory."""
    parser = argparse.ArgumentParser(description="Serve directories to initializers in tests and demos.")
    parser.add_argument("--host", default=LOOPBACK, help="address to listen on (default: loopback)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: a free one, which is printed)")
    parser.add_argument("directories", nargs="*", type=_served, metavar="NAME=DIRECTORY", help=example)
    return parser.parse_args()


def serve_until_ended(url: str) -> None:
    """Print the URL of a server that runs in a thread, and wait for SIGTERM or SIGINT."""
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):  # the first process of a container ignores SIGTERM otherwise
        signal.signal(number, lambda *_: ended.set())
    sys.stdout.write(f"{url}\n")
    sys.stdout.flush()
    ended.wait()


def _served(text: str) -> tuple[str, Path]:
    name, _, directory = text.partition("=")
    return name, Path(directory).resolve(strict=True)
