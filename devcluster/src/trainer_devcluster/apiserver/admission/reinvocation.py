"""Reinvocation: which mutating webhooks have to see an object again because later ones have changed it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer_devcluster.apiserver.admission.webhook import Webhook


class Reinvocation:
    """Follows the calls of one request; there is one second round at most."""

    def __init__(self) -> None:
        self.needed = False
        """Whether a second round has to be made."""
        self._called: set[tuple[str, int]] = set()
        self._again: set[tuple[str, int]] = set()

    def note(self, webhook: Webhook, *, changed: bool) -> None:
        """Take in that a webhook has been called; a change makes it necessary to repeat those before it."""
        if changed:
            self.repeat_all()
            self.needed = True
        if webhook.reinvocable:
            self._called.add((webhook.configuration, webhook.index))

    def repeat_all(self) -> None:
        """Repeat those that have been called so far."""
        self._again |= self._called
        self._called.clear()

    def repeats(self, webhook: Webhook) -> bool:
        """Whether the second round calls a webhook."""
        return (webhook.configuration, webhook.index) in self._again
