"""What an exit code or a reason of a container's end means for the author of a training."""

from __future__ import annotations

import re

from trainer.framework.building.trainer_step import TRAINER_CONTAINERS

_CODE = re.compile(r"exited with code (\d{1,3})(?: \((\w+))?")
_CONTAINER = re.compile(r"container ([a-z0-9-]{1,63}) exited with code ")

_OUT_OF_MEMORY = "OOMKilled"
_SMALLER = "use a smaller batch or fewer workers that load data"
_LARGER = f"it used more memory than its limit: raise spec.trainer.resourcesPerNode.limits[memory], or {_SMALLER}"
_LARGER_BESIDE = "it used more memory than its limit: raise the memory limit of container {} in the runtime"
_NO_LIMIT = f"the node ran out of memory: request as much as it uses (resourcesPerNode.requests), or {_SMALLER}"
_NO_LIMIT_BESIDE = "the node ran out of memory: request as much as container {} uses in the runtime"

_COMMAND, _COMMAND_BESIDE = "spec.trainer.command", "the command of container {} in the runtime"
_NO_START = "its command cannot be started: correct {command}, or take an image that has it"
_REASONS = {
    "StartError": _NO_START,
    "ContainerCannotRun": _NO_START,
    "Evicted": "the node ran short of resources: request as much as it uses (resourcesPerNode.requests)",
    "ContainerStatusUnknown": "the node was lost: submit it again, with maxRestarts in the runtime for the next time",
}
_CODES = {
    126: "its command is not executable: correct {command}, or the image",
    127: "its command is not in the image: correct {command}, or take an image that has it",
    134: "the program has aborted, often in native code: its log says where",
    137: "it was killed (SIGKILL), mostly for memory of the node, or by its deletion: request the memory that it uses",
    139: "it crashed in native code (SIGSEGV): check that the versions of driver, image and libraries fit",
    143: "it was asked to end (SIGTERM), as for an eviction or a deletion: see the events of its pod",
}
_DEFAULT = "its log says why: correct the program, its arguments or its data"


def exit_remedy(text: str, *, is_limited: bool = True) -> str:
    """What to do about a container that ended as a text says, in the words of `FailedContainer.text`.

    Args:
        text: names the container; those that do not train are set by the runtime, and not by `spec.trainer`.
        is_limited: whether it has a limit of memory. Default: True, as it has where the kernel ends it alone.
    """
    found, named = _CODE.search(text), _CONTAINER.search(text)
    beside = named[1] if named is not None and named[1] not in TRAINER_CONTAINERS else ""
    if found is not None:
        reason, code = found[2] or "", int(found[1])
    else:
        reason, code = next((each for each in (_OUT_OF_MEMORY, *_REASONS) if f": {each}" in text), ""), 0
    if reason == _OUT_OF_MEMORY:
        remedies = (_LARGER, _LARGER_BESIDE) if is_limited else (_NO_LIMIT, _NO_LIMIT_BESIDE)
        return remedies[bool(beside)].format(beside)
    remedy = _REASONS.get(reason) or _CODES.get(code) or _DEFAULT
    return remedy.format(command=_COMMAND_BESIDE.format(beside) if beside else _COMMAND)
