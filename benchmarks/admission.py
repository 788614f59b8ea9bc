"""`python -m benchmarks.admission`: what each review costs, over TLS, beside a server that reads nothing."""

from __future__ import annotations

import ssl
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles
from typing import Annotated, Any

import aiohttp
import anyio
import msgspec
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.converging.load import runtime, train_job
from benchmarks.machine import this_machine
from benchmarks.results import Machine
from benchmarks.worker import Worker
from trainer.api.trainingruntime import TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer.webhooks.defaults import default_train_job

DEFAULT_OUTPUT = Path(__file__).parent / "admission.json"
NAMESPACE = "default"
CLIENTS = (1, 32)
"""Requests under way at once."""
_WEBHOOKS = "benchmarks.reviewing.server"


class _Endpoint(msgspec.Struct, frozen=True):
    """What is asked."""

    name: str
    module: str
    """That serves it."""
    path: str
    resource: Resource


def _endpoint(verb: str, name: str, resource: Resource) -> _Endpoint:
    path = f"/{verb}-{resource.group.replace('.', '-')}-{resource.version}-{resource.kind.lower()}"
    return _Endpoint(f"{name}, {resource.kind}", _WEBHOOKS, path, resource)


_ENDPOINTS = (
    _Endpoint("floor", "benchmarks.reviewing.null", "/", TRAIN_JOBS),
    *(
        _endpoint(verb, name, resource)
        for resource in (TRAIN_JOBS, TRAINING_RUNTIMES)
        for verb, name in (("mutate", "mutating"), ("validate", "validating"))
    ),
)
_PERCENTILES = 100


class Measurement(msgspec.Struct, frozen=True):
    """One endpoint under one number of clients."""

    endpoint: str
    clients: int
    cpu_ms: float
    """Of the server, for each review."""
    p50_ms: float
    p99_ms: float


class Result(msgspec.Struct, frozen=True):
    """What reviews cost."""

    reviews: int
    machine: Machine
    measurements: list[Measurement]


def run(reviews: int) -> Result:
    """Measure all endpoints.

    Raises:
        WorkerError: a server has ended early.
        RuntimeError: a review was not allowed.
    """
    return Result(reviews, this_machine(), list(_measurements(reviews)))


def _measurements(reviews: int) -> Iterator[Measurement]:
    for endpoint in _ENDPOINTS:
        with Worker(endpoint.module) as server:
            port = server.ask("start", namespace=NAMESPACE)["port"]
            url = f"https://127.0.0.1:{port}{endpoint.path}"
            bodies = _bodies(endpoint.resource, reviews)
            anyio.run(_load, url, bodies[:100], 1)
            for clients in CLIENTS:
                before = server.ask("report")["cpu_seconds"]
                seconds = anyio.run(_load, url, bodies, clients)
                cpu = (server.ask("report")["cpu_seconds"] - before) / reviews
                cuts = quantiles(seconds, n=_PERCENTILES, method="inclusive")
                yield Measurement(endpoint.name, clients, cpu * 1000, cuts[49] * 1000, cuts[98] * 1000)


async def _load(url: str, bodies: list[bytes], clients: int) -> list[float]:
    """Send all bodies, so many at once; returns the seconds of each."""
    waiting, seconds = iter(bodies), list[float]()
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    headers = {"Content-Type": "application/json"}

    async def client() -> None:
        for body in waiting:
            began = time.perf_counter()
            async with session.post(url, data=body, headers=headers) as response:
                answer = await response.json()
            seconds.append(time.perf_counter() - began)
            if not answer["response"]["allowed"]:
                raise RuntimeError(f"{url} answered {answer}")

    connector = aiohttp.TCPConnector(limit=clients, ssl=context)
    async with aiohttp.ClientSession(connector=connector) as session, anyio.create_task_group() as tasks:
        for _ in range(clients):
            tasks.start_soon(client)
    return seconds


def _bodies(resource: Resource, reviews: int) -> list[bytes]:
    return [msgspec.json.encode(_review(resource, f"review-{number:05}")) for number in range(reviews)]


def _review(resource: Resource, name: str) -> Object:
    """The creation of an object that has its defaults, as the API server sends it."""
    kinds: dict[str, Any] = {"group": resource.group, "version": resource.version}
    kind, plural = kinds | {"kind": resource.kind}, kinds | {"resource": resource.plural}
    if resource == TRAIN_JOBS:
        obj = default_train_job(train_job(NAMESPACE, name))
    else:
        obj = runtime(NAMESPACE)
        obj["metadata"]["name"] = name
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": name,
            "kind": kind,
            "resource": plural,
            "requestKind": kind,
            "requestResource": plural,
            "name": name,
            "namespace": NAMESPACE,
            "operation": "CREATE",
            "userInfo": {"username": "jane", "groups": ["system:authenticated"]},
            "object": obj,
            "oldObject": None,
            "dryRun": False,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        },
    }


def print_result(console: Console, result: Result) -> None:
    """A table of the endpoints."""
    table = Table("endpoint", "clients", "CPU per review", "above the floor", "p50", "p99")
    floor = {each.clients: each for each in result.measurements if each.endpoint == "floor"}
    for each in result.measurements:
        above = each.cpu_ms - floor[each.clients].cpu_ms
        table.add_row(
            each.endpoint,
            str(each.clients),
            f"{each.cpu_ms:.2f} ms",
            f"{above:.2f} ms",
            f"{each.p50_ms:.2f} ms",
            f"{each.p99_ms:.2f} ms",
        )
    console.print(table)


def main(
    *,
    reviews: Annotated[int, typer.Option(min=2, help="Reviews of each endpoint.")] = 2000,
    output: Annotated[Path, typer.Option(help="JSON file to write.")] = DEFAULT_OUTPUT,
) -> None:
    """Send reviews to each webhook and measure what they take."""
    result = run(reviews)
    output.write_bytes(msgspec.json.format(msgspec.json.encode(result)))
    print_result(Console(width=None if sys.stdout.isatty() else 120), result)


if __name__ == "__main__":
    typer.run(main)
