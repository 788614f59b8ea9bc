"""The servers of a manager: over TLS, trusted by the API server, with the rights that the manifests give."""

from __future__ import annotations

import asyncio
import base64
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest
import yaml
from anyio.to_thread import run_sync

from packages.sweeps.tests.samples import sweep
from tests.kube.certificates import Authority
from tests.kube.webhook.serving import review_of
from tests.webhooks.blueprints import RUNTIMES, StaticRuntimes, blueprint, job
from tests.webhooks.nets import pipeline
from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.components import Webhooks
from trainer.configuration.configuration import Configuration
from trainer.configuration.sections import MetricsAuthConfiguration, MetricsConfiguration, TlsConfiguration
from trainer.kube.errors import ConfigurationError, ForbiddenError, KubeError, NotFoundError
from trainer.kube.manager.manager import Manager
from trainer.kube.manager.metrics_server import MetricsServer
from trainer.kube.objects import Object, name_of
from trainer.kube.resource import MUTATING_WEBHOOK_CONFIGURATIONS, SECRETS, VALIDATING_WEBHOOK_CONFIGURATIONS
from trainer.kube.webhook.server import WebhookServer
from trainer.manager import add_servers, certificates_of
from trainer.webhooks.handlers import AdmissionHandlers
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient, ManualClock, settle
from trainer_sweeps.admission import SweepAdmission

ROOT = Path(__file__).parents[1]
RESOURCES = (
    TRAIN_JOBS,
    TRAINING_RUNTIMES,
    CLUSTER_TRAINING_RUNTIMES,
    JOBSETS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
)


@pytest.fixture(scope="module")
def manifests() -> list[Object]:
    """What `kubectl apply -k config/webhook` would apply."""
    command: list[str | Path] = [Path(sys.executable).parent / "kubectl", "kustomize", ROOT / "config" / "webhook"]
    return list(
        yaml.load_all(subprocess.run(command, capture_output=True, text=True, check=True).stdout, yaml.CSafeLoader)
    )


def of_kind(objects: list[Object], kind: str) -> Object:
    """The only object of a kind."""
    (found,) = [obj for obj in objects if obj["kind"] == kind]
    return found


def servers_of(manager: Manager, configuration: Configuration) -> tuple[WebhookServer | None, MetricsServer | None]:
    """What a manager listens with."""
    admission = AdmissionHandlers(pipeline(), StaticRuntimes(RUNTIMES.values()))
    webhooks = Webhooks()
    webhooks.add(
        admission,
        validating=configuration.webhook.validating_webhook_configuration_name,
        mutating=configuration.webhook.mutating_webhook_configuration_name,
    )
    webhooks.add(SweepAdmission(pipeline(), manager.api_reader))
    return add_servers(manager, configuration, webhooks, certificates_of(manager, configuration, "trainer-system"))


def webhooks_only(*hosts: str, **sections: Object) -> Configuration:
    """Webhooks on any free port, which no file can ask for."""
    configuration = Configuration.from_object(sections | {"webhook": {"host": "127.0.0.1", "hosts": list(hosts)}})
    webhook = configuration.webhook.model_copy(update={"port": 0})
    return configuration.without_servers().model_copy(update={"webhook": webhook})


def with_metrics(configuration: Configuration, **settings: Any) -> Configuration:
    """The same with a metrics server on any free port."""
    metrics = MetricsConfiguration(bind_address="127.0.0.1:0", **settings)
    return configuration.model_copy(update={"metrics": metrics})


@asynccontextmanager
async def serving(client: FakeClient, *hosts: str, **sections: Object) -> AsyncIterator[WebhookServer]:
    """A manager that serves the webhooks on a free port."""
    manager = Manager(client)
    server = servers_of(manager, webhooks_only(*hosts, **sections))[0]
    assert server is not None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await server.wait_for_start()
        yield server
        tasks.cancel_scope.cancel()


async def test_defaults_are_those_of_the_manifests(manifests: list[Object]) -> None:
    """Names in the configuration's defaults and in the manifests are the same."""
    configuration = Configuration()
    management, webhook = configuration.cert_management, configuration.webhook

    assert management.webhook_secret_name == name_of(of_kind(manifests, "Secret"))
    assert management.webhook_service_name == name_of(of_kind(manifests, "Service"))
    names = (webhook.validating_webhook_configuration_name, webhook.mutating_webhook_configuration_name)
    kinds = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
    assert names == tuple(name_of(of_kind(manifests, kind)) for kind in kinds)


@pytest.mark.parametrize("kind", ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"])
def test_manifests(manifests: list[Object], kind: str) -> None:
    """Every kind has a webhook that fails closed within 5 s, has no side effects, and is not asked about the status."""
    webhooks = of_kind(manifests, kind)["webhooks"]

    kinds = (TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)
    # What can be wrong with a sweep never changes, and it has no defaults beside those of its schema.
    of_sweeps = {OPTIMIZATION_JOBS.plural: ["CREATE"]} if kind.startswith("Validating") else {}
    assert {webhook["rules"][0]["resources"][0]: webhook["rules"][0]["operations"] for webhook in webhooks} == {
        resource.plural: ["CREATE", "UPDATE"] for resource in kinds
    } | of_sweeps
    for webhook in webhooks:
        (rule,) = webhook["rules"]
        assert len(rule["resources"]) == 1
        policies = ("failurePolicy", "timeoutSeconds", "sideEffects", "matchPolicy", "admissionReviewVersions")
        assert [webhook[policy] for policy in policies] == ["Fail", 5, "None", "Equivalent", ["v1"]]
        service = webhook["clientConfig"]["service"]
        assert (service["name"], service["namespace"]) == ("trainer-webhook", "trainer-system")
        assert ("objectSelector" in webhook) == ("runtime" in webhook["name"])


async def test_every_path_of_the_manifests_is_served(manifests: list[Object]) -> None:
    """The API server finds a webhook behind every path that the manifests name, and trusts its certificate."""
    configurations = [obj for obj in manifests if obj["kind"].endswith("WebhookConfiguration")]
    client = FakeClient(*configurations, RUNTIMES["plain"], resources=RESOURCES)
    async with serving(client, "127.0.0.1") as server:
        with anyio.fail_after(5):
            while not all("caBundle" in w["clientConfig"] for obj in injected(client) for w in obj["webhooks"]):
                await settle()
        for configuration in injected(client):
            for webhook in configuration["webhooks"]:
                response = await ask(server, webhook)
                assert response["allowed"], (webhook["name"], response)


@pytest.mark.parametrize(
    ("names", "common_name", "status"),
    [
        pytest.param([], "kube-apiserver", 200, id="of-the-authority"),
        pytest.param(["kube-apiserver"], "kube-apiserver", 200, id="of-the-name"),
        pytest.param(["kube-apiserver"], "kubelet", 403, id="of-another-name"),
    ],
)
async def test_who_may_ask(names: list[str], common_name: str, status: int, tmp_path: Path) -> None:
    """A client with a certificate of the authority in the configuration; strangers do not get through TLS."""
    authority, server_pair = Authority("clients"), Authority("servers").issue("w", "127.0.0.1")
    pair = authority.issue(common_name)
    files = {"ca": authority.pem, "tls.crt": server_pair.chain, "tls.key": server_pair.key}
    files |= {"client.crt": pair.chain, "client.key": pair.key}
    for name, content in files.items():
        await anyio.Path(tmp_path / name).write_bytes(content)
    given = {"host": "127.0.0.1", "clientCAFile": str(tmp_path / "ca"), "clientNames": names}
    management = {"enable": False, "certificateDirectory": str(tmp_path)}
    configured = Configuration.from_object({"webhook": given, "certManagement": management})
    configuration = configured.without_servers().model_copy(
        update={"webhook": configured.webhook.model_copy(update={"port": 0})}
    )
    manager = Manager(FakeClient(resources=RESOURCES))
    server = servers_of(manager, configuration)[0]
    assert server is not None
    known, stranger = (ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) for _ in range(2))
    for context in (known, stranger):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    await run_sync(known.load_cert_chain, tmp_path / "client.crt", tmp_path / "client.key")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await server.wait_for_start()
        url = f"https://127.0.0.1:{server.address[1]}/validate-trainer-kubeflow-org-v2alpha1-trainjob"
        async with aiohttp.ClientSession() as session:
            async with session.post(url, json=review_of(object=job()), ssl=known) as answer:
                assert answer.status == status
            with pytest.raises((aiohttp.ClientError, ConnectionError, ssl.SSLError)):
                await session.post(url, json=review_of(object=job()), ssl=stranger)
        tasks.cancel_scope.cancel()


def injected(client: FakeClient) -> list[Object]:
    """Both configurations as they are stored."""
    return [
        *client.objects(VALIDATING_WEBHOOK_CONFIGURATIONS),
        *client.objects(MUTATING_WEBHOOK_CONFIGURATIONS),
    ]


async def ask(server: WebhookServer, webhook: Object) -> Object:
    """What a webhook answers to an object of its kind, asked as the API server would."""
    config = webhook["clientConfig"]
    trusted = ssl.create_default_context(cadata=base64.b64decode(config["caBundle"]).decode())
    obj = {
        "trainjobs": job(),
        "trainingruntimes": blueprint(kind="TrainingRuntime"),
        "clustertrainingruntimes": blueprint(),
        "optimizationjobs": sweep(("trainJobTemplate.spec.runtimeRef.name", "plain")),
    }[webhook["rules"][0]["resources"][0]]
    kind = {"group": "trainer.kubeflow.org", "version": "v2alpha1", "kind": obj["kind"]}
    resource = {
        "group": "trainer.kubeflow.org",
        "version": "v2alpha1",
        "resource": webhook["rules"][0]["resources"][0],
    }
    review = review_of(kind=kind, resource=resource, object=obj, name=name_of(obj))
    url = f"https://127.0.0.1:{server.address[1]}{config['service']['path']}?timeout=5s"
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusted)) as session,
        session.post(url, json=review) as answer,
    ):
        assert answer.status == 200
        response: Object = (await answer.json())["response"]
        return response


async def test_the_manifests_allow_what_serving_needs(manifests: list[Object]) -> None:
    """Keeping certificates and injecting the CA needs one Secret and two configurations, and no rule idles."""
    configurations = [obj for obj in manifests if obj["kind"].endswith("WebhookConfiguration")]
    secret = of_kind(manifests, "Secret")
    secret["metadata"]["namespace"] = "trainer-system"
    client = FakeClient(*configurations, secret, resources=RESOURCES)
    async with serving(client):
        with anyio.fail_after(5):
            while not all("caBundle" in w["clientConfig"] for obj in injected(client) for w in obj["webhooks"]):
                await settle()
    used = {(request.resource.plural, request.verb) for request in client.requests}
    rules = [*of_kind(manifests, "ClusterRole")["rules"], *of_kind(manifests, "Role")["rules"]]
    allowed = {(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}
    assert used <= allowed
    assert {plural for plural, _ in used} == {plural for plural, _ in allowed}
    assert [rule["resourceNames"] for rule in rules] == [
        ["validator.trainer.kubeflow.org"],
        ["defaulter.trainer.kubeflow.org"],
        ["trainer-webhook-certificates"],
    ]
    named = {SECRETS: "trainer-webhook-certificates"}
    assert all(request.name == named[request.resource] for request in client.requests if request.resource in named)


async def test_files_of_cert_manager(tmp_path: Path) -> None:
    """Certificates from a directory are served as they are; nobody's configurations are written."""
    pair = Authority().issue("webhook", "127.0.0.1")
    (tmp_path / "tls.crt").write_bytes(pair.chain)
    (tmp_path / "tls.key").write_bytes(pair.key)
    client = FakeClient(resources=RESOURCES)

    async with serving(client, certManagement={"enable": False, "certificateDirectory": str(tmp_path)}) as server:
        assert server.address[1] != 0

    assert client.requests == []


async def shown_certificate(address: tuple[str, int]) -> str:
    """The certificate that a server shows."""
    return await run_sync(ssl.get_server_certificate, address)


async def test_webhooks_and_metrics_show_one_certificate() -> None:
    """Who trusts the authority of the webhooks can scrape the metrics, too."""
    manager = Manager(FakeClient(resources=RESOURCES))
    webhooks, metrics = servers_of(manager, with_metrics(webhooks_only()))
    assert webhooks is not None
    assert metrics is not None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await webhooks.wait_for_start()
        await metrics.wait_for_start()
        certificates = [await shown_certificate(server.address) for server in (webhooks, metrics)]
        tasks.cancel_scope.cancel()

    assert certificates[0] == certificates[1]


async def test_metrics_without_webhooks_need_no_secret() -> None:
    """They have a certificate of their own, and the API server is asked nothing."""
    client = FakeClient(resources=RESOURCES)
    manager = Manager(client)
    webhooks, metrics = servers_of(manager, with_metrics(Configuration().without_servers()))
    assert metrics is not None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await metrics.wait_for_start()
        assert await shown_certificate(metrics.address)
        tasks.cancel_scope.cancel()

    assert webhooks is None
    assert client.requests == []


async def test_tls_is_as_configured() -> None:
    """A client that speaks only what the configuration rules out is refused."""
    manager = Manager(FakeClient(resources=RESOURCES))
    tls = TlsConfiguration(min_version="1.3")
    settings = with_metrics(Configuration().without_servers().model_copy(update={"tls": tls}))
    _, metrics = servers_of(manager, settings)
    assert metrics is not None
    old = ssl.create_default_context()
    old.check_hostname, old.verify_mode, old.maximum_version = False, ssl.CERT_NONE, ssl.TLSVersion.TLSv1_2
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await metrics.wait_for_start()
        with pytest.raises(anyio.BrokenResourceError):
            await anyio.connect_tcp(*metrics.address, tls=True, ssl_context=old)
        assert await shown_certificate(metrics.address)
        tasks.cancel_scope.cancel()


async def test_metrics_for_everybody() -> None:
    """Whoever switches TLS and authorisation off has metrics in the clear, and the API server is asked nothing."""
    client = FakeClient(resources=RESOURCES)
    manager = Manager(client)
    auth = MetricsAuthConfiguration(enabled=False)
    settings = with_metrics(Configuration().without_servers(), secure_serving=False, auth=auth)
    server = servers_of(manager, settings)[1]
    assert server is not None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await server.wait_for_start()
        url = f"http://127.0.0.1:{server.address[1]}/metrics"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            assert answer.status == 200
        tasks.cancel_scope.cancel()

    assert client.requests == []


def test_no_servers() -> None:
    """Nothing listens when everything is switched off."""
    assert servers_of(Manager(FakeClient()), Configuration().without_servers()) == (None, None)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        pytest.param(
            ForbiddenError(403, "no"),
            "no serving certificate within 120 s: no; apply config/webhook, which grants get and update on it, "
            "or set webhook.enabled: false in the configuration, and not the gate TrainJobStatus",
            id="no right",
        ),
        pytest.param(
            NotFoundError(404, 'namespaces "trainer-system" not found'),
            'no serving certificate within 120 s: namespaces "trainer-system" not found',
            id="no namespace",
        ),
    ],
)
async def test_a_secret_that_cannot_be_kept(error: KubeError, message: str) -> None:
    """A manager without its certificate ends after two minutes, and names what is missing and the remedy."""
    clock = ManualClock()
    client = FakeClient(resources=RESOURCES, clock=clock)
    client.faults.fail(error, times=None, resource=SECRETS)
    manager = Manager(client, clock=clock)
    servers_of(manager, webhooks_only())

    async def end() -> str:
        with pytest.raises(ConfigurationError) as caught:
            await manager.run()
        return str(caught.value)

    running = asyncio.create_task(end())
    while not running.done():
        await settle()
        await clock.advance(30)

    assert await running == message
