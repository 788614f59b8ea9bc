"""What others need to check tokens of ServiceAccounts by themselves.

Source: Kubernetes documentation, "Configure Service Accounts for Pods", service account issuer discovery.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainer_devcluster.apiserver.authentication.service_account_tokens import ISSUER
from trainer_devcluster.apiserver.authentication.signing_key import ALGORITHM

if TYPE_CHECKING:
    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.authentication.signing_key import SigningKey

CONFIGURATION_PATH: Final = "/.well-known/openid-configuration"
KEYS_PATH: Final = "/openid/v1/jwks"
KEYS_TYPE: Final = "application/jwk-set+json"


def configuration(host: str) -> Object:
    """The discovery document of the issuer (OpenID Connect Discovery 1.0).

    Args:
        host: name or address, and port, under which the client has reached the server.
    """
    return {
        "issuer": ISSUER,
        "jwks_uri": f"https://{host}{KEYS_PATH}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
    }


def key_set(key: SigningKey) -> Object:
    """The public keys of the issuer (RFC 7517)."""
    return {"keys": [key.jwk()]}
