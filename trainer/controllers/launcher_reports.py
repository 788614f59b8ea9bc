"""Reports of launchers about a process that has failed.

They stand below what the process itself has said, are longer than what a condition keeps of a log, and do not say why
it failed: torchrun's has a traceback of its own and some twenty lines, mpirun's is paragraphs between rules.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_TORCHRUN_ERROR = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError"
_TORCHRUN_CAUSE = "Root Cause (first observed failure):"
_TORCHRUN_RANK = re.compile(r"  rank +: (\d+) ")
_OF_RANK = re.compile(r"\[rank(\d+)\]:")
"""Begins the lines of a traceback in a process group of PyTorch."""
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


def without_reports(lines: Sequence[str]) -> list[str]:
    """The lines of a log, or of its end, without the reports; one that begins above the first line goes as well."""
    return _without_hydra(_without_mpirun(_without_torchrun(list(lines))))


def _without_torchrun(lines: list[str]) -> list[str]:
    cause = _last(lines, lambda line: line == _TORCHRUN_CAUSE)
    if cause is None:
        return lines
    end = next((index for index in range(cause, len(lines)) if _TORCHRUN_END.fullmatch(lines[index])), len(lines) - 1)
    error = _last(lines[:cause], lambda line: line.startswith(_TORCHRUN_ERROR))
    begin = 0 if error is None else _last(lines[:error], lambda line: line == _TRACEBACK)
    above = [line for line in lines[: error if begin is None else begin] if not _TORCHRUN_LOG.match(line)]
    rank = next((found[1] for line in lines[cause:end] if (found := _TORCHRUN_RANK.match(line))), "")
    return _without_other_ranks(above, rank) + lines[end + 1 :]


def _without_other_ranks(lines: list[str], rank: str) -> list[str]:
    """Without the tracebacks of processes that failed because the one of this rank had; all if that one has none."""
    ranks = [found[1] if (found := _OF_RANK.match(line)) else "" for line in lines]
    if rank not in ranks:
        return lines
    return [line for line, of in zip(lines, ranks, strict=True) if of in {"", rank}]


def _without_mpirun(lines: list[str]) -> list[str]:
    """Without its paragraphs at the end; Open MPI writes one for each thing that it has noticed."""
    rules = [index for index, line in enumerate(lines) if _MPIRUN_RULE.fullmatch(line)]
    left = len(lines)
    below: list[str] = []
    while rules:
        end = rules.pop()
        begin = rules.pop() if rules else 0
        if not any(words in line for line in lines[begin:end] for words in _MPIRUN_WORDS):
            break
        below = lines[end + 1 : left] + below
        left = begin
    return lines[:left] + below


def _without_hydra(lines: list[str]) -> list[str]:
    """Without the report of MPICH and Intel MPI."""
    if not any(_HYDRA_WORDS in line for line in lines):
        return lines
    return [line for line in lines if not _HYDRA_LINE.fullmatch(line)]


def _last(lines: Sequence[str], matches: Callable[[str], bool]) -> int | None:
    return next((index for index in range(len(lines) - 1, -1, -1) if matches(lines[index])), None)
