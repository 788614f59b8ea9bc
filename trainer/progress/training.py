"""What the progress controller keeps of one training."""

from __future__ import annotations

import math

from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.events.recorder import EventRecorder
from trainer.kube.logger import get_logger
from trainer.kube.objects import Object, key_of, uid_of
from trainer.progress.follower import Follower, FollowerContext
from trainer.progress.silence import SilenceWatch
from trainer.progress.stalls import StallWatch
from trainer.progress.steps import Start, Steps
from trainer.progress.writer import ProgressWriter

log = get_logger(__name__)


class Training:
    """The state of one TrainJob whose logs are followed now or were followed."""

    def __init__(self, obj: Object, context: FollowerContext, writer: ProgressWriter, start: Start) -> None:
        self.key = key_of(obj)
        self.uid = uid_of(obj)
        self.reference: Object = {
            "apiVersion": obj["apiVersion"],
            "kind": TRAIN_JOBS.kind,
            "metadata": {"name": self.key.name, "namespace": self.key.namespace, "uid": self.uid},
        }
        self.place: tuple[str, str] | None = None
        """Pod uid and container of the present or last follower."""
        self.age: tuple[int, str] = (0, "")
        """See `ContainerState`."""
        self.follower: Follower | None = None
        """None after the log of an ended TrainJob is read to the end."""
        self.steps = Steps(obj, context, writer, start)
        self.stalls = StallWatch(context.clock, context.series)
        self.silence = SilenceWatch(context.clock)
        self.check_due = math.inf
        """When, by the monotonic clock, a reconcile is queued since a stall or a silence would begin."""
        self._warned: set[tuple[str, str]] = set()

    @property
    def pod(self) -> str:
        """Uid of the pod of the present or last follower."""
        return self.place[0] if self.place else ""

    @property
    def next_check(self) -> float | None:
        """Seconds until a stall or a silence may begin; None if only a message can change that."""
        pauses = (self.stalls.next_check, self.silence.next_check)
        return min((each for each in pauses if each is not None), default=None)

    def stop_following(self) -> None:
        """Cancel the follower of the primary container."""
        if self.follower is not None:
            self.follower.stop()
        self.follower = None

    def stop(self) -> None:
        """Follow nothing, and watch for stalls and silence no more."""
        self.stop_following()
        self.steps.stop()
        self.stalls.stop()
        self.silence.stop()

    def warn_once(self, events: EventRecorder, reason: str, message: str, *, subject: str = "") -> None:
        """Record a warning event, unless one of this reason and subject was recorded before."""
        if (reason, subject) not in self._warned:
            self._warned.add((reason, subject))
            log.info("warned of the progress of a training", reason=reason, message=message)
            events.record(self.reference, type="Warning", reason=reason, message=message)
