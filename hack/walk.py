"""Print the files of the controller and of the framework that a reader of a TrainJob's life meets, with their lines.

Run it before and after a change of the reconcile:

    python -m hack.walk
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import anyio

import trainer
from benchmarks.build import Subject
from trainer.kube.logs.logs import configure_logging

_TRAINER: Final = Path(trainer.__file__).parent
_ROOMS: Final = tuple(f"{_TRAINER / room}/" for room in ("controllers", "framework"))
"""Above `trainer/kube`, without the models of `api` and the plugins, which are read one by one."""


def walk() -> dict[Path, int]:
    """The lines of each file that has a function running between the creation of a TrainJob and its last status."""
    anyio.run(_life, set())  # another one first: imports and caches
    files: set[str] = set()
    anyio.run(_life, files)
    return {Path(file).relative_to(_TRAINER): len(Path(file).read_text().splitlines()) for file in sorted(files)}


async def _life(files: set[str]) -> None:
    subject = Subject(jobs=1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(subject.manager.run)
        await subject.manager.wait_for_start()
        for phase in ("create", "complete"):
            with _noted(files):
                subject.disturb(phase)
                await subject.rest()
        tasks.cancel_scope.cancel()


@contextmanager
def _noted(files: set[str]) -> Iterator[None]:
    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(_ROOMS) and code.co_name != "<module>":
            files.add(code.co_filename)

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)


def main() -> None:
    """Print the files, and their number and lines together."""
    configure_logging(level="error")
    lines = walk()
    for file, count in lines.items():
        sys.stdout.write(f"{count:6} {file}\n")
    sys.stdout.write(f"{sum(lines.values()):6} lines in {len(lines)} files\n")


if __name__ == "__main__":
    main()
