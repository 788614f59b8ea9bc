"""The process that makes keys."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

import pytest

from trainer.keyring import KeyringQuestion
from trainer.keyring.keyring import Keyring
from trainer.kube.errors import KubeError
from trainer.kube.serving import keyring_process

NOW = datetime(2026, 11, 23, tzinfo=UTC)
QUESTION = KeyringQuestion({}, {}, frozenset({"webhook.system.svc"}), NOW)


def test_keys_are_made() -> None:
    """The answer has all that the Secret is to hold; asked with it, nothing is due for months."""
    made = keyring_process.ask(QUESTION)

    assert made.data is not None
    assert Keyring.parse(made.data).names == {"webhook.system.svc"}
    assert made.reasons == ("made a certificate authority and a serving certificate",)
    later = keyring_process.ask(KeyringQuestion(made.data, made.data, QUESTION.names, NOW + timedelta(days=1)))
    assert (later.data, later.unusable) == (None, "")
    assert later.next_step > NOW + timedelta(days=200)


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        pytest.param("nothing-of-this-name", "cannot start the process that makes certificates: ", id="no-program"),
        pytest.param("/bin/false", "the process that makes certificates failed: exit status 1", id="exit-status"),
        pytest.param("/bin/true", "cannot start the process that makes certificates: ", id="no-answer"),
    ],
)
def test_failures(monkeypatch: pytest.MonkeyPatch, program: str, problem: str) -> None:
    """They are errors for the rotator, which tries again."""
    monkeypatch.setattr(sys, "executable", program)

    with pytest.raises(KubeError, match=problem):
        keyring_process.ask(QUESTION)


def test_keys_are_not_shown() -> None:
    """Neither by questions nor by answers."""
    made = keyring_process.ask(QUESTION)

    assert "PRIVATE" not in repr(made)
    assert "PRIVATE" not in repr(KeyringQuestion(made.data or {}, made.data or {}, QUESTION.names, NOW))
