"""Reports of launchers about a process that has failed.

They stand below what the process itself has said, are longer than what a condition keeps of a log, and do not say why
it failed: torchrun's has a traceback of its own and some twenty lines, mpirun's is paragraphs between rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from trainer.api.launcher_prefix import LauncherPrefix

_TORCHRUN_ERROR = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError"
_TORCHRUN_CAUSE = "Root Cause (first observed failure):"
_TORCHRUN_RANK = re.compile(r" *rank +: (\d+) ")
_TORCHRUN_END = re.compile(r"={8,}")
_TORCHRUN_LOG = re.compile(r"[IWEF]\d{4} \S+ .*\btorch/distributed/(?:elastic/|run\.py)")
"""Begins the lines that torchrun logs itself, about signals that it sends and exit codes that it gets."""
_TRACEBACK = "Traceback (most recent call last):"
_MPIRUN_RULE = re.compile(r"-{74}")
_MPIRUN_WORDS = (
    "Primary job  terminated normally, but",
    "Per user-direction, the job has been aborted",
    "detected that one or more processes exited with non-zero status",
    "MPI_ABORT was invoked on rank",
)
_HYDRA_WORDS = "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES"
_HYDRA_LINE = re.compile(r"=(?:   .*|={60,})")


class _Line(NamedTuple):
    shown: str
    text: str
    """Without the prefixes of launchers: the report of one that another has started has that one's."""
    torch_rank: int | None

    @classmethod
    def of(cls, shown: str) -> _Line:
        prefix = LauncherPrefix.of(shown)
        return cls(shown, shown[prefix.length :], prefix.torch_rank)


def without_reports(lines: Sequence[str]) -> list[str]:
    """The lines of a log, or of its end, without the reports; one that begins above the first line goes as well."""
    left = _without_hydra(_without_mpirun(_without_torchrun([_Line.of(line) for line in lines])))
    return [line.shown for line in left]


def _without_torchrun(lines: list[_Line]) -> list[_Line]:
    cause = _last(lines, lambda text: text == _TORCHRUN_CAUSE)
    if cause is None:
        return lines
    ends = (index for index in range(cause, len(lines)) if _TORCHRUN_END.fullmatch(lines[index].text))
    end = next(ends, len(lines) - 1)
    error = _last(lines[:cause], lambda text: text.startswith(_TORCHRUN_ERROR))
    begin = 0 if error is None else _last(lines[:error], lambda text: text == _TRACEBACK)
    above = [line for line in lines[: error if begin is None else begin] if not _TORCHRUN_LOG.match(line.text)]
    ranks = (int(found[1]) for line in lines[cause:end] if (found := _TORCHRUN_RANK.match(line.text)))
    return _without_other_ranks(above, next(ranks, None)) + lines[end + 1 :]


def _without_other_ranks(lines: list[_Line], rank: int | None) -> list[_Line]:
    """Without the tracebacks of processes that failed because the one of this rank had; all if that one has none."""
    if rank is None or all(line.torch_rank != rank for line in lines):
        return lines
    return [line for line in lines if line.torch_rank in {None, rank}]


def _without_mpirun(lines: list[_Line]) -> list[_Line]:
    """Without its paragraphs at the end; Open MPI writes one for each thing that it has noticed."""
    rules = [index for index, line in enumerate(lines) if _MPIRUN_RULE.fullmatch(line.text)]
    left = len(lines)
    below: list[_Line] = []
    while rules:
        end = rules.pop()
        begin = rules.pop() if rules else 0
        if not any(words in line.text for line in lines[begin:end] for words in _MPIRUN_WORDS):
            break
        below = lines[end + 1 : left] + below
        left = begin
    return lines[:left] + below


def _without_hydra(lines: list[_Line]) -> list[_Line]:
    """Without the report of MPICH and Intel MPI."""
    if not any(_HYDRA_WORDS in line.text for line in lines):
        return lines
    return [line for line in lines if not _HYDRA_LINE.fullmatch(line.text)]


def _last(lines: Sequence[_Line], matches: Callable[[str], bool]) -> int | None:
    return next((index for index in range(len(lines) - 1, -1, -1) if matches(lines[index].text)), None)
