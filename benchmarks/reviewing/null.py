"""`python -m benchmarks.reviewing.null`: a bare aiohttp server that allows everything: what HTTPS alone costs."""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from pathlib import Path

import anyio
from aiohttp import web

from benchmarks.process import Effort, resident_bytes
from benchmarks.worker import obey
from trainer.kube.logs.logs import configure_logging
from trainer.kube.serving.certificates import SelfSignedCertificates, ServingCertificate

HOST = "127.0.0.1"


class Subject:
    """A server that reads nothing."""

    def __init__(self) -> None:
        self._runner = web.ServerRunner(web.Server(self._allow))

    async def start(self, namespace: str) -> object:  # noqa: ARG002 - as the webhooks
        """Serve; answers with the port."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, HOST, 0, ssl_context=await _context())
        await site.start()
        return {"port": self._runner.addresses[0][1]}

    async def report(self) -> object:
        """The processor time and memory that it has taken so far."""
        return {"cpu_seconds": Effort.now().cpu_seconds, "rss": resident_bytes()}

    async def _allow(self, request: web.BaseRequest) -> web.Response:
        await request.read()
        return web.json_response({"response": {"allowed": True}})


async def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    async def use(certificate: ServingCertificate) -> None:
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "both.pem"
            file.write_bytes(certificate.chain + certificate.key)
            context.load_cert_chain(file)
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(SelfSignedCertificates().run, use)
    return context


async def main() -> None:
    """Obey until standard input ends."""
    configure_logging(json=True, level="warning")
    subject = Subject()
    await obey({"start": subject.start, "report": subject.report})


if __name__ == "__main__":
    asyncio.run(main())
