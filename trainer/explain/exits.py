"""What an exit code or a reason of a container's end means for the author of a training."""

from __future__ import annotations

import re

_CODE = re.compile(r"exited with code (\d{1,3})(?: \((\w+))?")

_REASONS = {
    "OOMKilled": "it used more memory than its limit: raise spec.trainer.resourcesPerNode.limits[memory], or use a "
    "smaller batch or fewer workers that load data",
    "StartError": "its command cannot be started: correct spec.trainer.command, or take an image that has it",
    "ContainerCannotRun": "its command cannot be started: correct spec.trainer.command, or take an image that has it",
    "Evicted": "the node ran short of resources: request as much as it uses (resourcesPerNode.requests)",
    "ContainerStatusUnknown": "the node was lost: submit it again, with maxRestarts in the runtime for the next time",
}
_CODES = {
    126: "its command is not executable: correct spec.trainer.command, or the image",
    127: "its command is not in the image: correct spec.trainer.command, or take an image that has it",
    134: "the program has aborted, often in native code: its log says where",
    137: "it was killed (SIGKILL), mostly for memory of the node, or by its deletion: request the memory that it uses",
    139: "it crashed in native code (SIGSEGV): check that the versions of driver, image and libraries fit",
    143: "it was asked to end (SIGTERM), as for an eviction or a deletion: see the events of its pod",
}
_DEFAULT = "its log says why: correct the program, its arguments or its data"


def exit_remedy(text: str) -> str:
    """What to do about a container that ended as a text says, in the words of `FailedContainer.text`."""
    found = _CODE.search(text)
    if found is None:
        return next((remedy for reason, remedy in _REASONS.items() if f": {reason}" in text), _DEFAULT)
    return _REASONS.get(found[2] or "") or _CODES.get(int(found[1])) or _DEFAULT
