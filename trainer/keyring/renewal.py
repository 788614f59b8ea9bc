"""Renewal: what is to be made anew in a keyring, and when, such that no request fails meanwhile.

Certificates are renewed when two thirds of their time are over. Replicas and API servers learn of a change some time
after it was made, so the change of an authority takes three steps, each of which has time to spread:

1. a new authority is trusted beside the old one, whose certificate stays in use;
2. once the new one is trusted everywhere, it signs a certificate;
3. once that is in use everywhere, the old authority is trusted no longer.

How far this has come shows in the certificates themselves, so that any replica can take the next step. Only what cannot
be trusted any more, or lacks a name, is replaced at once.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from trainer.keyring import KeyringAnswer, KeyringQuestion
from trainer.keyring.keyring import SKEW, Keyring, new_keyring

if TYPE_CHECKING:
    from cryptography import x509

NAME = "webhook"
"""Begin of the authority's common name, for those who look at it."""
AUTHORITY_LIFETIME = timedelta(days=3650)
"""An authority is renewed after six years and eight months."""
LIFETIME = timedelta(days=365)
"""A serving certificate is renewed after eight months."""
SETTLING_TIME = timedelta(hours=1)
"""How long a change of the authority may take to reach all replicas and API servers; it takes little more than a minute
while all of them run."""


@dataclass(frozen=True, slots=True)
class Renewal:
    """A keyring that is to take the place of another."""

    keyring: Keyring
    reasons: tuple[str, ...]
    """The steps that were done, for the log."""


def answer(question: KeyringQuestion) -> KeyringAnswer:
    """The answer to what has to be renewed, by the contents of a Secret."""
    present, unusable = None, ""
    if question.stored:
        try:
            present = Keyring.parse(question.stored)
        except ValueError as error:
            unusable = str(error)
    if present is None and question.kept:
        # Somebody has deleted or broken the Secret: what all replicas show and API servers trust goes on to be used.
        kept = Keyring.parse(question.kept)
        renewal: Renewal | None = renew(kept, question.names, question.now) or Renewal(kept, ("restored the Secret",))
    else:
        renewal = renew(present, question.names, question.now)
    keyring = renewal.keyring if renewal is not None else present
    assert keyring is not None
    data, reasons = (renewal.keyring.to_data(), renewal.reasons) if renewal is not None else (None, ())
    return KeyringAnswer(
        data, reasons, unusable, next_step(keyring, question.now), keyring.certificate.not_valid_after_utc
    )


def next_step(keyring: Keyring, now: datetime) -> datetime:
    """The first moment at which something can become due for a keyring to which nothing is due now."""
    certificates = {keyring.certificate, *keyring.authorities}
    moments = [
        moment
        for each in certificates
        for moment in (
            each.not_valid_after_utc,
            _renewal_of(each),
            each.not_valid_before_utc + SKEW + SETTLING_TIME,
        )
    ]
    return min(moment for moment in moments if moment > now)


def renew(present: Keyring | None, names: AbstractSet[str], now: datetime) -> Renewal | None:
    """What the keyring becomes; None as long as it may stay as it is.

    A certificate that replaces one for other names than these has those as well, so that replicas of two versions do
    not renew it forever.
    """
    keyring, reasons = present, []
    while step := _step(keyring, names, now):
        keyring, reason = step
        reasons.append(reason)
    return Renewal(keyring, tuple(reasons)) if keyring is not None and reasons else None


def _step(keyring: Keyring | None, names: AbstractSet[str], now: datetime) -> tuple[Keyring, str] | None:
    if keyring is None:
        made = new_keyring(NAME, AUTHORITY_LIFETIME, names, LIFETIME, now)
        return made, "made a certificate authority and a serving certificate"
    authority, certificate = keyring.authorities[0], keyring.certificate
    if _has_expired(authority, now):
        made = new_keyring(NAME, AUTHORITY_LIFETIME, names, LIFETIME, now)
        return made, "replaced the certificate authority, which had expired"
    signer = keyring.signer
    if signer is None or _has_expired(signer, now) or _has_expired(certificate, now):
        return keyring.with_certificate(names, LIFETIME, now), "replaced an unusable serving certificate"
    if not names <= keyring.names:
        wider = keyring.with_certificate(names | keyring.names, LIFETIME, now)
        return wider, "issued a serving certificate for further names"
    if _is_due(authority, now):
        return keyring.with_authority(NAME, AUTHORITY_LIFETIME, now), "made a new certificate authority"
    is_of_old = signer != authority
    if (is_of_old or _is_due(certificate, now)) and _age(authority, now) >= SETTLING_TIME:
        return keyring.with_certificate(names, LIFETIME, now), "renewed the serving certificate"
    if len(keyring.authorities) > 1 and not is_of_old and _age(certificate, now) >= SETTLING_TIME:
        return keyring.without_old_authorities(), "ended the trust in the old certificate authority"
    return None


def _has_expired(certificate: x509.Certificate, now: datetime) -> bool:
    # One that is not valid yet was made by a replica whose clock is ahead; replacing it would be a fight of clocks.
    return now >= certificate.not_valid_after_utc


def _is_due(certificate: x509.Certificate, now: datetime) -> bool:
    """Whether two thirds of its time are over."""
    return now >= _renewal_of(certificate)


def _renewal_of(certificate: x509.Certificate) -> datetime:
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return begin + (end - begin) * 2 / 3


def _age(certificate: x509.Certificate, now: datetime) -> timedelta:
    return now - certificate.not_valid_before_utc - SKEW
