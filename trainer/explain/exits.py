"""What an exit code or a reason of a container's end means for the author of a training."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainer.api.launcher_prefix import LauncherPrefix
from trainer.api.progress import REPORTER
from trainer.framework.plugin_api.error_lines import error_line
from trainer.framework.plugin_api.failure import LIMIT, NO_LIMIT, is_killed_child
from trainer.workloads.container_end import OUT_OF_MEMORY, SIGKILL, SIGTERM, UNKNOWN_END
from trainer.workloads.containers import TRAINER_CONTAINERS
from trainer.workloads.disruption import Disruption

_CODE = re.compile(r"exited with code (\d{1,3})(?: \((\w+))?")
_MESSAGE = re.compile(r"exited with code \d{1,3}(?: \(\w+\))?: ")
_CONTAINER = re.compile(r"container ([a-z0-9-]{1,63}) exited with code ")

_SMALLER = "use a smaller batch or fewer workers that load data"
_LARGER = (
    "it used more memory than its limit: raise spec.trainer.resourcesPerNode.limits[memory], or of a pod that is no "
    f"node, such as an MPI launcher, the limit in the runtime; or {_SMALLER}"
)
_LARGER_BESIDE = "it used more memory than its limit: raise the memory limit of container {} in the runtime"
_NO_LIMIT = f"the node ran out of memory: request as much as it uses (resourcesPerNode.requests), or {_SMALLER}"
_NO_LIMIT_BESIDE = "the node ran out of memory: request as much as container {} uses in the runtime"

_COMMAND, _COMMAND_BESIDE = "spec.trainer.command", "the command of container {} in the runtime"
_NO_START = "its command cannot be started: correct {command}, or take an image that has it"
_REASONS = {
    "StartError": _NO_START,
    "ContainerCannotRun": _NO_START,
    UNKNOWN_END: "the kubelet has lost it, as after a restart of the node: how it ended is not known",
}
_NOT_THE_PROGRAM = "the program is not the cause: with checkpoints and a runtime that restarts it, little is lost"
_TAKEN_AWAY: dict[str, str] = {
    Disruption.PREEMPTION: f"{_NOT_THE_PROGRAM}; a higher priority (priorityClassName in the runtime) keeps its pods",
    Disruption.KUBELET: f"{_NOT_THE_PROGRAM}; if its node ran short of resources, request as much as it uses "
    "(resourcesPerNode.requests)",
    Disruption.DELETED: f"somebody has deleted the pod, where trainer suspend stops a training; {_NOT_THE_PROGRAM}",
    "": "the program is not known to be the cause: somebody has deleted the pod, and the audit log of the API server "
    "knows who",
}
"""By the reason for which a pod was taken away; of a deletion by somebody who is not known there is none."""
_EVICTED = ": Evicted"
"""Earlier versions of the manager have called it so."""
_TAKEN = re.compile(
    r"\b(?:pod|PodGroup) \S{1,253} (?:was|has saved) (?:[^(;]{0,200} \((\w+)|(deleted, and not by its Job))?"
)
_CODES = {
    126: "its command is not executable: correct {command}, or the image",
    127: "its command is not in the image: correct {command}, or take an image that has it",
    134: "the program has aborted, often in native code: its log says where",
    SIGKILL: "it was killed (SIGKILL), and nothing says by whom, mostly for memory of the node: request the memory "
    "that it uses",
    139: "it crashed in native code (SIGSEGV): check that the versions of driver, image and libraries fit",
    SIGTERM: "it was asked to end (SIGTERM), and nothing says by whom: see the events of its pod",
}
_DEFAULT = "its log says why: correct the program, its arguments or its data"
_UNKNOWN = "the cause is not known: no error stands at the end of its log, whose other lines may say why"
_KILLED_CHILD = "a process was killed (SIGKILL), most likely by the kernel for memory"
_KILLED: dict[bool | None, str] = {
    True: f"{_KILLED_CHILD}, since {_LARGER}",
    False: f"{_KILLED_CHILD} of its node, since it has no limit: request as much as it uses "
    f"(resourcesPerNode.requests), or {_SMALLER}",
    None: f"{_KILLED_CHILD}: raise its limit of memory or request as much as it uses (resourcesPerNode), or {_SMALLER}",
}
_DO_IT = "do what the message says"
_WITH_REMEDY = re.compile(r"exited with code \d{1,3}: (?:dataset|model|export): ")
"""Before the message of an initializer or the exporter, which ends with what to do."""

_LAST_WORDS = {
    r"trainer: cannot install ": "correct the requirements, or name an index that the pods reach "
    "(trainer run --env PIP_INDEX_URL=...)",
    r"trainer: (?:the image has |cannot )": _DO_IT,
    r"ModuleNotFoundError: No module named 'trainer_reporter'": f"ask for the reporter, which brings the module: the "
    f'annotation {REPORTER}: "true" of the TrainJob',
    r"(?:ModuleNotFoundError|ImportError): No module named '[\w.]+'": "take an image that has the module; with trainer "
    "run, name its package in requirements.txt, or, if it is your own, see that it travels (--folder)",
    r"FileNotFoundError: \[Errno 2\] ": "see that the file is in the container: with trainer run it travels with "
    "--folder, else mount the volume that has it",
    r"can't open file '": "correct the path of the script in spec.trainer.command, or mount the volume that has it",
    r"(?:SyntaxError|IndentationError|TabError): ": "correct the script, which this Python cannot read",
    r"(?:CUDA|HIP) out of memory|CUDA_ERROR_OUT_OF_MEMORY|RESOURCE_EXHAUSTED: Out of memory": "the GPU has too little "
    "memory: use a smaller batch or shorter sequences, or train on more or larger GPUs",
    r"Found no NVIDIA driver|No CUDA GPUs are available|Torch not compiled with CUDA|no CUDA-capable": "ask "
    "for GPUs in spec.trainer.resourcesPerNode (trainer run --gpus), and take an image that is built for them",
    r"out of shared memory|Bus error\b": "its /dev/shm is too small: mount an emptyDir with medium Memory there, or "
    "use fewer workers that load data",
    r"No space left on device": "its disk or volume is full: write less, or ask for a larger volume",
    r"PermissionError: \[Errno 13\] ": "see that the user of the container may use the file: securityContext.fsGroup "
    "gives it a volume",
}
"""What the last lines of logs say most often, as the end of an exception has it, and what to do about it."""
_WORDS = tuple((re.compile(rf"(?:^|\s)(?:[\w.]+\.)?(?:{words})"), remedy) for words, remedy in _LAST_WORDS.items())


def is_taken_away(text: str) -> bool:
    """Whether a text says that a pod or a gang was disrupted or deleted, in the words of `FailedContainer.text`."""
    return _TAKEN.search(text) is not None


def exit_remedy(text: str, log: Sequence[str] = (), *, is_limited: bool | None = None) -> str:
    """What to do about a container that ended as a text says, in the words of `FailedContainer.text`.

    Args:
        text: names the container; those that do not train are set by the runtime, and not by `spec.trainer`.
        log: its last lines, which say more where the program has ended by itself. Default: none.
        is_limited: whether it has a limit of memory. Default: as the text says, else unknown.
    """
    taken = _TAKEN.search(text)
    if taken is not None:
        return _TAKEN_AWAY.get(taken[1] or (Disruption.DELETED if taken[2] else ""), _NOT_THE_PROGRAM)
    if _EVICTED in text:
        return _TAKEN_AWAY[Disruption.KUBELET]
    found, named = _CODE.search(text), _CONTAINER.search(text)
    beside = named[1] if named is not None and named[1] not in TRAINER_CONTAINERS else ""
    reason, code = (found[2] or "", int(found[1])) if found is not None else ("", 0)
    is_limited = False if NO_LIMIT in text else is_limited
    if reason == OUT_OF_MEMORY:
        remedies = (_NO_LIMIT, _NO_LIMIT_BESIDE) if is_limited is False else (_LARGER, _LARGER_BESIDE)
        return remedies[bool(beside)].format(beside)
    if is_killed_child(text, log):
        return _KILLED[True if LIMIT in text else is_limited]
    remedy = _REASONS.get(reason) or _CODES.get(code) or _of_words(text, log)
    return remedy.format(command=_COMMAND_BESIDE.format(beside) if beside else _COMMAND)


def _of_words(text: str, log: Sequence[str]) -> str:
    """By the last line that says something known, or by the termination message, which is part of the text."""
    if _WITH_REMEDY.search(text):
        return _DO_IT
    message = _MESSAGE.search(text)
    said = (*([text[message.end() :]] if message is not None else []), *log)
    for line in reversed(said or (text,)):
        bare = line[LauncherPrefix.of(line).length :]
        for words, remedy in _WORDS:
            if words.search(line) or words.search(bare):
                return remedy
    return _DEFAULT if error_line(said) else _UNKNOWN
