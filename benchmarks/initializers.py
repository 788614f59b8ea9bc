"""How fast the initializers fetch, next to the plain clients, from the same servers on loopback and in one run.

    make bench-initializers [BENCH='--size 1024 --trials 5']

`hf download` and boto3's managed download are what people run by hand. Wall time depends on how busy the machine is,
and the servers are written in Python: moto takes nearly all of the time of a fetch from S3. CPU seconds of the client
are what a pod pays for.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from packages.initializers.tests.servers.s3_server import LIBRARIES

BIN = Path(sys.executable).parent
_BOTO3 = """
import sys
import boto3
client = boto3.client("s3", endpoint_url=sys.argv[1], region_name="us-east-1",
                      aws_access_key_id="x", aws_secret_access_key="x")
client.download_file("bucket", "set/model.safetensors", sys.argv[2] + "/model.safetensors")
"""


@dataclass(frozen=True, slots=True)
class Client:
    """A program that fetches into the directory that takes the place of `{}` in its words."""

    name: str
    command: Sequence[str]
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Run:
    """What one fetch took."""

    wall: float
    cpu: float
    memory: int
    """In bytes."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the clients in turn, and print a row for each."""
    parser = argparse.ArgumentParser(prog="benchmarks.initializers", description="Fetch with ours and with others.")
    parser.add_argument("--size", type=int, default=256, help="MiB of the file (default: 256)")
    parser.add_argument("--trials", type=int, default=3, help="fetches of each client (default: 3)")
    given = parser.parse_args(arguments)
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        model = place / "bucket" / "set" / "model.safetensors"
        model.parent.mkdir(parents=True)
        with model.open("wb") as opened:
            for _ in range(given.size):  # at once, it would count as the memory of the clients, which are forked
                opened.write(os.urandom(1 << 20))
        hub = _server(stack, "hub_server", f"models/me/m={model.parent}")
        s3 = _server(stack, "s3_server", f"bucket={model.parent.parent}")
        for clients in (_hub_clients(hub), _s3_clients(s3)):
            runs: dict[str, list[Run]] = {client.name: [] for client in clients}
            for _ in range(given.trials):
                for client in clients:
                    runs[client.name].append(_fetch(client, given.size << 20))
            for name, results in runs.items():
                _print(name, given.size, results)


def _hub_clients(url: str) -> list[Client]:
    environ = {"HF_ENDPOINT": url, "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    download = [str(BIN / "hf"), "download", "me/m", "--local-dir", "{}"]
    return [_ours("hf://me/m", environ), Client("hf download", download, environ)]


def _s3_clients(url: str) -> list[Client]:
    keys = {"ENDPOINT": url, "ACCESS_KEY_ID": "x", "SECRET_ACCESS_KEY": "x", "REGION": "us-east-1"}
    download = [sys.executable, "-c", _BOTO3, url, "{}"]
    return [_ours("s3://bucket/set", keys), Client("boto3 download_file", download, {"PYTHONPATH": str(LIBRARIES)})]


def _ours(uri: str, environ: Mapping[str, str]) -> Client:
    command = [sys.executable, "-m", "trainer_initializers", "model"]
    return Client(f"initializer {uri}", command, {**environ, "STORAGE_URI": uri, "TRANSFER_PATH": "{}"})


def _server(stack: ExitStack, module: str, directory: str) -> str:
    """Start a server, and return the URL that it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", f"packages.initializers.tests.servers.{module}", directory],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    stack.callback(process.wait)
    stack.callback(process.kill)
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _fetch(client: Client, size: int) -> Run:
    with tempfile.TemporaryDirectory() as directory:
        command = [word.replace("{}", directory) for word in client.command]
        given = {name: value.replace("{}", directory) for name, value in client.environ.items()}
        started = time.perf_counter()
        process = subprocess.Popen(command, env={**os.environ, **given}, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        found = (Path(directory) / "model.safetensors").stat().st_size
        if process.returncode or found != size:
            raise SystemExit(f"{client.name} failed with exit code {process.returncode} and {found} bytes")
        return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def _print(name: str, size: int, runs: Sequence[Run]) -> None:
    wall, cpu = (statistics.median(values) for values in ([run.wall for run in runs], [run.cpu for run in runs]))
    speed = size * 1.048576 / wall
    memory = max(run.memory for run in runs) / 1e6
    sys.stdout.write(f"{name:32} {speed:7.0f} MB/s {cpu:6.2f} s CPU {memory:6.0f} MB memory\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
