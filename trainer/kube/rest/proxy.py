"""Which HTTP proxy leads to an API server.

`proxy-url` of the kubeconfig's cluster counts, else $HTTPS_PROXY (or $HTTP_PROXY for an http:// server) unless
$NO_PROXY names the host or its network, such as 10.0.0.0/8. As in Go the environment never applies to this machine.
Inside a pod no proxy is used, since the API server is in the same network. Both http:// and https:// proxies work; the
latter must have a certificate that the cluster's CA has signed, since one TLS context serves both hops.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from trainer.kube.errors import ConfigurationError

_PORTS = {"http": 80, "https": 443}


def proxy_for(server: str, configured: str | None) -> str | None:
    """The proxy's URL, None to connect directly; may look up addresses, so not for the event loop.

    Raises:
        ConfigurationError: the proxy is of a kind that does not work, such as SOCKS.
    """
    parts = urlsplit(server)
    proxy = configured
    if proxy is None and not _is_direct(parts.hostname or "", parts.port or _PORTS.get(parts.scheme)):
        proxy = getproxies().get(parts.scheme)
    if proxy and not proxy.startswith(("http://", "https://")):
        shown = re.sub(r"//[^@/]*@", "//", proxy)
        raise ConfigurationError(f"proxy {shown} for {server} is not supported: use an http:// or https:// proxy")
    return proxy


def _is_direct(host: str, port: int | None) -> bool:
    if host == "localhost" or proxy_bypass(f"{host}:{port}"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or any(address in network for network in _networks(getproxies().get("no", "")))


def _networks(names: str) -> Iterator[IPv4Network | IPv6Network]:
    for name in names.split(","):
        with suppress(ValueError):  # the name of a host
            yield ip_network(name.strip(), strict=False)
