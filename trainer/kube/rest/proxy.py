"""Which HTTP proxy leads to an API server.

`proxy-url` of the kubeconfig's cluster counts, else $HTTPS_PROXY (or $HTTP_PROXY for an http:// server) unless
$NO_PROXY names the host. As in Go the environment never applies to this machine. Inside a pod no proxy is used, since
the API server is in the same network. Both http:// and https:// proxies work; the latter must have a certificate that
the cluster's CA has signed, since one TLS context serves both hops.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from trainer.kube.errors import ConfigurationError


def proxy_for(server: str, configured: str | None) -> str | None:
    """The proxy's URL, None to connect directly; may look up addresses, so not for the event loop.

    Raises:
        ConfigurationError: the proxy is of a kind that does not work, such as SOCKS.
    """
    parts = urlsplit(server)
    host = parts.hostname or ""
    proxy = configured
    if proxy is None and host not in {"localhost", "127.0.0.1", "::1"} and not proxy_bypass(host):
        proxy = getproxies().get(parts.scheme)
    if proxy and not proxy.startswith(("http://", "https://")):
        shown = re.sub(r"//[^@/]*@", "//", proxy)
        raise ConfigurationError(f"proxy {shown} for {server} is not supported: use an http:// or https:// proxy")
    return proxy
