"""A webhook server on the loopback interface, and an API server's requests to it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import aiohttp
import msgspec

from tests.kube.certificates import Authority
from trainer.kube import Clock, Manager
from trainer.kube.objects import Object
from trainer.kube.serving.certificates import CertificateSource, ServingCertificate, Use
from trainer.kube.webhook.admission import AdmissionHandler
from trainer.kube.webhook.server import WebhookServer, WebhookServerOptions
from trainer_kube_testing import FakeClient

PATH = "/validate"
NAME = "validate.example.com"
AUTHORITY = Authority()
OPTIONS = WebhookServerOptions(host="127.0.0.1", port=0)


def review_of(operation: str = "CREATE", **fields: Any) -> Object:
    """An AdmissionReview as an API server sends it."""
    request = {
        "uid": "705ab4f5",
        "kind": {"group": "example.com", "version": "v1", "kind": "Widget"},
        "resource": {"group": "example.com", "version": "v1", "resource": "widgets"},
        "requestKind": {"group": "example.com", "version": "v1", "kind": "Widget"},
        "requestResource": {"group": "example.com", "version": "v1", "resource": "widgets"},
        "name": "w",
        "namespace": "ns",
        "operation": operation,
        "userInfo": {"username": "jane", "uid": "1", "groups": ["devs", "system:authenticated"], "extra": {"a": ["b"]}},
        "object": None if operation == "DELETE" else {"apiVersion": "example.com/v1", "kind": "Widget", "spec": {}},
        "oldObject": None if operation in {"CREATE", "CONNECT"} else {"kind": "Widget", "spec": {"old": True}},
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request | fields}


def client_context(*ca: bytes) -> ssl.SSLContext:
    """TLS of a client that trusts these authorities."""
    return ssl.create_default_context(cadata=b"".join(ca or (AUTHORITY.pem,)).decode())


class GivenCertificates(CertificateSource):
    """A source whose certificates the test hands over."""

    def __init__(self, *hosts: str) -> None:
        super().__init__("nobody has made a certificate yet", None)
        self.use: Use | None = None
        self._first = self._issue(*hosts) if hosts else None

    async def run(self, use: Use) -> None:
        self.use = use
        if self._first is not None:
            self.problem = ""
            self.ca.set(AUTHORITY.pem)
            await use(self._first)
        await asyncio.get_running_loop().create_future()

    async def _look(self) -> None:
        """There is never anything new."""

    def _pause(self) -> float:
        raise NotImplementedError

    @staticmethod
    def _issue(*hosts: str) -> ServingCertificate:
        pair = AUTHORITY.issue("webhook", *hosts)
        return ServingCertificate(pair.chain, pair.key)


class Webhook:
    """A server that runs, as an API server sees it."""

    def __init__(self, server: WebhookServer, manager: Manager, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.manager = manager
        self.session = session

    @property
    def port(self) -> int:
        return self.server.address[1]

    async def post(
        self, body: object, *, path: str = PATH, query: str = "", method: str = "POST", **headers: str
    ) -> tuple[int, Object]:
        """HTTP status and decoded answer."""
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        url = f"https://127.0.0.1:{self.port}{path}{query}"
        headers = {"Content-Type": "application/json"} | headers
        async with self.session.request(method, url, data=data, headers=headers) as answer:
            return answer.status, await answer.json()

    async def review(self, operation: str = "CREATE", *, query: str = "", **fields: Any) -> Object:
        """The response in the answer to a review."""
        code, answer = await self.post(review_of(operation, **fields), query=query)
        assert code == 200, answer
        response: Object = answer["response"]
        return response

    def sample(self, name: str, **labels: str) -> float | None:
        """The value of a series."""
        return self.manager.metrics.registry.get_sample_value(f"controller_runtime_webhook_{name}", labels)


@asynccontextmanager
async def serving(
    handler: AdmissionHandler,
    *,
    clock: Clock | None = None,
    certificates: CertificateSource | None = None,
    **options: Any,
) -> AsyncIterator[Webhook]:
    """A server with one webhook, run by a manager."""
    manager = Manager(FakeClient(), clock=clock)
    source = certificates or GivenCertificates("127.0.0.1")
    server = WebhookServer(manager, certificates=source, options=replace(OPTIONS, **options))
    server.register(PATH, NAME, handler)
    running = asyncio.create_task(manager.run())
    await server.wait_for_start()
    connector = aiohttp.TCPConnector(ssl=client_context(), limit=0)
    try:
        async with aiohttp.ClientSession(connector=connector) as session:
            yield Webhook(server, manager, session)
    finally:
        manager.stop()
        await running
