"""What the progress controller keeps of one training."""

from __future__ import annotations

from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.events.recorder import EventRecorder
from trainer.kube.logger import get_logger
from trainer.kube.objects import Object, key_of, uid_of
from trainer.progress.follower import Follower

log = get_logger(__name__)


class Training:
    """The state of one TrainJob whose log is followed now or was followed."""

    def __init__(self, obj: Object) -> None:
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
        self.is_checked = False
        """Whether a reconcile is queued for the moment at which a stall would begin."""
        self._warned: set[tuple[str, str]] = set()

    @property
    def pod(self) -> str:
        """Uid of the pod of the present or last follower."""
        return self.place[0] if self.place else ""

    def stop(self) -> None:
        """Cancel the follower."""
        if self.follower is not None:
            self.follower.stop()
        self.follower = None

    def warn_once(self, events: EventRecorder, reason: str, message: str, *, subject: str = "") -> None:
        """Record a warning event, unless one of this reason and subject was recorded before."""
        if (reason, subject) not in self._warned:
            self._warned.add((reason, subject))
            log.info("warned of the progress of a training", reason=reason, message=message)
            events.record(self.reference, type="Warning", reason=reason, message=message)
