"""An API server that dies, and webhooks that it cannot reach or that change their certificates."""

from __future__ import annotations

import base64
import json
import ssl
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from e2e.identity import NAMESPACE
from e2e.installation import HOST, WEBHOOKS
from e2e.leftovers import identities, repeated_events
from e2e.replicas import BRIEF, Replicas, fake_job
from e2e.submission import submit, submitting
from e2e.waiting import until
from trainer.keyring import CA_CERTIFICATES, CA_KEY, CERTIFICATE, KEY
from trainer.keyring.keyring import Keyring

pytestmark = pytest.mark.timeout(300)
SECRET = "trainer-webhook-certificates"
DAY = timedelta(days=1)
SETTLING = timedelta(hours=1)
"""How old an authority must be to sign."""
UNSETTLED = timedelta(seconds=10)
"""What a new authority lacks of that: time to see on a busy machine that it is trusted, and does not sign yet."""
POLL = 0.5
"""Seconds between two looks at the Secret, which are a minute otherwise."""


def test_api_server_restarted(replicas: Replicas) -> None:
    """SIGKILL under load, twice: what runs goes on, and each TrainJob that was accepted is trained once."""
    cluster = replicas.cluster
    long = submit(cluster, [fake_job(f"long-{number}") for number in range(5)]).accepted
    replicas.wait_for_state("Running", long)
    running = identities(cluster)
    with submitting(cluster, lambda number: fake_job(f"brief-{number}", BRIEF), pause=0.5) as brief:
        for _ in range(2):
            brief.wait_for_more(5)
            replicas.restart_api_server()
            # A leader that was away from its lease for too long ends, and its pod is started again.
            replicas.revive()
    assert not brief.refused
    replicas.wait_for_state("Complete", brief.accepted)
    assert running.items() <= identities(cluster).items()
    replicas.finish_pods()
    replicas.wait_for_state("Complete", long)
    assert set(identities(cluster, "jobsets")) == {f"JobSet {name}" for name in [*long, *brief.accepted]}
    assert not repeated_events(cluster)


def test_webhooks_down(replicas: Replicas) -> None:
    """Nothing unchecked is stored while no webhook answers, and the refusal says so; what is stored goes on."""
    cluster = replicas.cluster
    submit(cluster, [fake_job("long"), fake_job("other")])
    replicas.wait_for_state("Running", ["long", "other"])
    late = yaml.safe_dump(fake_job("late", BRIEF))
    with replicas.balancer.cut():
        refused = cluster.kubectl("create", "-f", "-", stdin=late, check=False)
        assert refused.returncode == 1
        assert 'failed calling webhook "validator.trainjob.trainer.kubeflow.org"' in refused.stderr
        replicas.finish_pods()
        replicas.wait_for_state("Complete", ["long", "other"])
        cluster.kubectl("delete", "trainjob", "other")
    cluster.kubectl("create", "-f", "-", stdin=late)
    replicas.wait_for_state("Complete", ["late"])
    assert replicas.creations() == {"long": 1, "other": 1, "late": 1}


def test_certificate_rotated(replicas: Replicas) -> None:
    """While a lost Secret is restored, a certificate renewed and an authority replaced, no admission fails."""
    cluster = replicas.cluster
    for replica in replicas.both:
        replicas.stop(replica)
        replica.start("--certificate-poll", str(POLL))

    def left_to_others(number: int) -> dict[str, Any]:
        return fake_job(f"checked-{number}", managedBy="kueue.x-k8s.io/multikueue")

    with submitting(cluster, left_to_others, pause=0.2) as admitted:
        [first] = shown(replicas)
        change_secret(replicas, None)
        until(lambda: keyring(replicas), "the Secret is restored")
        assert shown(replicas) == {first}

        aged = keyring(replicas)
        assert aged is not None
        change_secret(replicas, aged.with_certificate(aged.names, 365 * DAY, datetime.now(UTC) - 300 * DAY))
        renewed = wait_for_other_certificate(replicas, {first})

        present = keyring(replicas)
        assert present is not None
        nearly_settled = datetime.now(UTC) - SETTLING + UNSETTLED
        change_secret(replicas, present.with_authority("webhook", 3650 * DAY, nearly_settled))
        more = len(present.authorities) + 1
        until(lambda: trusted(replicas) == [more, more], "the API server trusts the new authority as well")
        meanwhile = shown(replicas)
        assert datetime.now(UTC) - nearly_settled < SETTLING, "this machine is too slow to see that they wait"
        assert meanwhile == {renewed}
        wait_for_other_certificate(replicas, {first, renewed})
        admitted.wait_for_more(5)
    assert not admitted.refused
    for replica in replicas.both:
        replicas.stop(replica)
        replica.start()


def shown(replicas: Replicas) -> set[str]:
    """The certificates that the webhooks of both show."""
    return {ssl.get_server_certificate((HOST, each.webhooks)) for each in replicas.both}


def wait_for_other_certificate(replicas: Replicas, known: set[str]) -> str:
    """Wait until both show the same certificate, which is none of these."""
    until(lambda: len(shown(replicas) - known) == 1 and not shown(replicas) & known, "both show the new certificate")
    return shown(replicas).pop()


def keyring(replicas: Replicas) -> Keyring | None:
    """What the Secret holds; None if it is empty."""
    text = replicas.cluster.kubectl("get", "secret", SECRET, "-n", NAMESPACE, "-o", "json").stdout
    data = {name: base64.b64decode(value) for name, value in (json.loads(text).get("data") or {}).items()}
    return Keyring.parse(data) if data else None


def change_secret(replicas: Replicas, content: Keyring | None) -> None:
    """Have the Secret hold this, as if time had gone by or somebody had emptied it."""
    names = (CA_CERTIFICATES, CA_KEY, CERTIFICATE, KEY)
    pem = dict.fromkeys(names, b"") if content is None else content.to_data()
    data = {name: base64.b64encode(value).decode() or None for name, value in pem.items()}
    replicas.cluster.kubectl(
        "patch", "secret", SECRET, "-n", NAMESPACE, "--type=merge", "-p", json.dumps({"data": data})
    )


def trusted(replicas: Replicas) -> list[int]:
    """How many authorities the API server trusts, by configuration."""
    bundles = [
        webhook["clientConfig"]["caBundle"]
        for kind in WEBHOOKS
        for configuration in replicas.cluster.list(kind)
        for webhook in configuration["webhooks"][:1]
    ]
    return [base64.b64decode(bundle).count(b"BEGIN CERTIFICATE") for bundle in bundles]
