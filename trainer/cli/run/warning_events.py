"""Warning events that concern a followed TrainJob."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.api.trainjob import TRAIN_JOBS
from trainer.framework.deploying.deployer import FIELD_MANAGER
from trainer.kube.objects import controller_of, metadata_of, name_of, uid_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trainer.kube.objects import Object


class JobWarnings:
    """Picks from the Warning events of a namespace those about one job and what belongs to it."""

    def __init__(self, job: Object, show: Callable[[str], None]) -> None:
        self._name = name_of(job)
        self._created: str = metadata_of(job).get("creationTimestamp") or ""
        self._show = show
        self._uids = {uid_of(job)}
        self._unclaimed: dict[str, Object] = {}
        self._shown: set[tuple[str, str, str]] = set()

    def see_object(self, obj: Object) -> None:
        """Take an object that belongs to the job, and its controller (a Job's is the JobSet)."""
        self._uids |= {uid_of(obj), (controller_of(obj) or {}).get("uid", "")}
        for event in list(self._unclaimed.values()):
            self.see_event(event)

    def see_event(self, event: Object) -> None:
        """Show the event once it is known to be about the job; kept until then, for events arrive before objects.

        What the TrainJob controller says about the TrainJob itself is in its conditions, which are shown anyway.
        """
        if event.get("type") != "Warning" or _repeats_condition(event):
            return
        if not self._concerns_job(event.get("involvedObject") or {}, event):
            self._unclaimed[uid_of(event)] = event
            return
        self._unclaimed.pop(uid_of(event), None)
        about = event["involvedObject"]
        kind, name = about.get("kind", ""), about.get("name", "")
        said = (event.get("reason", ""), event.get("message", ""))
        # What is the matter with one pod often is with a thousand.
        content = (kind if kind == "Pod" else f"{kind} {name}", *said)
        if content not in self._shown:
            self._shown.add(content)
            self._show(": ".join(part for part in (f"{kind} {name}", *said) if part))

    def _concerns_job(self, about: Mapping[str, str], event: Object) -> bool:
        if about.get("uid") in self._uids:
            return True
        seen = event.get("lastTimestamp") or event.get("eventTime") or ""
        return about.get("kind") == "JobSet" and about.get("name") == self._name and seen >= self._created


def _repeats_condition(event: Object) -> bool:
    about = (event.get("involvedObject") or {}).get("kind")
    return about == TRAIN_JOBS.kind and event.get("reportingComponent") == FIELD_MANAGER
