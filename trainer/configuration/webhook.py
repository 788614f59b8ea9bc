"""How the manager serves its webhooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from trainer.api.model import ApiModel
from trainer.configuration.bind_address import Port
from trainer.configuration.names import Name, ObjectName
from trainer.kube.field_errors import forbidden

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.kube.field_errors import FieldError


class WebhookConfiguration(ApiModel):
    """Admission webhooks for TrainJobs and runtimes; every replica serves them, whether it leads or not."""

    enabled: bool = True
    """Whether webhooks are served. Defaults to true: mistakes are refused where they are made. Without them a TrainJob
    with mistakes is stored, and its conditions tell."""
    port: Port = 9443
    """Port to listen on. Defaults to 9443, as for all webhooks made with controller-runtime."""
    host: str = ""
    """Address to listen on. Defaults to "", all addresses, since the API server comes from elsewhere."""
    hosts: list[Name] = Field(default_factory=list)
    """Further DNS names and IP addresses in the certificate that the manager makes: those in the URLs of webhook
    configurations that name no Service, and those by which metrics are scraped. Defaults to none."""
    client_ca_file: Annotated[str, Field(alias="clientCAFile")] = ""
    """File with certificate authorities, as PEM: only clients with a certificate of one of them may ask. It is read
    again when it changes. Defaults to "", anybody may ask who reaches the port, since an API server shows a certificate
    only if it is configured to; see the guide to operation."""
    client_names: list[Name] = Field(default_factory=list)
    """Common names, one of which the certificate of a client must have; for authorities that sign others as well.
    Defaults to none, every certificate of clientCAFile will do."""
    validating_webhook_configuration_name: ObjectName = "validator.trainer.kubeflow.org"
    """ValidatingWebhookConfiguration whose caBundle the manager writes. Defaults to validator.trainer.kubeflow.org, as
    in the manifests."""
    mutating_webhook_configuration_name: ObjectName = "defaulter.trainer.kubeflow.org"
    """MutatingWebhookConfiguration whose caBundle the manager writes. Defaults to defaulter.trainer.kubeflow.org, as in
    the manifests."""

    def errors(self, path: str) -> Iterator[FieldError]:
        """What does not fit together."""
        if self.client_names and not self.client_ca_file:
            yield forbidden(f"{path}.clientNames", "clients show no certificate without clientCAFile: set it")
