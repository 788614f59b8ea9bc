"""What the claim for checkpoints lacks, as pods and programs say it, with the remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from trainer.api.checkpoints import MOUNT_PATH, VOLUME, mounted_directory, stated_claim
from trainer.explain.cause import kubectl
from trainer.explain.remedies import Advice
from trainer.explain.snapshot import Snapshot

_MISSING: Final = 'persistentvolumeclaim "{}" not found'
_NO_DIRECTORY: Final = re.compile(rf'failed to (?:create|prepare) subPath (?:directory )?for volumeMount "{VOLUME}"')
_ANOTHER: Final = "submit it again with another claim"
_WORDS: Final = {
    "No space left on device": f"claim {{}} is full: delete what is not needed in it, enlarge it, or {_ANOTHER}",
    "Read-only file system": f"claim {{}} is read-only: {_ANOTHER}",
    "Permission denied": "the user of the container may not write in claim {}: securityContext.fsGroup gives it the "
    "volume, where the kind of volume allows that",
}
"""What Linux says where a file of the directory cannot be written, by the error."""


def claim_advice(snapshot: Snapshot, texts: Iterable[str]) -> Advice | None:
    """What to do about the first text that is about the claim for checkpoints; None where none is.

    Args:
        snapshot: whose JobSet names the claim, or its TrainJob where that has ended.
        texts: messages of pods, or the last lines of a log, the last one first.
    """
    jobset = snapshot.jobset
    directory = stated_claim(snapshot.train_job) if jobset is None else mounted_directory(jobset)
    if directory is None:
        return None
    claim, namespace = directory.name, snapshot.namespace
    command = kubectl("describe", "pvc", claim, namespace=namespace)
    for text in texts:
        if _MISSING.format(claim) in text:
            remedy = f"create the claim {claim}, which is to keep the checkpoints, in namespace {namespace}"
            return Advice(f"{remedy}: the pods start then", kubectl("get", "pvc", namespace=namespace))
        if _NO_DIRECTORY.search(text):
            remedy = f"claim {claim} is full or read-only, or lets the kubelet make no directory (NFS with root_squash)"
            return Advice(f"{remedy}: make room in it, or {_ANOTHER}", command)
        for words, remedy in _WORDS.items():
            if words in text and MOUNT_PATH in text:
                return Advice(remedy.format(claim), command)
    return None
