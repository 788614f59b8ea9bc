"""When the certificates expire that servers show."""

from __future__ import annotations

from tests.kube.certificates import Authority
from trainer.kube.metrics import Metrics
from trainer.kube.metrics.servers import ExpirySeries
from trainer.kube.serving.certificates import ServingCertificate
from trainer.kube.serving.tls import ServingTls

NAME = "trainer_kube_certificate_expiration_timestamp_seconds"


async def test_expiry() -> None:
    """Each server has the end of its certificate, as soon as it has one."""
    metrics = Metrics()
    expires = metrics.series(ExpirySeries).of("webhooks")
    tls = ServingTls(expires=expires)
    assert metrics.registry.get_sample_value(NAME, {"server": "webhooks"}) is None

    pair = Authority().issue("webhook", "webhook.system.svc")
    await tls.install(ServingCertificate(pair.chain, pair.key))

    assert tls.expiry is not None
    assert metrics.registry.get_sample_value(NAME, {"server": "webhooks"}) == tls.expiry.timestamp()
