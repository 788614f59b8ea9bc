"""Notifications by webhook when a training or a sweep ends, fails or stalls.

What is to be sent is written to the database in the transaction that writes the state, and stays there, so that it is
sent at least once, also when the recorder is restarted meanwhile. It is sent again where the process is killed, or the
database fails, between the answer of the webhook and the write of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import aiohttp
from anyio import CancelScope

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.trainjob_status import ConditionType
from trainer.explain import Snapshot, explain, headline
from trainer.kube.backoff import Backoff
from trainer.kube.clock import Clock
from trainer.kube.errors import ConfigurationError
from trainer.kube.logger import get_logger
from trainer.kube.objects import Object, find_condition
from trainer_dashboard.history.deliveries import DueNotification, due_notifications, note_delivery
from trainer_dashboard.history.persistence import Persistence
from trainer_dashboard.recipe.secret_forms import clean_text

log = get_logger(__name__)

OCCASIONS = (ConditionType.COMPLETE, ConditionType.FAILED, ConditionType.STALLED)
"""The conditions that somebody may want to be notified of."""
_RETRY = Backoff(initial=5.0, maximum=3600.0, jitter=0.2)
ATTEMPTS = 12
"""In more than two hours."""
_POLL = 5.0
_BETWEEN = 1.0
"""Seconds between two messages; Slack takes one a second."""
_TIMEOUT = aiohttp.ClientTimeout(total=15)
_LONGEST_PAUSE = 3600.0
_LIMIT = 2000
"""Characters of a text."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where notifications go. The URL is a secret: who has it can post."""

    url: str = field(repr=False)
    occasions: frozenset[str] = frozenset(OCCASIONS)
    """The conditions that are notified of."""
    with_trials: bool = False
    """Whether the trials of sweeps are notified of as well, one by one. Default: their sweep alone."""

    def __post_init__(self) -> None:
        """Check the URL.

        Raises:
            ConfigurationError: it is none; its text is not repeated.
        """
        scheme, separator, rest = self.url.partition("://")
        if scheme not in {"http", "https"} or not separator or not rest.strip("/") or not self.url.isprintable():
            raise ConfigurationError("the URL for notifications must begin with https:// or http:// and a host")


def occasion_of(job: Object, state: str) -> str:
    """What identifies a notification about a TrainJob: each stall is one of its own."""
    if state != ConditionType.STALLED:
        return state
    return f"{state} {(find_condition(job, state) or {}).get('lastTransitionTime') or ''}"[:64]


def text_about(snapshot: Snapshot) -> str:
    """The sentence of `trainer explain`, with the remedy."""
    subject = f"TrainJob {snapshot.namespace}/{snapshot.name}"
    try:
        answer = explain(snapshot)
    except InvalidObjectError:
        return f"{subject} has changed its state"
    remedies = [f"{cause.remedy} ({cause.command})" for cause in answer.causes[:1]]
    return clean_text("\n".join([headline(subject, answer), *remedies])[:_LIMIT]).replace("\0", "")


class Notifier:
    """Sends what is due about the trainings and sweeps of one cluster, one after the other; namespaces take turns."""

    def __init__(self, webhook: Webhook, persistence: Persistence, cluster: str, clock: Clock) -> None:
        self._webhook = webhook
        self._cluster = cluster
        self._persistence = persistence
        self._clock = clock

    async def run(self) -> None:
        """Send until cancelled."""
        async with aiohttp.ClientSession(timeout=_TIMEOUT, trust_env=True) as session:
            while True:
                now = self._clock.now().timestamp()
                due = await self._persistence.run(partial(due_notifications, cluster=self._cluster, now=now))
                await self._send_all(session, due or ())
                if not due:
                    await self._clock.sleep(_POLL)

    async def _send_all(self, session: aiohttp.ClientSession, due: Sequence[DueNotification]) -> None:
        for each in due:
            with CancelScope(shield=True):  # what was sent is noted, for else it is sent again
                problem, pause = await self._send(session, each.text)
            attempts = each.attempts + 1
            state = "sent" if not problem else "due" if attempts < ATTEMPTS else "given up"
            again = self._clock.now().timestamp() + max(pause, _RETRY.pause(each.attempts))
            note = partial(note_delivery, notification=each, state=state, attempts=attempts, due=again)
            await self._persistence.run(note, shielded=True)
            if problem:
                log.warning("could not notify", uid=each.uid, problem=problem, attempts=attempts, outcome=state)
            await self._clock.sleep(_BETWEEN)

    async def _send(self, session: aiohttp.ClientSession, text: str) -> tuple[str, float]:
        """The problem, empty without one, and the seconds that the server asks to wait.

        Errors of the client are logged by their kind alone, since their texts may have the URL.
        """
        message = {"text": text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")}
        try:
            async with session.post(self._webhook.url, json=message, allow_redirects=False) as answer:
                if answer.status < 300:
                    return "", 0.0
                after = answer.headers.get("Retry-After", "")
                pause = min(float(after), _LONGEST_PAUSE) if after.isdecimal() and len(after) < 10 else 0.0
                return f"the webhook answers {answer.status}", pause
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            return f"the webhook cannot be reached: {type(error).__name__}", 0.0
