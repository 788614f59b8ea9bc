"""What has not begun yet although nothing reports a problem: no JobSet, no pods, or pods on their way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from trainer.api.trainjob_status import State
from trainer.explain.cause import Cause, Subject, describe, kubectl, one_line, trainer
from trainer.explain.progress import is_complete, is_up
from trainer.explain.snapshot import Snapshot
from trainer.kube.objects import Object, has_finished, name_of
from trainer.kube.resource import PODS
from trainer.workloads.pod_life import pod_life

_GRACE_SECONDS = 10
"""Seconds within which JobSet and Job controllers have made what is missing."""
_GOING = (State.RUNNING, State.STOPPING, State.RESTARTING)


def starting(snapshot: Snapshot) -> Iterator[Cause]:
    """Why nothing runs yet; nothing if everything that there is runs."""
    if snapshot.could_not_read("jobsets", "pods"):
        if (snapshot.train_job.get("status") or {}).get("state") not in _GOING:
            yield _on_its_way(snapshot, "its pods are not known to run")
        return
    jobset = snapshot.jobset
    if jobset is None:
        message = "its JobSet is not there (any more)"
        remedy = "wait a moment: the manager makes it; if it stays away, see the events of the TrainJob"
        yield Cause("NoJobSet", snapshot.subject, message, remedy, describe(snapshot.subject))
        return
    about = Subject("JobSet", name_of(jobset), snapshot.namespace)
    if not snapshot.pods:
        age = snapshot.age(jobset)
        if age < _GRACE_SECONDS:
            yield _on_its_way(snapshot, "its pods have yet to be made")
            return
        message = f"there are no pods, although its JobSet is {age:.0f} s old, and nothing says why"
        if not (jobset.get("status") or {}):
            remedy = "have the JobSet controller checked: it has not handled the JobSet"
            command = kubectl("get", "pods", "-n", "jobset-system")
        else:
            remedy = "see the events of JobSet and Jobs, and have their controllers checked"
            command = describe(about)
        yield Cause("NoPods", about, message, remedy, command)
        return
    missing = [pod for pod in snapshot.pods if not is_up(pod)]
    if missing and not is_complete(snapshot):
        yield _starting(snapshot, missing)


def _starting(snapshot: Snapshot, missing: list[Object]) -> Cause:
    """Pods that are not up: those that have failed, which their Jobs do not replace, and those that start."""
    failed = [pod for pod in missing if has_finished(pod)]
    coming = [pod for pod in missing if pod not in failed]
    texts, remedy = [], "wait; pulling a large image takes minutes"
    if failed:
        texts.append(f"{len(failed)} of {len(snapshot.pods)} pods failed, and no other one takes that place yet")
        remedy = "wait a moment: its Job fails with it, and then the JobSet starts again or fails"
    if coming:
        states = Counter(pod_life(pod).word for pod in coming)
        shown = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
        oldest = max(map(snapshot.age, coming))
        texts.append(
            f"{len(coming)} of {len(snapshot.pods)} pods are on their way: {shown}, for at most {oldest:.0f} s"
        )
    first = Subject(PODS.kind, name_of((failed or coming)[0]), snapshot.namespace)
    return Cause("Starting", first, one_line("; ".join(texts)), remedy, describe(first))


def _on_its_way(snapshot: Snapshot, message: str) -> Cause:
    command = trainer("get", snapshot.name, "-w", namespace=snapshot.namespace)
    return Cause("Starting", snapshot.subject, message, "wait a moment", command)
