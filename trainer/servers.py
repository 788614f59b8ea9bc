"""The servers of the manager, and the certificates that they share."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.configuration.values import host_and_port
from trainer.kube.manager.metrics_server import MetricsServer, MetricsServerOptions
from trainer.kube.objects import ObjectKey
from trainer.kube.serving.certificates import FileCertificates
from trainer.kube.serving.rotation import CertificateRotator, service_names
from trainer.kube.webhook.ca_injection import CaInjector
from trainer.kube.webhook.server import WebhookServer, WebhookServerOptions

if TYPE_CHECKING:
    from trainer.configuration.configuration import Configuration
    from trainer.kube.manager.manager import Manager
    from trainer.kube.serving.certificates import CertificateSource
    from trainer.webhooks.handlers import Admission

_REMEDY = "apply config/webhook, which grants get and update on it, or set webhook.enabled: false in the configuration"


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers of a manager."""

    webhooks: WebhookServer | None
    """None if webhooks are disabled."""
    metrics: MetricsServer | None
    """None if metrics are not served."""


def add_servers(manager: Manager, configuration: Configuration, admission: Admission, namespace: str) -> Servers:
    """Add the servers of webhooks and metrics that are enabled.

    Both use the same certificate. Without webhooks, no CA bundle is injected, and the certificate of the metrics server
    is generated in memory unless there are files.

    Args:
        manager: must not run yet; it becomes ready when the webhooks are served.
        configuration: addresses and certificate management.
        admission: the webhooks.
        namespace: that of the manager, for its certificates if the configuration names no other.
    """
    files = None if configuration.cert_management.enable else _files(manager, configuration)
    if not configuration.webhook.enabled:
        return Servers(None, _metrics_server(manager, configuration, files))
    certificates = files or _rotator(manager, configuration, namespace)
    webhooks = _webhook_server(manager, configuration, certificates)
    admission.register(webhooks)
    return Servers(webhooks, _metrics_server(manager, configuration, certificates))


def _webhook_server(
    manager: Manager, configuration: Configuration, certificates: FileCertificates | CertificateRotator
) -> WebhookServer:
    webhook = configuration.webhook
    options = WebhookServerOptions(
        host=webhook.host,
        port=webhook.port,
        tls=configuration.tls.options(),
        client_ca=Path(webhook.client_ca_file) if webhook.client_ca_file else None,
        client_names=frozenset(webhook.client_names),
    )
    server = WebhookServer(manager, certificates=certificates, options=options)
    if isinstance(certificates, CertificateRotator):
        CaInjector(
            manager,
            certificates,
            validating=[webhook.validating_webhook_configuration_name],
            mutating=[webhook.mutating_webhook_configuration_name],
        )
    return server


def _metrics_server(
    manager: Manager, configuration: Configuration, certificates: CertificateSource | None
) -> MetricsServer | None:
    settings = configuration.metrics
    address = host_and_port(settings.bind_address)
    if address is None:
        return None
    host, port = address
    options = MetricsServerOptions(
        host=host,
        port=port,
        secure=settings.secure_serving,
        authorize=settings.auth.enabled,
        tls=configuration.tls.options(),
    )
    return MetricsServer(manager, options, certificates=certificates)


def _files(manager: Manager, configuration: Configuration) -> FileCertificates:
    directory = Path(configuration.cert_management.certificate_directory)
    return FileCertificates(directory, clock=manager.clock, metrics=manager.metrics)


def _rotator(manager: Manager, configuration: Configuration, namespace: str) -> CertificateRotator:
    management, hosts = configuration.cert_management, configuration.webhook.hosts
    namespace = management.namespace or namespace
    addresses = [host for host in hosts if _is_address(host)]
    return CertificateRotator(
        manager.api_reader,
        ObjectKey(namespace, management.webhook_secret_name),
        dns_names=[
            *service_names(management.webhook_service_name, namespace),
            *(host for host in hosts if host not in addresses),
        ],
        ip_addresses=addresses,
        clock=manager.clock,
        remedy=_REMEDY,
    )


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
