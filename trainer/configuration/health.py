"""How the probes of the kubelet are answered."""

from __future__ import annotations

from typing import Literal

from trainer.api.model import ApiModel
from trainer.configuration.bind_address import BindAddress


class HealthConfiguration(ApiModel):
    """The server of /healthz and /readyz: plain HTTP for everybody, since a kubelet shows no token."""

    health_probe_bind_address: BindAddress = ":8081"
    """`host:port` to listen on; all addresses when the host is empty, those of IPv6 in brackets, and "0" for no server
    at all. Defaults to :8081, as in the manifests."""
    readiness_endpoint_name: Literal["readyz"] = "readyz"
    """Path of the readiness probe. Defaults to readyz, the only one that there is."""
    liveness_endpoint_name: Literal["healthz"] = "healthz"
    """Path of the liveness probe. Defaults to healthz, the only one that there is."""
