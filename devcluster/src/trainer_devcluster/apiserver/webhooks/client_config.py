"""Client configurations: the part of a webhook's description that says where it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer.kube.objects import Object


@dataclass(frozen=True, slots=True)
class ServiceReference:
    """A Service in the cluster."""

    namespace: str
    name: str
    port: int = 443
    path: str = ""


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """Where a webhook is, and whom to trust there."""

    url: str = ""
    """"" when it is a Service."""
    service: ServiceReference | None = None
    ca_bundle: str = ""
    """PEM certificates in base64; "" trusts the authorities of the machine."""

    @classmethod
    def of(cls, config: Object) -> ClientConfig:
        """Read a `clientConfig`."""
        entry = config.get("service")
        service = None
        if entry is not None:
            path = entry.get("path") or ""
            service = ServiceReference(entry["namespace"], entry["name"], entry.get("port") or 443, path)
        return cls(config.get("url") or "", service, config.get("caBundle") or "")

    @property
    def address(self) -> str:
        """URL without the timeout parameter, as error messages show it."""
        if self.service is None:
            return self.url
        path = self.service.path if self.service.path.startswith("/") else f"/{self.service.path}"
        return f"https://{self.server_name}:{self.service.port}{path.rstrip('/') if path != '/' else path}"

    @property
    def server_name(self) -> str:
        """Host name that the certificate of a Service has to carry; "" leaves it to the URL."""
        return f"{self.service.name}.{self.service.namespace}.svc" if self.service is not None else ""
