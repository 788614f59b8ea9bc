"""The webhooks in a manager: served over TLS, trusted by the API server, with the rights that the manifests give."""

from __future__ import annotations

import base64
import ssl
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import anyio
import pytest
import yaml

from tests.kube.certificates import Authority
from tests.kube.webhook.serving import review_of
from tests.webhooks.blueprints import RUNTIMES, StaticRuntimes, blueprint, job
from tests.webhooks.nets import pipeline
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.errors import ConfigurationError
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import name_of
from trainer.kube.resource import MUTATING_WEBHOOK_CONFIGURATIONS, SECRETS, VALIDATING_WEBHOOK_CONFIGURATIONS
from trainer.kube.testing import FakeClient, settle
from trainer.manager import ManagerConfiguration
from trainer.webhooks.configuration import WebhookConfiguration
from trainer.webhooks.handlers import Admission

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from trainer.kube.objects import Object
    from trainer.kube.webhook.server import WebhookServer

ROOT = Path(__file__).parents[2]
RESOURCES = (
    TRAIN_JOBS,
    TRAINING_RUNTIMES,
    CLUSTER_TRAINING_RUNTIMES,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
)


@pytest.fixture(scope="module")
def manifests() -> list[Object]:
    """What `kubectl apply -k config/webhook` would apply."""
    command: list[str | Path] = [Path(sys.executable).parent / "kubectl", "kustomize", ROOT / "config" / "webhook"]
    return list(yaml.safe_load_all(subprocess.run(command, capture_output=True, text=True, check=True).stdout))


def of_kind(objects: list[Object], kind: str) -> Object:
    """The only object of a kind."""
    (found,) = [obj for obj in objects if obj["kind"] == kind]
    return found


@asynccontextmanager
async def serving(client: FakeClient, **settings: Any) -> AsyncIterator[WebhookServer]:
    """A manager that serves the webhooks on a free port."""
    manager = Manager(client)
    configuration = WebhookConfiguration(enabled=True, bind_address="127.0.0.1:0", **settings)
    server = configuration.serve(manager, Admission(pipeline(), StaticRuntimes(RUNTIMES.values())), "trainer-system")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await server.wait_for_start()
        yield server
        tasks.cancel_scope.cancel()


async def test_defaults_are_those_of_the_manifests(manifests: list[Object]) -> None:
    """Names in the configuration's defaults and in the manifests are the same."""
    configuration = WebhookConfiguration()

    assert configuration.secret_name == name_of(of_kind(manifests, "Secret"))
    assert configuration.service_name == name_of(of_kind(manifests, "Service"))
    names = (configuration.validating_webhook_configuration_name, configuration.mutating_webhook_configuration_name)
    kinds = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
    assert names == tuple(name_of(of_kind(manifests, kind)) for kind in kinds)


@pytest.mark.parametrize("kind", ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"])
def test_manifests(manifests: list[Object], kind: str) -> None:
    """Every kind has a webhook that fails closed within 5 s, has no side effects, and is not asked about the status."""
    webhooks = of_kind(manifests, kind)["webhooks"]

    assert {webhook["rules"][0]["resources"][0] for webhook in webhooks} == {
        resource.plural for resource in (TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)
    }
    for webhook in webhooks:
        (rule,) = webhook["rules"]
        assert rule["operations"] == ["CREATE", "UPDATE"]
        assert len(rule["resources"]) == 1
        policies = ("failurePolicy", "timeoutSeconds", "sideEffects", "matchPolicy", "admissionReviewVersions")
        assert [webhook[policy] for policy in policies] == ["Fail", 5, "None", "Equivalent", ["v1"]]
        service = webhook["clientConfig"]["service"]
        assert (service["name"], service["namespace"]) == ("trainer-webhook", "trainer-system")
        assert ("objectSelector" in webhook) == ("runtime" in webhook["name"])


async def test_every_path_of_the_manifests_is_served(manifests: list[Object]) -> None:
    """The API server finds a webhook behind every path that the manifests name, and trusts its certificate."""
    configurations = [obj for obj in manifests if obj["kind"].endswith("WebhookConfiguration")]
    client = FakeClient(*configurations, resources=RESOURCES)
    async with serving(client, hosts=["127.0.0.1"]) as server:
        with anyio.fail_after(5):
            while not all("caBundle" in w["clientConfig"] for obj in injected(client) for w in obj["webhooks"]):
                await settle()
        for configuration in injected(client):
            for webhook in configuration["webhooks"]:
                response = await ask(server, webhook)
                assert response["allowed"], (webhook["name"], response)


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

    async with serving(client, certificate_directory=str(tmp_path)) as server:
        assert server.address[1] != 0

    assert client.requests == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "webhook: {bindAddress: 9443}",
            "webhook.bindAddress: Invalid value: 9443: must be a string; put it in quotes",
            id="number",
        ),
        pytest.param(
            "webhook: {bindAddress: localhost}",
            'webhook.bindAddress: Invalid value: "localhost": must be host:port',
            id="address",
        ),
        pytest.param(
            "webhook: {secretname: a}", "webhook.secretname: Unknown field: did you mean secretName?", id="typo"
        ),
        pytest.param(
            "webhook: {secretName: ''}", 'webhook.secretName: Invalid value: "": must not be empty', id="empty"
        ),
    ],
)
def test_wrong_configuration(tmp_path: Path, text: str, message: str) -> None:
    """One line names the setting and the remedy."""
    path = tmp_path / "manager.yaml"
    path.write_text(text)

    with pytest.raises(ConfigurationError) as caught:
        ManagerConfiguration.load(path)

    assert str(caught.value) == f"{path}: {message}"


def test_off_unless_switched_on() -> None:
    """A manager without a configuration serves no webhooks."""
    assert not ManagerConfiguration().webhook.enabled
