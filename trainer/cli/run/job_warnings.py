"""The Warning events of a TrainJob and its objects, while it is followed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import anyio

from trainer.api.trainjob import TRAIN_JOBS
from trainer.framework.deploying.deployer import FIELD_MANAGER
from trainer.kube.clock import Clock
from trainer.kube.objects import Object, controller_of, metadata_of, name_of, uid_of

_ENDINGS = frozenset(
    {
        ("Job", "BackoffLimitExceeded"),
        ("Job", "PodFailurePolicy"),
        ("JobSet", "FailedJobs"),
        ("JobSet", "ReachedMaxRestarts"),
        ("JobSet", "DefaultFailurePolicy"),
    }
)
"""Kinds and reasons which say only that a pod has failed or was disrupted: the state says so, with the error."""
_UNSCHEDULED = "FailedScheduling"
_UNSCHEDULED_SECONDS = 15.0
"""Far longer than a manager takes to find that a TrainJob is Pending."""


def _is_ending(kind: str, reason: str) -> bool:
    """Whether an event says only that something has ended, or what the failure policy makes of that."""
    is_of_policy = reason.startswith("FailurePolicy_") or reason.endswith("FailurePolicyAction")
    return (kind, reason) in _ENDINGS or (kind == "JobSet" and is_of_policy)


class JobWarnings:
    """Prints the Warning events of a namespace that concern one job or an object of it.

    Those about pods that no node takes wait, since the TrainJob is Pending then, and says so.
    """

    def __init__(self, job: Object, show: Callable[[str], None]) -> None:
        self._name = name_of(job)
        self._created: str = metadata_of(job).get("creationTimestamp") or ""
        self._show = show
        self._unscheduled: list[str] = []
        self._has_unscheduled = anyio.Event()
        self._uids = {uid_of(job)}
        self._unclaimed: dict[str, Object] = {}
        self._shown: set[tuple[str, str, str]] = set()

    def see_object(self, obj: Object) -> None:
        """Take an object of the job, and its controller (a Job's is the JobSet)."""
        self._uids |= {uid_of(obj), (controller_of(obj) or {}).get("uid", "")}
        for event in list(self._unclaimed.values()):
            self.see_event(event)

    def see_event(self, event: Object) -> None:
        """Show the event if it concerns the job, or later, once its object is known to be one of the job's.

        Events of the TrainJob controller about the TrainJob repeat its conditions, which are shown anyway, and so does
        the end of its Jobs.
        """
        about = event.get("involvedObject") or {}
        repeats = about.get("kind") == TRAIN_JOBS.kind and event.get("reportingComponent") == FIELD_MANAGER
        repeats |= _is_ending(str(about.get("kind")), str(event.get("reason")))
        if event.get("type") != "Warning" or repeats:
            return
        if not self._concerns_job(about, event):
            self._unclaimed[uid_of(event)] = event
            return
        self._unclaimed.pop(uid_of(event), None)
        kind, name = about.get("kind", ""), about.get("name", "")
        said = (event.get("reason", ""), event.get("message", ""))
        # A thousand pods often have the same problem.
        content = (kind if kind == "Pod" else f"{kind} {name}", *said)
        if content not in self._shown:
            self._shown.add(content)
            text = ": ".join(part for part in (f"{kind} {name}", *said) if part)
            if event.get("reason") == _UNSCHEDULED:
                self._unscheduled.append(text)
                self._has_unscheduled.set()
            else:
                self._show(text)

    async def show_unscheduled(self, clock: Clock, is_unsaid: Callable[[], bool]) -> None:
        """Show what has waited for a while, unless something else says it by then, until cancelled."""
        while True:
            await self._has_unscheduled.wait()
            await clock.sleep(_UNSCHEDULED_SECONDS)
            waiting, self._unscheduled, self._has_unscheduled = self._unscheduled, [], anyio.Event()
            for text in waiting if is_unsaid() else ():
                self._show(text)

    def _concerns_job(self, about: Mapping[str, str], event: Object) -> bool:
        if about.get("uid") in self._uids:
            return True
        seen = event.get("lastTimestamp") or event.get("eventTime") or ""
        return about.get("kind") == "JobSet" and about.get("name") == self._name and seen >= self._created
