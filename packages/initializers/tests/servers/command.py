"""The command line of the servers: directories to serve, an address, and one line about what is wrong with them."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from packages.initializers.tests.servers.range_server import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class ServedDirectories:
    """What a server serves, and where."""

    host: str
    port: int
    """0 for a free one."""
    directories: Mapping[str, Path]
    """The served directories, by the name of the repository or bucket."""


def parse_directories(
    program: str, name: str, example: str, arguments: Sequence[str] | None = None
) -> ServedDirectories:
    """Read `--host HOST --port PORT NAME=DIRECTORY ...`; what is wrong ends the process with one line."""
    parser = argparse.ArgumentParser(prog=program, description="Serve directories to initializers in tests and demos.")
    parser.add_argument("--host", default=LOOPBACK, help="address to listen on (default: loopback)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: a free one, which is printed)")
    parser.add_argument("directories", nargs="*", metavar=f"{name}=DIRECTORY", help=example)
    given = parser.parse_args(arguments)
    directories = {}
    for text in given.directories:
        served, _, directory = text.partition("=")
        if not Path(directory).is_dir():
            sys.exit(f"error: {text}: there is no such directory: write {name}=DIRECTORY")
        directories[served] = Path(directory)
    return ServedDirectories(given.host, given.port, directories)


def refuse_address(given: ServedDirectories, error: OSError) -> NoReturn:
    """End the process, which cannot listen on the address."""
    sys.exit(
        f"error: cannot listen on {given.host}:{given.port}: {os.strerror(error.errno or 0)}: choose another --port"
    )


def serve_until_ended(url: str) -> None:
    """Print the URL of a server that runs in a thread, and wait for SIGTERM or SIGINT."""
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):  # the first process of a container ignores SIGTERM otherwise
        signal.signal(number, lambda *_: ended.set())
    sys.stdout.write(f"{url}\n")
    sys.stdout.flush()
    ended.wait()
