"""When what is renewed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from trainer.keyring import renewal as renewal_module
from trainer.keyring.keyring import Keyring, new_keyring
from trainer.keyring.renewal import renew

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
NAMES = frozenset({"webhook.system.svc"})
AUTHORITY_LIFETIME, LIFETIME = 30 * DAY, 3 * DAY

MADE = "made a certificate authority and a serving certificate"
RENEWED = "renewed the serving certificate"
NEW_AUTHORITY = "made a new certificate authority"
UNUSABLE = "replaced an unusable serving certificate"
ENDED = "ended the trust in the old certificate authority"


@pytest.fixture(autouse=True)
def short_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Months are much to wait for, even by hand."""
    monkeypatch.setattr(renewal_module, "AUTHORITY_LIFETIME", AUTHORITY_LIFETIME)
    monkeypatch.setattr(renewal_module, "LIFETIME", LIFETIME)


def made(at: datetime = NOW) -> Keyring:
    return new_keyring("test", AUTHORITY_LIFETIME, NAMES, LIFETIME, at)


def steps(keyring: Keyring | None, at: datetime, names: frozenset[str] = NAMES) -> tuple[str, ...]:
    renewal = renew(keyring, names, at)
    return renewal.reasons if renewal is not None else ()


def twice() -> Keyring:
    """A new authority beside the old one."""
    return made().with_authority("test", AUTHORITY_LIFETIME, NOW)


@pytest.mark.parametrize(
    ("keyring", "after", "expected"),
    [
        pytest.param(None, 0 * DAY, (MADE,), id="nothing-there"),
        pytest.param(made(), 0 * DAY, (), id="new"),
        pytest.param(made(), 1.9 * DAY, (), id="less-than-two-thirds"),
        pytest.param(made(), 2.1 * DAY, (RENEWED,), id="more-than-two-thirds"),
        pytest.param(made(), 3 * DAY, (UNUSABLE,), id="expired"),
        pytest.param(made(), 20.1 * DAY, (UNUSABLE, NEW_AUTHORITY), id="process-was-away"),
        pytest.param(
            made(), 30 * DAY, ("replaced the certificate authority, which had expired",), id="authority-expired"
        ),
        pytest.param(made(NOW + DAY), 0 * DAY, (), id="from-a-clock-that-is-ahead"),
        pytest.param(twice(), 0.9 * HOUR, (), id="new-authority-spreads"),
        pytest.param(twice(), 1.1 * HOUR, (RENEWED,), id="new-authority-signs"),
        pytest.param(twice().with_certificate(NAMES, 3 * DAY, NOW), 0.9 * HOUR, (), id="certificate-spreads"),
        pytest.param(twice().with_certificate(NAMES, 3 * DAY, NOW), 1.1 * HOUR, (ENDED,), id="old-authority-goes"),
        pytest.param(twice().without_old_authorities(), 0 * DAY, (UNUSABLE,), id="signer-not-trusted"),
    ],
)
def test_steps(keyring: Keyring | None, after: timedelta, expected: tuple[str, ...]) -> None:
    """Two thirds of a life, an hour for each change of the authority to spread, and at once what cannot be used."""
    assert steps(keyring, NOW + after) == expected


def test_new_names_come_to_the_old() -> None:
    """So two versions of a deployment that run side by side agree; the next regular certificate has only its own."""
    renewal = renew(made(), frozenset({"other.system.svc"}), NOW)
    assert renewal is not None
    assert renewal.reasons == ("issued a serving certificate for further names",)
    assert renewal.keyring.names == {"webhook.system.svc", "other.system.svc"}
    assert steps(renewal.keyring, NOW) == ()
    later = renew(renewal.keyring, NAMES, NOW + 2.1 * DAY)
    assert later is not None
    assert later.keyring.names == NAMES


def test_no_request_fails_while_the_authority_changes() -> None:
    """What is shown is always trusted, also by and from those that have not heard of the latest step."""
    keyring, now = made(), NOW
    seen: list[str] = []
    while now < NOW + 50 * DAY:
        now += 0.5 * HOUR
        assert keyring.certificate.not_valid_after_utc > now
        renewal = renew(keyring, NAMES, now)
        if renewal is None:
            continue
        seen += renewal.reasons
        before, keyring = keyring, renewal.keyring
        assert before.signer in keyring.authorities
        assert keyring.signer in before.authorities
    assert seen.count(NEW_AUTHORITY) == seen.count(ENDED) == 2
    assert len(keyring.authorities) == 1
    assert seen.count(RENEWED) >= 20
    assert UNUSABLE not in seen
