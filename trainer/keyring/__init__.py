"""A certificate authority of our own and the serving certificates that it signs.

`python -m trainer.keyring` reads a `KeyringQuestion` and writes a `KeyringAnswer`, so that processes which last do
without the library that makes keys. Nothing here knows of clusters.
"""

from __future__ import annotations

from trainer.keyring.messages import CA_CERTIFICATES, CA_KEY, CERTIFICATE, KEY, KeyringAnswer, KeyringQuestion

__all__ = ["CA_CERTIFICATES", "CA_KEY", "CERTIFICATE", "KEY", "KeyringAnswer", "KeyringQuestion"]
