"""The prefixes that launchers put before each line of their processes, so that people see which one has written it.

They are known here alone: to the messages about progress, the reports of launchers and the causes of a failure.

| launcher | prefix |
|---|---|
| `torchrun --tee` | `[default0]:`, with the name of the role and the local rank |
| PyTorch, before tracebacks | `[rank0]: ` |
| `mpirun --tag-output`, `--output tag`, and with `--timestamp-output` | `[1,0]<stdout>:`, `[job@1,0]<stdout>: ` |
| `mpirun -prepend-rank`, `-l` of MPICH and Intel MPI | `[0] ` |
| horovodrun | `[1,0]<stdout>:`, `[0]<stdout>:` |
| `srun --label`, `flux run --label-io` | `0: ` |
| pdsh, as deepspeed uses it | `host: ` |
| Ray | `(name pid=12, ip=10.0.0.1) ` |
| docker compose | `name-1  | ` |
"""

from __future__ import annotations

import re
from typing import AnyStr, Final, NamedTuple

NOTHING_SHOWN: Final = r"(?:[ \t\v\f\r]|\x1b\[[0-9;?]*[A-Za-z])*+"
"""A pattern of blanks and terminal control sequences, such as colours."""

_STREAM = r"<std(?:out|err|diag)>: ?"
_HOST = r"[a-z0-9][a-z0-9.-]{0,252}"
_PREFIX = "|".join(
    (
        r"\[rank(?P<torch>\d{1,7})\]: ?",
        r"\[[\w.-]{0,64}?(?P<local>\d{1,7})\]:",
        rf"\[[\w.@-]{{1,256}},(?P<mpi>\d{{1,7}})\](?:\[[^\]\s]{{1,300}}\])?{_STREAM}",
        rf"\[(?P<rank>\d{{1,7}})\](?:{_STREAM}| )",
        r"(?P<label>\d{1,7}): ",
        rf"{_HOST}: ",
        r"\((?:[^()\n]{1,200} )?pid=\d{1,10}(?:, ip=[0-9a-fA-F.:]{1,45})?\) ?",
        r"[A-Za-z0-9][\w.-]{0,252} {1,64}\| ",
        _STREAM,  # by the time alone
    )
)
_TIME = r"(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}(?=[\[<]))?"
_DEEPEST = 8
"""Most prefixes of one line, so that its ranks stay few."""
_TEXT = re.compile(f"{NOTHING_SHOWN}{_TIME}(?:{_PREFIX})", re.ASCII)
_BYTES = re.compile(_TEXT.pattern.encode())


class LauncherPrefix(NamedTuple):
    """All prefixes at the beginning of a line, since launchers start launchers."""

    length: int = 0
    """Characters, or bytes."""
    ranks: tuple[int, ...] = ()
    """The ranks that they tell, the outermost first; none for those that tell a host or a process."""
    torch_rank: int | None = None
    """The rank among all processes, where PyTorch has written it."""

    @classmethod
    def of(cls, line: AnyStr, end: int | None = None) -> LauncherPrefix:
        """Those of a line, in linear time; none of them goes beyond `end`. Default: the end of the line."""
        pattern, most = (_TEXT if isinstance(line, str) else _BYTES), len(line) if end is None else end
        length, ranks, torch_rank = 0, list[int](), None
        for _ in range(_DEEPEST):
            found = pattern.match(line, length, most)
            if found is None:
                break
            length = found.end()
            if found.lastgroup is not None:
                ranks.append(int(found[found.lastgroup]))
            if found.lastgroup == "torch":
                torch_rank = ranks[-1]
        return cls(length, tuple(ranks), torch_rank)
