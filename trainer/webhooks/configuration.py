"""How the manager serves the webhooks: where it listens, and who makes its certificates."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from trainer.api.model import ApiModel
from trainer.bind_address import BindAddress, host_and_port
from trainer.kube.objects import ObjectKey
from trainer.kube.webhook.ca_injection import CaInjector
from trainer.kube.webhook.certificates import FileCertificates
from trainer.kube.webhook.rotation import CertificateRotator, service_names
from trainer.kube.webhook.server import WebhookServer, WebhookServerOptions

if TYPE_CHECKING:
    from trainer.kube.manager.manager import Manager
    from trainer.webhooks.handlers import Admission

Name = Annotated[str, Field(min_length=1)]


class WebhookConfiguration(ApiModel):
    """Admission webhooks for TrainJobs and runtimes; every replica serves them, whether it leads or not."""

    enabled: bool = False
    """Whether webhooks are served. Defaults to false, since they need a certificate that the API server trusts; the
    manifests that install a Deployment set it to true, and so does the dev cluster."""
    bind_address: BindAddress = ":9443"
    """`host:port` to listen on. Defaults to :9443, all addresses, since the API server comes from elsewhere."""
    certificate_directory: Name | None = None
    """Directory with tls.crt and tls.key, such as a Secret of cert-manager that is mounted; whoever makes them also
    writes the caBundle of the webhook configurations. Defaults to none: the manager is its own authority."""
    secret_name: Name = "trainer-webhook-certificates"  # noqa: S105 - the name of one
    """Secret in which the manager keeps its own authority and certificate, for all replicas. Defaults to
    trainer-webhook-certificates, which the manifests let it read and write."""
    service_name: Name = "trainer-webhook"
    """Service by which the API server finds the webhooks; its names are in the certificate. Defaults to
    trainer-webhook, as in the manifests."""
    namespace: Name | None = None
    """Namespace of Secret and Service. Defaults to that of the service account, or of the kubeconfig's context."""
    hosts: list[Name] = Field(default_factory=list)
    """Further DNS names and IP addresses in the certificate, for configurations that name a URL instead of the Service.
    Defaults to none."""
    validating_webhook_configuration_name: Name = "validator.trainer.kubeflow.org"
    """ValidatingWebhookConfiguration whose caBundle the manager writes. Defaults to validator.trainer.kubeflow.org."""
    mutating_webhook_configuration_name: Name = "defaulter.trainer.kubeflow.org"
    """MutatingWebhookConfiguration whose caBundle the manager writes. Defaults to defaulter.trainer.kubeflow.org."""

    def serve(self, manager: Manager, admission: Admission, namespace: str) -> WebhookServer:
        """Have a manager serve the webhooks, ready only while it does.

        Args:
            manager: must not run yet.
            admission: the webhooks.
            namespace: where the manager lives; used if the configuration names no other.
        """
        certificates = self._certificates(manager, self.namespace or namespace)
        host, port = host_and_port(self.bind_address)
        server = WebhookServer(manager, certificates=certificates, options=WebhookServerOptions(host=host, port=port))
        admission.register(server)
        if isinstance(certificates, CertificateRotator):
            CaInjector(
                manager,
                certificates,
                validating=[self.validating_webhook_configuration_name],
                mutating=[self.mutating_webhook_configuration_name],
            )
        return server

    def _certificates(self, manager: Manager, namespace: str) -> FileCertificates | CertificateRotator:
        if self.certificate_directory is not None:
            directory = Path(self.certificate_directory)
            return FileCertificates(directory, clock=manager.clock, metrics=manager.metrics)
        addresses = [host for host in self.hosts if _is_address(host)]
        return CertificateRotator(
            manager.api_reader,
            ObjectKey(namespace, self.secret_name),
            dns_names=[
                *service_names(self.service_name, namespace),
                *(host for host in self.hosts if host not in addresses),
            ],
            ip_addresses=addresses,
            clock=manager.clock,
        )


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
