"""What TLS of the servers is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from trainer.api.model import ApiModel
from trainer.configuration.names import Name
from trainer.kube.field_errors import invalid, not_supported
from trainer.kube.serving.tls import CIPHER_SUITES, TlsOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.kube.field_errors import FieldError

_ALWAYS_OFFERED: Final = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
"""Those of TLS 1.3."""


class TlsConfiguration(ApiModel):
    """TLS of the webhook server and the metrics server."""

    min_version: Literal["1.2", "1.3"] = "1.2"
    """The oldest version that is spoken. Defaults to 1.2; older ones are broken, and OpenSSL speaks them no more."""
    cipher_suites: list[Name] = Field(default_factory=list)
    """Cipher suites of TLS 1.2 that are offered, by the names that Go has for them, such as
    TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256; those that Go calls insecure are refused, and those of TLS 1.3 are always
    all offered, named or not. The certificates that the manager makes have ECDSA keys. Defaults to none, which means
    those that Python holds safe."""
    next_protos: list[Literal["http/1.1"]] = Field(default_factory=list)
    """Protocols that are offered (ALPN). Defaults to none, which means http/1.1, the only one that there is: HTTP/2
    has nothing to give to servers that are asked this little."""

    def errors(self, path: str) -> Iterator[FieldError]:
        """Cipher suites that are unknown, or no use."""
        for position, name in enumerate(self.cipher_suites):
            if name not in CIPHER_SUITES and name not in _ALWAYS_OFFERED:
                yield not_supported(f"{path}.cipherSuites[{position}]", name, (*CIPHER_SUITES, *_ALWAYS_OFFERED))
        if self.min_version == "1.2" and self.cipher_suites and set(self.cipher_suites).issubset(_ALWAYS_OFFERED):
            detail = "names none of TLS 1.2: add some, or set minVersion to 1.3"
            yield invalid(f"{path}.cipherSuites", self.cipher_suites, detail)

    def options(self) -> TlsOptions:
        """What `trainer.kube` is told."""
        chosen = tuple(name for name in self.cipher_suites if name in CIPHER_SUITES)
        return TlsOptions(min_version=self.min_version, cipher_suites=chosen)
