"""What the page of a sweep asks for, and does."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.kube.objects import Object, ObjectKey
from trainer_dashboard.access.parties import Party
from trainer_dashboard.access.sweep_actions import SweepActions
from trainer_dashboard.requests.drafts import Drafts
from trainer_dashboard.requests.manifests import manifest


@dataclass(frozen=True, slots=True)
class SweepRequests:
    """Answers requests about sweeps with the rights of a user."""

    actions: SweepActions
    drafts: Drafts
    party: Party

    async def read(self, rest: list[str], key: ObjectKey) -> Object | None:
        """The answer about a sweep; None where there is nothing at this path.

        Raises:
            KubeError: the API server refuses it.
            RejectedError: the object is too large.
        """
        match rest:
            case ["rights"]:
                return await self.actions.rights(key)
            case ["yaml"]:
                return {"yaml": await manifest(self.actions.client, self.party, self.actions.resource, key)}
            case ["trials", number, "copy"] if number.isascii() and number.isdigit() and len(number) <= 4:
                return {"yaml": await self.drafts.copy_of_trial(key, int(number))}
        return None
