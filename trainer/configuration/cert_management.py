"""Who makes the certificates of the servers."""

from __future__ import annotations

from trainer.api.model import ApiModel
from trainer.configuration.names import Name, Namespace, ObjectName


class CertManagementConfiguration(ApiModel):
    """The certificate that the webhooks and the metrics are served with."""

    enable: bool = True
    """Whether the manager is its own authority: it makes and renews the certificates, keeps them in a Secret for all
    replicas, and writes the caBundle of the webhook configurations. Defaults to true: nothing else has to be installed.
    When false, somebody else does all that, such as cert-manager, and the files are in certificateDirectory."""
    certificate_directory: Name = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108 - where Kubernetes mounts them
    """Directory with tls.crt and tls.key if enable is false, such as a mounted Secret; changes are noticed. Defaults to
    /tmp/k8s-webhook-server/serving-certs, as in controller-runtime."""
    webhook_service_name: ObjectName = "trainer-webhook"
    """Service by which the API server finds the webhooks; its names are in the certificate. Defaults to
    trainer-webhook, as in the manifests."""
    webhook_secret_name: ObjectName = "trainer-webhook-certificates"  # noqa: S105 - the name of one
    """Secret in which the authority and the certificate are kept. Defaults to trainer-webhook-certificates, which the
    manifests let the manager read and write."""
    namespace: Namespace = ""
    """Namespace of Secret and Service. Defaults to "": that of the service account, or of the kubeconfig's context."""
