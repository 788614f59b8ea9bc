"""The parameters of a training, as its command line names them: `--lr 0.1`, `--lr=0.1`, `lr=0.1`, `--fp16`.

Those of the program count, and not the options of what starts it: an interpreter, a launcher such as torchrun, or a
shell, whose script is split into its commands. One reading serves the page of a training, comparisons on the page and
`trainer compare`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import PurePosixPath
from typing import Final

from trainer.kube.logs.redaction import REDACTED
from trainer.kube.logs.secret_words import is_secret
from trainer_dashboard.recipe.shell_words import commands_of, script_of

_MOST: Final = 500
"""Parameters of a training."""
_LONGEST_NAME, _LONGEST_VALUE = 128, 512
_NESTED: Final = 4
"""Shells within shells that are read."""
_COMMANDS: Final = 256
"""Commands of a script that are read."""
_OPTION: Final = re.compile(r"--?[A-Za-z][\w.-]*")
_ASSIGNED: Final = re.compile(r"(-{0,2})([A-Za-z_+~][\w.@/-]*)=(.*)", re.DOTALL)
_PYTHON: Final = re.compile(r"(?:python|pypy)[0-9.]*")
_PYTHON_VALUES: Final = frozenset({"-W", "-X", "--check-hash-based-pycs"})
"""Options of Python with a value of their own."""
_SCRIPT: Final = re.compile(r".+\.(?:py|pyz|sh)")
_LAUNCHERS: Final = frozenset({
    "torchrun", "accelerate", "deepspeed", "horovodrun", "composer", "mpirun", "mpiexec", "srun",
})  # fmt: skip
_LAUNCHER_MODULES: Final = frozenset({
    "torch.distributed.run", "torch.distributed.launch", "torch.distributed.elastic", "accelerate.commands.launch",
    "accelerate.commands.accelerate_cli", "deepspeed.launcher.runner", "deepspeed.launcher.launch",
    "horovod.runner.launch", "composer.cli.launcher", "paddle.distributed.launch", "colossalai.cli", "mpi4py",
    "torch.utils.bottleneck", "cProfile", "pdb", "debugpy", "coverage", "viztracer",
})  # fmt: skip
"""Modules that run the program which follows."""
_MODULE_OPTIONS: Final = frozenset({"-m", "--module"})


def parameters_of(words: Sequence[str]) -> dict[str, str]:
    """Values by name, in their order; that of an option without one is "", and of an option given twice the last."""
    found: dict[str, str] = {}
    for name, value in _pairs(_arguments(words, _NESTED) or []):
        if len(found) >= _MOST and name not in found:
            break
        shown = REDACTED if is_secret(name, value) else value
        found[name] = shown if len(shown) <= _LONGEST_VALUE else f"{shown[:_LONGEST_VALUE]}..."
    return found


def with_reported(named: Mapping[str, str], reported: Mapping[str, str]) -> dict[str, str]:
    """The parameters of a command line, and those that the reporter has found beside them, such as defaults.

    `--batch-size` and `batch_size` are one, for which the command line counts.
    """
    known = {name.replace("-", "_") for name in named}
    return {**named, **{name: value for name, value in reported.items() if name.replace("-", "_") not in known}}


def _arguments(words: Sequence[str], depth: int) -> Sequence[str] | None:
    """The words behind the program; None where nothing is found that trains."""
    shell = script_of(words) if depth else None
    if shell is None:
        return _behind_program(words)
    commands = list(islice(commands_of(*shell), _COMMANDS))
    # The last one: what stands before prepares it. A launcher is no preparation, nor is a program with options.
    ranked = sorted(enumerate(commands), key=lambda each: (_rank(each[1]), each[0]))
    return _arguments(ranked[-1][1], depth - 1) if ranked else None


def _rank(command: Sequence[str]) -> int:
    """How much a command looks like the training of a script: launchers, then Python, then shells, then others."""
    names = [PurePosixPath(word).name for word in command]
    if any(name in _LAUNCHERS for name in names) or any(word in _LAUNCHER_MODULES for word in command):
        return 4
    if any(map(_PYTHON.fullmatch, names)) and "pip" not in command:
        return 3
    if script_of(command) is not None or any(map(_SCRIPT.fullmatch, command[:2])):
        return 2
    # Programs of packages, such as `yolo train data=coco.yaml`, and not `cd`, `export` or `pip install --upgrade`.
    return 1 if names[0] not in {"cd", "export", "set", "echo", "pip", "pip3", "apt-get", "git", "mkdir", "wait"} else 0


def _behind_program(words: Sequence[str]) -> Sequence[str] | None:
    index = 0
    has_launcher = bool(words) and PurePosixPath(words[0]).name in _LAUNCHERS
    while index < len(words):
        word = words[index]
        if _PYTHON.fullmatch(PurePosixPath(word).name):
            index, is_launcher = _behind_python(words, index + 1)
            if not is_launcher:
                return words[index:]
            has_launcher = True
        elif _SCRIPT.fullmatch(word):
            return words[index + 1 :]
        elif word in _MODULE_OPTIONS and index + 1 < len(words) and (has_launcher or word == "-m"):
            return words[index + 2 :]
        else:
            index += 1
    # Without a program that can be told: the arguments alone, or a program of its own.
    return None if has_launcher else words


def _behind_python(words: Sequence[str], index: int) -> tuple[int, bool]:
    """The place behind the program that Python runs, and whether that runs another one."""
    while index < len(words) and words[index].startswith("-") and len(words[index]) > 1:
        option = words[index]
        index += 1
        if option in _PYTHON_VALUES:
            index += 1
        elif option[1] != "-" and option[-1] in "cm":
            is_launcher = option[-1] == "m" and index < len(words) and words[index] in _LAUNCHER_MODULES
            return index + 1, is_launcher
    return index + 1, False


def _pairs(words: Sequence[str]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if assigned := _ASSIGNED.fullmatch(word):
            found.append((assigned[2], assigned[3]))
        elif _OPTION.fullmatch(word):
            start = index
            while index < len(words) and _is_value(words[index]):
                index += 1
            found.append((word.lstrip("-"), " ".join(words[start:index])))
    return [(name, value) for name, value in found if len(name) <= _LONGEST_NAME]


def _is_value(word: str) -> bool:
    return not _OPTION.fullmatch(word) and not (word.startswith("-") and _ASSIGNED.fullmatch(word))
