"""How the metrics are served."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from trainer.api.model import ApiModel
from trainer.configuration.bind_address import NOWHERE, BindAddress
from trainer.kube.field_errors import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.kube.field_errors import FieldError


class MetricsAuthConfiguration(ApiModel):
    """Who may read the metrics."""

    enabled: bool = True
    """Whether the API server is asked who a caller is (TokenReview) and whether it may get the path
    (SubjectAccessReview). Defaults to true, unlike in the released manager: metrics name namespaces and runtimes, which
    are not for everybody."""


class MetricsConfiguration(ApiModel):
    """The server of /metrics, and of what the gate ProgressHistory serves; every replica has one."""

    bind_address: BindAddress = ":8443"
    """`host:port` to listen on; all addresses when the host is empty, those of IPv6 in brackets, and "0" for no server
    at all. Defaults to :8443, as in the manifests."""
    secure_serving: bool = True
    """Whether it is HTTPS, with the certificate of the webhooks or, when they are off and certManagement is on, with
    one that the manager makes for itself. Defaults to true, since callers show their tokens."""
    auth: MetricsAuthConfiguration = Field(default_factory=MetricsAuthConfiguration)
    """Who may read the metrics. Defaults to those whom the API server allows to."""

    def errors(self, path: str) -> Iterator[FieldError]:
        """What does not fit together."""
        if self.auth.enabled and not self.secure_serving and self.bind_address != NOWHERE:
            detail = "needs secureServing, or tokens would be sent unencrypted: set secureServing, or set this to false"
            yield invalid(f"{path}.auth.enabled", value=True, detail=detail)
