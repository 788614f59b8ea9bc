"""The command of a TrainJob as its user wrote it, without the program of `trainer run` that prepares a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from trainer.cli.run.package import START
from trainer.kube.objects import Object, mapping_at

MOST: Final = 500
"""Words of a command that are read; scripts of whole pages are written into commands."""
_REPOSITORY: Final = "--git"


@dataclass(frozen=True, slots=True)
class UserCommand:
    """What a TrainJob itself says; what it leaves to its runtime is empty."""

    command: list[str]
    args: list[str]
    repository: str = ""
    """Where the nodes fetch the code from with git, if that is said."""
    revision: str = ""
    is_packed: bool = False
    """Whether the code was sent with the TrainJob."""

    @classmethod
    def of(cls, job: Object) -> UserCommand:
        """That of a TrainJob."""
        trainer = mapping_at(job, "spec", "trainer")
        command, args = _words(trainer.get("command")), _words(trainer.get("args"))
        start = next((index for index, word in enumerate(command) if word.endswith(f"/{START}")), None)
        if start is None or "--" not in command[start:]:
            return cls(command, args)
        end = command.index("--", start)
        options = command[start + 1 : end]
        repository, revision = options[1:3] if options[:1] == [_REPOSITORY] and len(options) >= 3 else ("", "")
        return cls(command[: max(start - 1, 0)] + command[end + 1 :], args, repository, revision, not repository)


def _words(value: object) -> list[str]:
    return [str(word) for word in value[:MOST]] if isinstance(value, list) else []
