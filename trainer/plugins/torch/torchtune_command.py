"""The command line of `tune run`: torchrun's options, a recipe, its configuration, and overrides of that.

tune run [--option ...] <recipe> --config <configuration> [key=value | ~key ...]
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_FLAGS = frozenset({"--standalone", "-m", "--module", "--no-python", "--run-path", "--virtual-local-rank"})
"""Options of torchrun without a value."""


@dataclass(frozen=True, slots=True)
class TuneRun:
    """The words after `tune run`."""

    options: tuple[tuple[str, ...], ...] = ()
    """Options of torchrun, each one word or a word and its value."""
    recipe: str | None = None
    config: str | None = None
    overrides: tuple[str, ...] = ()
    """Changes of the configuration: `key=value`, or `~key` to remove one."""
    rest: tuple[str, ...] = ()
    """All other words, which torchtune refuses."""

    @property
    def settings(self) -> dict[str, str]:
        """Values of the overrides by key; the last one counts, as in torchtune."""
        pairs = (override.split("=", 1) for override in self.overrides if "=" in override)
        return {key.strip(): value.strip() for key, value in pairs}


def is_tune_run(command: Sequence[str], args: Sequence[str]) -> bool:
    """Whether a container runs torchtune, wherever its command is installed."""
    words = [*command, *args]
    return bool(command) and PurePosixPath(words[0]).name == "tune" and words[1:2] == ["run"]


def parse(words: Sequence[str]) -> TuneRun:
    """Read the words after `tune run`."""
    options: list[tuple[str, ...]] = []
    overrides: list[str] = []
    rest: list[str] = []
    recipe = config = None
    remaining = deque(words)
    while remaining:
        word = remaining.popleft()
        if word == "--config" and remaining:
            config = remaining.popleft()
        elif word.startswith("--config="):
            config = word.removeprefix("--config=")
        elif word == "--config":
            rest.append(word)
        elif recipe is None and word.startswith("-"):
            has_value = "=" not in word and option_of(word) not in _FLAGS and remaining
            options.append((word, remaining.popleft()) if has_value else (word,))
        elif is_override(word):
            overrides.append(word)
        elif recipe is None and "=" not in word:
            recipe = word
        else:
            rest.append(word)
    return TuneRun(tuple(options), recipe, config, tuple(overrides), tuple(rest))


def is_override(word: str) -> bool:
    """Whether a word changes the configuration; torchtune refuses a second `=`."""
    return not word.startswith("-") and (word.startswith("~") or word.count("=") == 1)


def key_of(word: str) -> str:
    """The key of an override: `output_dir` for `output_dir=/tmp` and for `~output_dir`."""
    return word.removeprefix("~").partition("=")[0].strip()


def option_of(word: str) -> str:
    """Name of an option of torchrun, which has two spellings: `--nproc-per-node` for `--nproc_per_node=2`."""
    return word.partition("=")[0].replace("_", "-")
