"""The dashboard of a cluster as a process: its TLS, its probes, and who may connect."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import anyio.to_thread
import pytest

from packages.dashboard.tests.conftest import train_job
from packages.dashboard.tests.members import READS, TOKEN, ClusterClient
from packages.dashboard.tests.past_trainings import KUBE_SYSTEM, past_training, save
from tests.kube.certificates import Authority, Pair
from trainer.kube.errors import ConfigurationError
from trainer.kube.rest.tls import load_pair
from trainer.kube.serving.tls import CERTIFICATE_TIMEOUT
from trainer_dashboard.access.cluster_authenticator import Proxy
from trainer_dashboard.cluster_server import ClusterServer, ClusterServerOptions
from trainer_dashboard.history.database import Database
from trainer_kube_testing import ManualClock

SERVERS, CLIENTS = Authority("servers"), Authority("clients")
FROM_PROXY = {"X-Remote-User": "jane", "X-Requested-With": "trainer-dashboard"}


@pytest.fixture
def cluster() -> ClusterClient:
    """One TrainJob, which Jane may see."""
    client = ClusterClient(train_job())
    client.grant(*READS)
    return client


@asynccontextmanager
async def serving(
    cluster: ClusterClient, database: Database | None = None, **options: Any
) -> AsyncIterator[ClusterServer]:
    """A dashboard on loopback."""
    made = ClusterServerOptions(host="127.0.0.1", port=0, health_port=0, **options)
    server = ClusterServer(cluster, made, database=database)
    listening = anyio.Event()

    async def started() -> None:
        listening.set()

    async with anyio.create_task_group() as tasks:

        async def run() -> None:
            await server.run(started=started)

        tasks.start_soon(run)
        with anyio.fail_after(30):
            await listening.wait()
        yield server
        tasks.cancel_scope.cancel()


async def ask(server: ClusterServer, pair: Pair | None = None, **headers: str) -> int:
    """The status of the answer to somebody with these headers, who may show a certificate."""
    context = ssl.create_default_context(cadata=SERVERS.pem.decode())
    if pair is not None:
        await anyio.to_thread.run_sync(load_pair, context, pair.chain, pair.key)
    connector = aiohttp.TCPConnector(ssl=context, force_close=True)
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.get(f"{server.address}api/cluster", headers=headers) as answer,
    ):
        return answer.status


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    """A directory with a certificate for loopback, and the authority of clients."""
    pair = SERVERS.issue("dashboard", "127.0.0.1")
    (tmp_path / "tls.crt").write_bytes(pair.chain)
    (tmp_path / "tls.key").write_bytes(pair.key)
    (tmp_path / "clients.crt").write_bytes(CLIENTS.pem)
    return tmp_path


async def test_certificate_of_a_directory(cluster: ClusterClient, certificates: Path) -> None:
    """Users find the certificate that they expect."""
    async with serving(cluster, tls_directory=certificates) as server:
        assert await ask(server, Authorization=f"Bearer {TOKEN}") == 200
        assert await ask(server) == 401


async def test_self_signed_certificate(cluster: ClusterClient) -> None:
    """Without one the traffic is encrypted all the same, and nothing is answered in plain HTTP."""
    async with serving(cluster) as server, aiohttp.ClientSession() as session:
        async with session.get(server.address, ssl=False) as answer:
            assert answer.status == 200
        with pytest.raises((aiohttp.ClientError, OSError)):
            await session.get(server.address.replace("https", "http"))


async def test_client_certificates(cluster: ClusterClient, certificates: Path) -> None:
    """Only who shows a certificate of the authority may connect, and only the proxy says who asks."""
    proxy = Proxy(has_certificate=True, names=frozenset({"front-proxy"}))
    ca = certificates / "clients.crt"
    async with serving(cluster, tls_directory=certificates, client_ca=ca, proxy=proxy) as server:
        front, other = CLIENTS.issue("front-proxy"), CLIENTS.issue("other")
        assert await ask(server, front, **FROM_PROXY) == 200
        assert await ask(server, front) == 403
        assert await ask(server, other, **FROM_PROXY) == 401
        assert await ask(server, other, Authorization=f"Bearer {TOKEN}") == 200
        for stranger in (None, Authority("strangers").issue("front-proxy")):
            with pytest.raises((aiohttp.ClientError, OSError)):
                await ask(server, stranger, **FROM_PROXY)


async def test_history(cluster: ClusterClient, tmp_path: Path) -> None:
    """What a recorder has written about the cluster is shown to who may list TrainJobs."""
    database = await anyio.to_thread.run_sync(Database, f"sqlite:///{tmp_path}/history.db")
    await anyio.to_thread.run_sync(database.migrate)
    await anyio.to_thread.run_sync(save, database, past_training("one", namespace="default"))
    cluster.add(KUBE_SYSTEM)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with serving(cluster, database, is_secure=False) as server, aiohttp.ClientSession() as session:
        async with session.get(f"{server.address}api/history", headers=headers) as answer:
            assert [each["uid"] for each in (await answer.json())["trainings"]] == ["one"]
        async with session.get(f"{server.address}api/history") as answer:
            assert answer.status == 401
    await anyio.to_thread.run_sync(database.close)


async def test_probes(cluster: ClusterClient) -> None:
    """Probes need no token, and learn nothing; it is ready when it knows all TrainJobs."""
    async with serving(cluster, is_secure=False) as server, aiohttp.ClientSession() as session:
        host, port = server.health_address
        with anyio.fail_after(20):
            for path in ("healthz", "readyz"):
                while True:
                    async with session.get(f"http://{host}:{port}/{path}") as answer:
                        if answer.status == 200:
                            break
        async with session.get(f"http://{host}:{port}/api/cluster") as answer:
            assert answer.status == 404


async def test_no_certificate(cluster: ClusterClient, tmp_path: Path) -> None:
    """Where there is none in time, it ends with the reason."""
    clock = ManualClock()
    options = ClusterServerOptions(host="127.0.0.1", port=0, health_port=0, tls_directory=tmp_path)
    server = ClusterServer(cluster, options, clock=clock)

    async def run_without_certificate() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(server.run, started=anyio.sleep_forever))
            await clock.wait_for_sleepers(2)
            await clock.advance(CERTIFICATE_TIMEOUT + 1)

    with pytest.raises(ExceptionGroup) as raised:
        await run_without_certificate()
    assert raised.group_contains(ConfigurationError, match="no certificate for the dashboard within 120 s")
