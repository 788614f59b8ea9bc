"""CA bundles in webhook configurations."""

from __future__ import annotations

import base64
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from tests.kube.conftest import Background
from tests.kube.webhook.serving import PATH
from trainer.kube import Manager
from trainer.kube.errors import KubeError
from trainer.kube.objects import Object
from trainer.kube.resource import MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS, Resource
from trainer.kube.serving.certificates import CertificateSource, Use
from trainer.kube.webhook.ca_injection import FIELD_MANAGER, CaInjector
from trainer_kube_testing import FakeClient, ManualClock, eventually, settle, statuses

VALIDATING, MUTATING = VALIDATING_WEBHOOK_CONFIGURATIONS, MUTATING_WEBHOOK_CONFIGURATIONS


class Source(CertificateSource):
    """A source whose bundle the test sets; another replica may have stored a newer one."""

    def __init__(self, pem: bytes = b"ours") -> None:
        super().__init__("", None)
        self.newer = b""
        self.refreshed = 0
        self.ca.set(pem)

    async def run(self, use: Use) -> None:
        await anyio.sleep_forever()

    async def refresh(self) -> None:
        self.refreshed += 1
        if self.newer:
            self.ca.set(self.newer)

    async def _look(self) -> None:
        raise NotImplementedError

    def _pause(self) -> float:
        raise NotImplementedError


def configuration(resource: Resource, *bundles: bytes | None, name: str = "w", **labels: str) -> Object:
    """A webhook configuration with a webhook for each bundle."""
    webhooks = [
        {
            "name": f"w{index}.example.com",
            "clientConfig": {"service": {"name": "s", "namespace": "n", "path": PATH}}
            | ({} if bundle is None else {"caBundle": encoded(bundle)}),
        }
        for index, bundle in enumerate(bundles)
    ]
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "webhooks": webhooks}


def encoded(bundle: bytes) -> str:
    return base64.b64encode(bundle).decode()


def bundles(client: FakeClient, resource: Resource = VALIDATING, name: str = "w") -> list[bytes]:
    found = client.find(resource, name)
    assert found is not None
    return [base64.b64decode(webhook["clientConfig"].get("caBundle", "")) for webhook in found["webhooks"]]


@pytest.fixture
def client(clock: ManualClock) -> FakeClient:
    return FakeClient(clock=clock)


def start(client: FakeClient, clock: ManualClock, background: Background, source: Source, **names: Any) -> CaInjector:
    """An injector in a manager that runs."""
    manager = Manager(client, clock=clock)
    injector = CaInjector(manager, source, **(names or {"validating": ["w"]}))
    background(manager.run())
    return injector


async def test_bundle_gets_into_every_webhook(client: FakeClient, clock: ManualClock, background: Background) -> None:
    """Of both kinds, where it is missing or another; nothing else changes, and nothing else is looked at."""
    client.add(configuration(VALIDATING, None, b"other", b"ours"))
    client.add(configuration(MUTATING, None))
    client.add(configuration(VALIDATING, None, name="theirs"))
    injector = start(client, clock, background, Source(), validating=["w"], mutating=["w"])
    await settle()
    assert bundles(client) == [b"ours"] * 3
    assert bundles(client, MUTATING) == [b"ours"]
    assert bundles(client, VALIDATING, "theirs") == [b""]
    [patch, _] = client.requests_of("patch")
    assert patch.field_manager == FIELD_MANAGER
    assert [operation["path"] for operation in patch.body] == [
        "/metadata/resourceVersion",
        "/webhooks/0/clientConfig/caBundle",
        "/webhooks/1/clientConfig/caBundle",
    ]
    await injector.check()
    selections = {str(request.selection) for request in client.requests_of("list", "watch")}
    assert selections == {"fields=metadata.name=w"}


async def test_nothing_is_written_without_need(client: FakeClient, clock: ManualClock, background: Background) -> None:
    """A configuration that has the bundle is left alone, also when something else in it changes."""
    client.add(configuration(VALIDATING, b"ours"))
    source = Source()
    injector = start(client, clock, background, source)
    await settle()
    await injector.check()
    client.add(configuration(VALIDATING, b"ours", changed="yes"))
    await settle()
    assert client.requests_of("patch") == []
    assert source.refreshed == 0


async def test_new_bundle_is_written(client: FakeClient, clock: ManualClock, background: Background) -> None:
    """As soon as the source has it; as long as it has none, nothing is written, and the check tells why."""
    client.add(configuration(VALIDATING, None))
    source = Source(b"")
    source.problem = "the Secret is not there"
    injector = start(client, clock, background, source)
    await settle()
    with pytest.raises(KubeError, match="CA bundle for ValidatingWebhookConfiguration w is not known: the Secret is"):
        await injector.check()
    assert client.requests_of("patch") == []
    source.problem = ""
    source.ca.set(b"one")
    await eventually(lambda: bundles(client) == [b"one"], clock=clock, within=2)
    source.ca.set(b"two")
    await eventually(lambda: bundles(client) == [b"two"], clock=clock, within=2)


async def test_bundle_of_another_replica_is_not_undone(
    client: FakeClient, clock: ManualClock, background: Background
) -> None:
    """Who finds another bundle looks at the Secret first: it may have been renewed."""
    client.add(configuration(VALIDATING, b"newer"))
    source = Source()
    source.newer = b"newer"
    injector = start(client, clock, background, source)
    await settle()
    await injector.check()
    assert (source.refreshed, client.requests_of("patch")) == (1, [])
    assert bundles(client) == [b"newer"]


async def test_without_news_only_what_is_missing_is_filled_in(
    client: FakeClient, clock: ManualClock, background: Background
) -> None:
    """A replica that cannot read the Secret any more does not undo what the others write, endlessly."""
    client.add(configuration(VALIDATING, b"newer", None))
    source = Source()
    source.problem = "the Secret cannot be read"
    injector = start(client, clock, background, source)
    await clock.advance(300)
    assert bundles(client) == [b"newer", b"ours"]
    assert len(client.requests_of("patch")) == 1
    with pytest.raises(KubeError, match=r"w: its CA bundle may be newer .*: the Secret cannot be read"):
        await injector.check()
    source.problem, source.newer = "", b"newer"
    await eventually(lambda: bundles(client) == [b"newer", b"newer"], clock=clock, within=120)
    await injector.check()


async def test_two_that_do_not_agree_wait(client: FakeClient, clock: ManualClock, background: Background) -> None:
    """Replicas with different files, as while a Secret is mounted anew, do not write as fast as they can."""
    client.add(configuration(VALIDATING, None))
    peers = [client.peer(), client.peer()]
    for peer, bundle in zip(peers, (b"one", b"two"), strict=True):
        start(peer, clock, background, Source(bundle))
    for _ in range(600):
        await clock.advance(1)
    assert 4 < sum(len(peer.requests_of("patch")) for peer in peers) < 80


async def test_missing_configuration_is_waited_for(
    client: FakeClient, clock: ManualClock, background: Background
) -> None:
    """It is said once; when it comes, or comes again, it gets the bundle."""
    with capture_logs() as logs:
        injector = start(client, clock, background, Source())
        await clock.advance(3600)
        with pytest.raises(KubeError, match="ValidatingWebhookConfiguration w does not exist; it is waited for"):
            await injector.check()
    assert [entry["reason"] for entry in logs if entry["event"].startswith("could not inject")] == [
        "ValidatingWebhookConfiguration w does not exist; it is waited for"
    ]
    for _ in range(2):
        client.add(configuration(VALIDATING, None))
        await eventually(lambda: bundles(client) == [b"ours"], clock=clock, within=2)
        client.remove(VALIDATING, "w")
        await settle()


async def test_other_order_is_noticed(client: FakeClient, clock: ManualClock, background: Background) -> None:
    """A write that was made for another state of the configuration is refused, and made anew without a complaint."""
    client.add(configuration(VALIDATING, None))
    hold = client.faults.hold(verb="patch")
    with capture_logs() as logs:
        start(client, clock, background, Source())
        await eventually(lambda: bool(hold.waiting), clock=clock, within=2)
        client.add(configuration(VALIDATING, b"ours", None))
        hold.release()
        await eventually(lambda: bundles(client) == [b"ours", b"ours"], clock=clock, within=5)
    assert [entry for entry in logs if entry["log_level"] == "warning"] == []


async def test_failures_are_reported_and_retried(
    client: FakeClient, clock: ManualClock, background: Background
) -> None:
    """With the rights that are missing; once, and others get their bundle meanwhile."""
    client.add(configuration(VALIDATING, None))
    client.add(configuration(MUTATING, None))
    forbidden = statuses.failure(403, "Forbidden", "w is forbidden")
    fault = client.faults.fail(forbidden, times=None, verb="patch", resource=VALIDATING)
    with capture_logs() as logs:
        injector = start(client, clock, background, Source(), validating=["w"], mutating=["w"])
        await eventually(lambda: bundles(client, MUTATING) == [b"ours"], clock=clock, within=2)
        await clock.advance(30)
        reason = (
            "ValidatingWebhookConfiguration w: w is forbidden; "
            "grant list, watch and patch on ValidatingWebhookConfiguration w"
        )
        with pytest.raises(KubeError) as raised:
            await injector.check()
        assert str(raised.value) == reason
        fault.end()
        await eventually(lambda: bundles(client) == [b"ours"], clock=clock, within=60)
    assert [entry["reason"] for entry in logs if entry["log_level"] == "warning"] == [reason]
    await injector.check()
