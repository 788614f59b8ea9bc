"""The checkpoints of this process: when one is due, which is the newest, and the end after a signal."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from trainer.checkpoints import ranks, saving, settings, store
from trainer.checkpoints.checkpoint import Checkpoint
from trainer.checkpoints.meetings import Meetings
from trainer.checkpoints.stop_signal import StopSignal
from trainer.progress.report import DIRECTORY_VARIABLE, report

SAVED_AND_ENDED = 75
"""Exit code of a training that has saved its state after a signal and ended (EX_TEMPFAIL of sysexits.h)."""
TERMINATED = 143
"""Exit code of one that has ended after a signal and could save nothing (128 + SIGTERM)."""
_START_SECONDS = 60.0
"""How long ranks wait for each other to find the newest checkpoint."""
_RESULT_SECONDS = 120.0
"""How long a rank that ends waits for rank 0, which may still write."""
_LEAVE_SECONDS = 10.0
"""How long rank 0, which may keep the store, waits for the others to leave; and what is left of a process to end."""


class Training:
    """What this process knows of its checkpoints; times are those of `time.monotonic`."""

    def __init__(self) -> None:
        self._signal = StopSignal()
        self._group: ranks.Group | None = None
        self._meetings: Meetings | None = None
        self._seconds: float | None = None
        """The time between two checkpoints; 0 where there are none, None before the first step."""
        self._is_ending = self._is_apart = self._has_left = False
        self._saved_at = time.monotonic()
        self._saved: tuple[int, Path] | None = None
        """The last complete checkpoint; on other ranks than 0, the last that rank 0 was to complete."""
        self._reported: tuple[int, Path] | None = None
        self._announced = 0
        """The step that the counter of the last checkpoint of rank 0 has."""
        self._exit_code: int | None = None

    def latest(self) -> Checkpoint | None:
        """The newest complete checkpoint, that all ranks see."""
        directory = settings.directory()
        return None if directory is None else self.newest(directory, store.STEPS)

    def newest(self, directory: Path, names: Sequence[str]) -> Checkpoint | None:
        """The newest in a directory, that all ranks see."""
        found, group = store.newest(directory, names), self.group()
        if group is not None:
            with suppress(Exception):  # only some ranks ask
                found = self._agree_on_newest(group, directory, names, found)
        return None if found is None else Checkpoint(*found)

    def _agree_on_newest(
        self, group: ranks.Group, directory: Path, names: Sequence[str], found: tuple[int, Path] | None
    ) -> tuple[int, Path] | None:
        """What rank 0 sees, if all others do.

        Raises:
            TimeoutError: not all have asked.
        """
        said, seen, missed = map(group.turn, ("newest", "seen", "missed"))
        if group.rank == 0:
            group.add(said, 1 if found is None else found[0] + 2)
        else:
            step = group.wait(said, 1, lambda: _START_SECONDS) - 2
            found = None if step < 0 else self._wait_for(group, directory, names, step)
            if step >= 0 and found is None:
                group.add(missed, 1)
            group.add(seen, 1)
        group.wait(seen, group.size - 1, lambda: 2 * _START_SECONDS)
        if not group.add(missed):
            return found
        settings.complain(
            "shared", f"no checkpoint is loaded: not all nodes see those of rank 0; mount one directory as {directory}"
        )
        return None

    @staticmethod
    def _wait_for(group: ranks.Group, directory: Path, names: Sequence[str], step: int) -> tuple[int, Path] | None:
        """The checkpoint of a step, which a network file system may show late."""
        until = group.clock() + _START_SECONDS / 2
        while True:
            found = [each for each in store.complete(directory, names) if each[0] == step]
            if found or group.clock() > until:
                return found[0] if found else None
            group.sleep(1)

    def due(self) -> bool:
        """Whether all ranks save now."""
        if self._seconds is None:
            self._seconds = settings.seconds() if os.environ.get(DIRECTORY_VARIABLE) else 0.0
        if not self._seconds:
            return False
        self._signal.watch()
        if self._is_ending:
            return False  # once is enough, where a script goes on
        is_over = time.monotonic() - self._saved_at >= self._seconds
        meetings = self._meetings_now()
        if self._is_apart or meetings is None:
            self._end_if(self._signal.came_at is not None)
            return not self._is_apart and self._begins_anew(is_over or self._is_ending)
        try:
            decision = meetings.step(self._signal, is_over)
            if decision is not None:
                self._learn()
        except Exception as error:
            self._is_apart = True
            settings.complain("apart", f"no more checkpoints: the other ranks do not answer: {error!r:.200}")
            self._end_if(self._signal.came_at is not None)
            return False
        if decision is None:
            return False
        self._end_if(decision.ends)
        return self._begins_anew(decision.saves)

    def _begins_anew(self, saves: bool) -> bool:
        """The time to the next checkpoint begins, whether this one succeeds or not."""
        if saves:
            self._saved_at = time.monotonic()
        return saves

    def group(self) -> ranks.Group | None:
        """The ranks, once they have met; None for a process that is alone."""
        self._group = self._group or ranks.group()
        return self._group

    def release(self) -> None:
        """No more steps come."""
        if not self._is_ending:
            self._signal.release()

    def _end_if(self, ends: bool) -> None:
        if ends:
            self._is_ending = True
            self._saved = None  # what counts from now on is whether this one succeeds

    def _meetings_now(self) -> Meetings | None:
        """The meetings with the other ranks; None without others."""
        if self._meetings is None and (group := self.group()) is not None:
            self._meetings = Meetings(group)
        return self._meetings

    def is_ending(self) -> bool:
        """Whether the training ends once it has saved."""
        return self._is_ending

    def save(self, state: object, step: int) -> None:
        """Write a checkpoint, and delete old ones; say what goes wrong."""
        path = saving.save(state, step, self.group())
        self._saved_at = time.monotonic()
        if path is not None:
            self.saved(step, path)

    def saved(self, step: int, path: Path) -> None:
        """Take note of a complete checkpoint; rank 0 reports it at once, the others when they know."""
        self._saved_at = time.monotonic()
        self._saved = step, Path(path)
        if self._group is None or self._group.rank == 0:
            self._report(self._saved)
        if self._group is not None and self._group.rank == 0:
            with suppress(Exception):  # the store is gone
                self._group.add("saved", step - self._announced)
                self._announced = step

    def _learn(self) -> None:
        """Report the checkpoint that rank 0 was to complete, once it has; the reporter decides which rank writes.

        Raises:
            Exception: the store cannot be reached.
        """
        if self._saved is None or self._saved == self._reported or self._group is None:
            return
        if self._group.add("saved") >= self._saved[0]:
            self._report(self._saved)

    def _report(self, saved: tuple[int, Path]) -> None:
        self._reported = saved
        report(checkpoint_step=saved[0], checkpoint_path=str(saved[1]))

    def end(self) -> NoReturn:
        """End this process, after rank 0 has saved."""
        has_saved = self._saved is not None
        with suppress(Exception):  # the store is gone, or a rank does not end
            if self._group is not None and not self._is_apart:
                has_saved = self._meet_at_the_end(self._group)
        self._exit_code = SAVED_AND_ENDED if has_saved else TERMINATED
        report(force=True)
        watchdog = threading.Timer(_LEAVE_SECONDS, self._leave)  # a library may wait for those that are gone
        watchdog.daemon = True
        watchdog.start()
        if threading.current_thread() is not threading.main_thread():
            self._leave()
        atexit.register(self._leave_after_all)
        sys.exit(self._exit_code)

    def _meet_at_the_end(self, group: ranks.Group) -> bool:
        """Whether rank 0 has saved; it leaves last, as the store may be in its process."""
        if group.rank == 0:
            saved = int(self._saved is not None)
            group.add("result", saved + 1)
            with suppress(TimeoutError):
                group.wait("left", group.size - 1, lambda: _LEAVE_SECONDS)
        else:
            saved = group.wait("result", 1, lambda: _RESULT_SECONDS) - 1
            self._learn()
            group.add("left", 1)
        return saved > 0

    def _leave_after_all(self) -> None:
        """End after all functions of the exit, before native libraries can abort while Python takes them down."""
        run = getattr(atexit, "_run_exitfuncs", None)
        if run is not None and not self._has_left:
            self._has_left = True
            with suppress(BaseException):
                run()
            self._leave()

    def _leave(self) -> None:
        """End at once, with the code."""
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()
        os._exit(TERMINATED if self._exit_code is None else self._exit_code)
