"""Certificates in a Secret that several replicas share."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.kube.conftest import Background
from trainer.keyring import KeyringAnswer, KeyringQuestion, renewal
from trainer.keyring.keyring import Keyring
from trainer.kube.errors import TransportError
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import SECRETS
from trainer.kube.serving import keyring_process
from trainer.kube.serving.certificates import ServingCertificate
from trainer.kube.serving.rotation import CertificateRotator, service_names
from trainer_kube_testing import FakeClient, ManualClock, eventually, statuses

KEY = ObjectKey("system", "webhook-certificates")
NAMES = service_names("webhook", "system")
AUTHORITY_LIFETIME, LIFETIME = timedelta(days=30), timedelta(days=3)
DAY = 24 * 3600.0
UNKNOWN_CURVE = """\
-----BEGIN CERTIFICATE-----
MIIBXjCCAQygAwIBAgIUEvGXifHvmn79jGan+i4TnkjEpW8wCgYIKoZIzj0EAwIw
DjEMMAoGA1UEAwwDb2RkMB4XDTI2MTEyMTExMjc1MVoXDTI2MTIyMTExMjc1MVow
DjEMMAoGA1UEAwwDb2RkME4wEAYHKoZIzj0CAQYFK4EEACADOgAEHB0dnjcrWD9q
RMyfoYr3OyRJ+Hp+g09RfmrZePOjuF+SYurFeR5Usa9f6AA92p/nc7CPaV3W8QCj
UzBRMB0GA1UdDgQWBBR7byCndNuCCJxfvQULHJyrk4cL4TAfBgNVHSMEGDAWgBR7
byCndNuCCJxfvQULHJyrk4cL4TAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMC
A0AAMD0CHQCKYs2r81ZHjOQzZQD/WegTNIUHGuuY2EqktSRpAhx5PTjLFTRZ5dJ1
sErztIbFFFdv1mEaesd0DTG9
-----END CERTIFICATE-----
"""
"""A certificate with a key on secp224k1, of which the cryptography package knows nothing."""


@pytest.fixture(autouse=True)
def short_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Months are much to wait for, even by hand."""
    monkeypatch.setattr(renewal, "AUTHORITY_LIFETIME", AUTHORITY_LIFETIME)
    monkeypatch.setattr(renewal, "LIFETIME", LIFETIME)


@pytest.fixture(autouse=True)
def questions(monkeypatch: pytest.MonkeyPatch) -> list[KeyringQuestion]:
    """What would start a process, and is answered in this one, which knows of the short lives."""
    asked: list[KeyringQuestion] = []

    def answer(question: KeyringQuestion) -> KeyringAnswer:
        asked.append(question)
        return renewal.answer(question)

    monkeypatch.setattr(keyring_process, "ask", answer)
    return asked


class Calendar(ManualClock):
    """A clock whose date can be changed without anybody waking up."""

    skipped = timedelta()

    def now(self) -> datetime:
        return super().now() + self.skipped


@dataclass
class Replica:
    """A process with a rotator and a server."""

    client: FakeClient
    clock: Calendar
    dns_names: tuple[str, ...] = NAMES
    shown: list[ServingCertificate] = field(default_factory=list)

    def __post_init__(self) -> None:
        names = [*self.dns_names, "127.0.0.1"]
        self.rotator = CertificateRotator(self.client, KEY, dns_names=names, clock=self.clock)

    async def use(self, certificate: ServingCertificate) -> None:
        self.shown.append(certificate)

    async def run(self) -> None:
        await self.rotator.run(self.use)


@pytest.fixture
def clock() -> Calendar:
    return Calendar()


@pytest.fixture
def client(clock: Calendar) -> FakeClient:
    return FakeClient(clock=clock)


@pytest.fixture
def replica(client: FakeClient, clock: Calendar) -> Replica:
    return Replica(client, clock)


def secret(client: FakeClient) -> Object:
    found = client.find(SECRETS, KEY.name, KEY.namespace)
    assert found is not None
    return found


def data(client: FakeClient) -> dict[str, bytes]:
    return {name: base64.b64decode(value) for name, value in secret(client).get("data", {}).items()}


def empty(**fields: Any) -> Object:
    metadata = {"name": KEY.name, "namespace": KEY.namespace, "labels": {"app": "webhook"}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque"} | fields


async def idle(clock: Calendar, replicas: int = 1) -> None:
    """Wait until all rotators wait for their next look, with the work in threads done."""

    def all_sleep() -> bool:
        # While a request is under way its time limit is one of those that sleep; no random pause is the same.
        return len(clock.sleeping) == replicas and not any(abs(pause - 30) < 1e-4 for pause in clock.sleeping)

    await eventually(all_sleep, within=10)


async def pass_time(clock: Calendar, seconds: float, replicas: int = 1) -> None:
    """Let the date change, and all rotators have a look."""
    await idle(clock, replicas)
    clock.skipped += timedelta(seconds=seconds)
    await clock.advance(60)
    await idle(clock, replicas)


async def test_secret_is_made(client: FakeClient, clock: Calendar, replica: Replica, background: Background) -> None:
    """With an authority and a certificate for the names, which is served, and whose bundle is handed on."""
    assert replica.rotator.problem == "the Secret system/webhook-certificates has not been read yet"
    background(replica.run())
    await idle(clock)
    assert secret(client)["type"] == "kubernetes.io/tls"
    stored = data(client)
    keyring = Keyring.parse(stored)
    assert keyring.names == {*NAMES, "127.0.0.1"}
    assert "webhook.system.svc" in keyring.names
    assert [shown.chain for shown in replica.shown] == [stored["tls.crt"]]
    assert replica.rotator.ca.pem == stored["ca.crt"]
    assert replica.rotator.problem == ""


@pytest.mark.parametrize(
    "contents",
    [
        pytest.param({}, id="no-data"),
        pytest.param({"data": {"ca.crt": "eA==", "ca.key": "eA==", "tls.crt": "eA==", "tls.key": "eA=="}}, id="broken"),
    ],
)
async def test_present_secret_is_filled(
    client: FakeClient, replica: Replica, background: Background, contents: Object
) -> None:
    """So nobody needs the right to create Secrets; what else it holds stays."""
    kept = contents.get("data", {}) | {"note": "a2VwdA=="}
    client.add(empty(**contents | {"data": kept} if contents else {}))
    background(replica.run())
    await eventually(lambda: bool(replica.shown), within=5)
    assert client.requests_of("create") == []
    assert secret(client)["type"] == "Opaque"
    assert secret(client)["metadata"]["labels"] == {"app": "webhook"}
    assert data(client).get("note") == (b"kept" if contents else None)
    Keyring.parse(data(client))


async def test_nothing_is_done_without_need(
    client: FakeClient, clock: Calendar, replica: Replica, background: Background, questions: list[KeyringQuestion]
) -> None:
    """A look each minute is one GET by name, and starts no process; the next one starts when something can be due."""
    background(replica.run())
    await idle(clock)
    await pass_time(clock, 0)
    before = len(client.requests)
    questions.clear()
    for _ in range(5):
        await pass_time(clock, 0)
    asked = client.requests[before:]
    assert [(request.verb, request.name, request.namespace) for request in asked] == [("get", KEY.name, "system")] * 5
    assert len(replica.shown) == 1
    assert questions == []
    await pass_time(clock, 3700)
    assert (len(questions), len(replica.shown)) == (1, 1)


async def test_two_replicas_share(client: FakeClient, clock: Calendar, background: Background) -> None:
    """Both find nothing and make something; the one that comes second takes what the first has stored."""
    replicas = [Replica(client.peer(), clock) for _ in range(2)]
    holds = [replica.client.faults.hold(verb="create") for replica in replicas]
    for replica in replicas:
        background(replica.run())
    await eventually(lambda: all(hold.waiting for hold in holds), within=5)
    for hold in holds:
        hold.release()
    await idle(clock, 2)
    assert replicas[0].shown == replicas[1].shown
    assert replicas[0].rotator.ca.pem == replicas[1].rotator.ca.pem == data(client)["ca.crt"]


async def test_two_replicas_renew_once(client: FakeClient, clock: Calendar, background: Background) -> None:
    """Both find the certificate due; one writes, the other meets a conflict and takes what is there."""
    replicas = [Replica(client.peer(), clock) for _ in range(2)]
    for replica in replicas:
        background(replica.run())
    await idle(clock, 2)
    first = replicas[0].shown[0]
    holds = [replica.client.faults.hold(verb="update") for replica in replicas]
    clock.skipped += timedelta(days=2.1)
    await clock.advance(60)
    await eventually(lambda: all(hold.waiting for hold in holds), within=5)
    for hold in holds:
        hold.release()
    await idle(clock, 2)
    assert replicas[0].shown == replicas[1].shown
    assert [len(replica.shown) for replica in replicas] == [2, 2]
    assert replicas[0].shown[1] != first


async def test_server_that_comes_later_needs_no_api_server(
    client: FakeClient, clock: Calendar, replica: Replica, background: Background
) -> None:
    """It shows what the others show."""
    shown: list[ServingCertificate] = []

    async def use(certificate: ServingCertificate) -> None:
        shown.append(certificate)

    background(replica.run())
    await idle(clock)
    client.faults.fail(TransportError("down"), times=None)
    background(replica.rotator.run(use))
    await eventually(lambda: shown == replica.shown, within=10)
    await eventually(lambda: replica.rotator.problem == "down", within=10)


async def test_authority_changes_in_three_steps(
    client: FakeClient, clock: Calendar, replica: Replica, background: Background
) -> None:
    """New beside old, then a certificate of the new one, then the new one alone."""
    background(replica.run())
    await idle(clock)
    bundles = [data(client)["ca.crt"]]
    # As long as a certificate lives, so that it is renewed in between.
    for _ in range(11):
        await pass_time(clock, 2.1 * DAY)
        if data(client)["ca.crt"] != bundles[-1]:
            break
    bundles.append(data(client)["ca.crt"])
    assert bundles[1].endswith(bundles[0])
    assert len(bundles[1]) > len(bundles[0])
    assert replica.rotator.ca.pem == bundles[1]
    shown = len(replica.shown)
    assert Keyring.parse(data(client)).signer == Keyring.parse(data(client)).authorities[1]
    await pass_time(clock, 3700)
    assert Keyring.parse(data(client)).signer == Keyring.parse(data(client)).authorities[0]
    assert len(replica.shown) == shown + 1
    await pass_time(clock, 3700)
    assert bundles[1].startswith(data(client)["ca.crt"])
    assert replica.rotator.ca.pem == data(client)["ca.crt"] != bundles[1]
    assert len(replica.shown) == shown + 1


async def test_deleted_secret_is_restored(
    client: FakeClient, clock: Calendar, replica: Replica, background: Background
) -> None:
    """What all replicas show and API servers trust stays in use."""
    background(replica.run())
    await idle(clock)
    before = data(client)
    client.remove(SECRETS, KEY.name, KEY.namespace)
    await pass_time(clock, 0)
    assert data(client) == before
    assert len(replica.shown) == 1


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"tls.crt": "eA=="}, id="certificate"),
        pytest.param({"ca.crt": base64.b64encode(UNKNOWN_CURVE.encode()).decode()}, id="unknown-curve"),
    ],
)
async def test_broken_secret_is_restored(
    client: FakeClient, clock: Calendar, replica: Replica, background: Background, broken: dict[str, str]
) -> None:
    """Whatever stands there, the server goes on, and nobody has to trust another authority at once."""
    background(replica.run())
    await idle(clock)
    before = data(client)
    client.add(secret(client) | {"data": secret(client)["data"] | broken})
    await pass_time(clock, 0)
    await pass_time(clock, 0)
    assert data(client) == before
    assert len(replica.shown) == 1


async def test_secret_of_another_is_left_alone(
    client: FakeClient, clock: Calendar, replica: Replica, background: Background
) -> None:
    """One with a certificate and no key of an authority is kept by cert-manager or a person."""
    client.add(empty(data={"tls.crt": "eA==", "tls.key": "eA=="}))
    with capture_logs() as logs:
        background(replica.run())
        await idle(clock)
        await pass_time(clock, 0)
    assert "holds a certificate without ca.key, so somebody else keeps it" in replica.rotator.problem
    assert client.requests_of("update", "create") == []
    assert len([entry for entry in logs if entry["log_level"] == "warning"]) == 1
    assert replica.shown == []


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        pytest.param(TransportError("connection refused"), "connection refused", id="down"),
        pytest.param(
            statuses.failure(403, "Forbidden", "secrets is forbidden"),
            "secrets is forbidden; grant get and update on it, and create on secrets or make an empty one",
            id="forbidden",
        ),
    ],
)
async def test_failures_are_reported_and_retried(
    client: FakeClient, clock: Calendar, replica: Replica, background: Background, fault: Exception, problem: str
) -> None:
    """Said once, tried again after a second or two, then less often."""
    scripted = client.faults.fail(fault, times=None)
    with capture_logs() as logs:
        background(replica.run())
        await idle(clock)
        assert 1 <= clock.sleeping[0] < 1.5
        await eventually(lambda: len(client.requests) >= 4, within=600, clock=clock)
        await idle(clock)
        assert replica.rotator.problem == problem
        assert clock.sleeping[0] >= 4
        scripted.end()
        await clock.advance_to_next()
        await idle(clock)
        assert replica.shown
    assert replica.rotator.problem == ""
    assert [entry["error"] for entry in logs if entry["log_level"] == "warning"] == [problem]


async def test_step_that_cannot_be_written_is_tried_again(
    client: FakeClient, clock: Calendar, replica: Replica, background: Background
) -> None:
    """What was answered once does not count as done."""
    background(replica.run())
    await idle(clock)
    client.faults.fail(TransportError("down"), verb="update")
    await pass_time(clock, 2.1 * DAY)
    assert replica.rotator.problem == "down"
    assert len(replica.shown) == 1
    await clock.advance(60)
    await eventually(lambda: len(replica.shown) == 2, within=5)
    assert replica.shown[1].expiry == Keyring.parse(data(client)).certificate.not_valid_after_utc


async def test_server_that_does_not_answer_is_given_up(
    client: FakeClient, clock: Calendar, replica: Replica, background: Background
) -> None:
    """After half a minute; others who wait for a refresh go on as well."""
    client.faults.partition()
    background(replica.run())
    await clock.advance(31)
    assert replica.rotator.problem == "no answer about the Secret system/webhook-certificates within 30 s"


async def test_keys_are_never_logged(
    client: FakeClient, clock: Calendar, replica: Replica, background: Background
) -> None:
    """Neither in events nor as what the rotator looks like."""
    with capture_logs() as logs:
        background(replica.run())
        await pass_time(clock, 2.1 * DAY)
    assert any(entry["event"] == "renewed certificates" for entry in logs)
    for name in ("tls.key", "ca.key"):
        secret_line = data(client)[name].decode().splitlines()[1]
        assert secret_line not in str(logs)
        assert secret_line not in repr(replica.shown)


@pytest.mark.parametrize(
    ("key", "names", "message"),
    [
        pytest.param(KEY, (), "at least one DNS name", id="no-names"),
        pytest.param(ObjectKey("", "s"), NAMES, "needs a namespace and a name, got 's'", id="no-namespace"),
    ],
)
def test_arguments_are_checked(client: FakeClient, key: ObjectKey, names: tuple[str, ...], message: str) -> None:
    """Before anything runs."""
    with pytest.raises(ValueError, match=message):
        CertificateRotator(client, key, dns_names=names)
