"""Which proxy leads to an API server."""

from __future__ import annotations

import pytest

from trainer.kube.errors import ConfigurationError
from trainer.kube.rest.proxy import proxy_for


@pytest.mark.parametrize(
    ("server", "configured", "environment", "expected"),
    [
        pytest.param("https://host", None, {}, None, id="none"),
        pytest.param("https://host", None, {"https_proxy": "http://p:1"}, "http://p:1", id="environment"),
        pytest.param("https://host", None, {"http_proxy": "http://p:1"}, None, id="for-http-only"),
        pytest.param("http://host", None, {"http_proxy": "http://p:1"}, "http://p:1", id="plain-http"),
        pytest.param("https://host", None, {"https_proxy": "http://p:1", "no_proxy": "host"}, None, id="no-proxy"),
        *[pytest.param("https://10.1.2.3", None, {"https_proxy": "http://p:1", "no_proxy": f"x, {no}"}, expected, id=no)
          for no, expected in (
              ("10.0.0.0/8", None), ("10.1.2.3", None), ("10.1.2.3:443", None), ("10.1.2.3:80", "http://p:1"),
              ("10.2.0.0/16", "http://p:1"), ("fd00::/8", "http://p:1"),
          )],
        pytest.param("https://[fd00::1]", None, {"https_proxy": "http://p:1", "no_proxy": "fd00::/8"}, None, id="ip6"),
        pytest.param("https://127.0.0.2:6443", None, {"https_proxy": "http://p:1"}, None, id="loopback-net"),
        pytest.param("https://127.0.0.1:6443", None, {"https_proxy": "http://p:1"}, None, id="loopback"),
        pytest.param("https://[::1]:6443", None, {"https_proxy": "http://p:1"}, None, id="loopback-6"),
        pytest.param("https://localhost", None, {"https_proxy": "http://p:1"}, None, id="localhost"),
        pytest.param(
            "https://host",
            "https://q:2",
            {"https_proxy": "http://p:1", "no_proxy": "*"},
            "https://q:2",
            id="kubeconfig",
        ),
    ],
)  # fmt: skip
def test_proxies(
    monkeypatch: pytest.MonkeyPatch,
    server: str,
    configured: str | None,
    environment: dict[str, str],
    expected: str | None,
) -> None:
    """`proxy-url` counts before the environment, which never applies to this machine."""
    for name in ("https_proxy", "http_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(server, configured) == expected


def test_other_kinds_of_proxies_are_refused() -> None:
    """The message says what works, and does not show the password."""
    with pytest.raises(
        ConfigurationError, match="proxy socks5://host:1080 for https://a is not supported: use"
    ) as raised:
        proxy_for("https://a", "socks5://me:secret@host:1080")
    assert "secret" not in str(raised.value)
