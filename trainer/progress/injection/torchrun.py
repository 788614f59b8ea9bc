"""The exit code of torchrun: that of its workers where they have saved their state after a signal and ended.

torchrun ends with 1 whatever its workers end with, and starts them again where it has restarts left. Neither suits a
training that was asked to end: Kubernetes would take it for a failure, and nodes would wait for one that is gone.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from trainer.checkpoints.training import SAVED_AND_ENDED, TERMINATED
from trainer.progress.injection.startup import complain
from trainer.progress.report import DIRECTORY_VARIABLE

_HARMLESS = frozenset({0, SAVED_AND_ENDED, TERMINATED, -15, None})
"""Exit codes of workers beside one that has ended after a signal; torchrun ends the others by SIGTERM."""

_codes: list[object] = []
"""Exit codes of the workers that were shut down last."""


def watch(module: Any) -> None:
    """Change the function that torchrun and `accelerate launch` call, and the agent that it starts workers with."""
    agent, launch = module.LocalElasticAgent, module.launch_agent
    shutdown, monitor = agent._shutdown, agent._monitor_workers  # noqa: SLF001 no public way to the exit codes

    @functools.wraps(shutdown)
    def new_shutdown(self: Any, *given: Any, **options: Any) -> Any:
        context = getattr(self, "_pcontext", None)
        try:
            return shutdown(self, *given, **options)
        finally:
            _safely(lambda: context and _codes.__setitem__(slice(None), _exit_codes(context)))

    @functools.wraps(monitor)
    def new_monitor(self: Any, *given: Any, **options: Any) -> Any:
        result = monitor(self, *given, **options)
        _safely(lambda: _forbid_restart(self, result))
        return result

    @functools.wraps(launch)
    def new_launch(*given: Any, **options: Any) -> Any:
        try:
            return launch(*given, **options)
        except BaseException:
            code = _own_code()
            if code:
                raise SystemExit(code) from None
            raise

    agent._shutdown, agent._monitor_workers, module.launch_agent = new_shutdown, new_monitor, new_launch  # noqa: SLF001


def watch_accelerate(module: Any) -> None:
    """Have `accelerate launch` become the one process that it starts: it keeps signals from it, and ends with 1."""
    launch = module.simple_launcher

    @functools.wraps(launch)
    def new_launch(args: Any) -> Any:
        if os.environ.get(DIRECTORY_VARIABLE):
            with suppress(Exception):  # then it fails again, or is another version
                command, environment = module.prepare_simple_launcher_cmd_env(args)
                sys.stdout.flush()
                os.execvpe(command[0], command, environment)  # noqa: S606 no shell is wanted
        return launch(args)

    module.simple_launcher = new_launch


def _safely(function: Any) -> None:
    try:
        function()
    except Exception as error:
        complain(error)


def _exit_codes(context: Any) -> Iterator[object]:
    """Those of processes that were started as a command, or with multiprocessing."""
    handlers = getattr(context, "subprocess_handlers", None)
    if handlers is not None:
        return (each.proc.poll() for each in handlers.values())
    return (each.exitcode for each in context._pc.processes)  # noqa: SLF001 as above


def _forbid_restart(agent: Any, result: Any) -> None:
    """Have an agent end with its workers; one whose number of nodes may change starts them again, without the node."""
    rendezvous = agent._worker_group.spec.rdzv_handler  # noqa: SLF001 as above
    settings = getattr(rendezvous, "settings", None)
    is_elastic = settings is not None and settings.min_nodes < settings.max_nodes
    codes = {failure.exitcode for failure in (result.failures or {}).values()}
    if not is_elastic and codes & {SAVED_AND_ENDED, TERMINATED} and codes <= _HARMLESS:
        agent._remaining_restarts = 0  # noqa: SLF001 as above


def _own_code() -> int:
    """What torchrun must end with instead of an error; 0 where that stays."""
    codes = set(_codes)
    if codes <= _HARMLESS:
        return next((each for each in (SAVED_AND_ENDED, TERMINATED) if each in codes), 0)
    return 0
