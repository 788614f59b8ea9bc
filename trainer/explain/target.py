"""The cluster that an answer is about, as options of the commands in it: pasted, they ask the same one."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from trainer.explain.cause import Explanation

_NAME = r"(?:[a-z]+/)?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?"
_MENTIONED = re.compile(
    rf"\b(kubectl create [a-z]+|trainer (?:delete|get|logs|resume|suspend)) {_NAME}(?: -n {_NAME})?"
)
"""A command within the sentence of a remedy."""


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """The options with which the commands in an answer reach the same cluster; empty where a command needs none."""

    kubectl: str = ""
    """Each after a blank; kubectl does not know the cluster of `trainer up`."""
    trainer: str = ""

    def with_options(self, answer: Explanation) -> Explanation:
        """The answer with these options in its remedies and commands."""
        causes = (
            replace(
                each,
                remedy=_MENTIONED.sub(lambda found: self._command(found[0]), each.remedy),
                command=self._command(each.command),
                commands=tuple(map(self._command, each.commands)),
            )
            for each in answer.causes
        )
        return replace(answer, causes=tuple(causes))

    def _command(self, command: str) -> str:
        return command + (self.kubectl if command.startswith("kubectl ") else self.trainer)


NO_OPTIONS: Final = CommandOptions()
"""For the cluster that both commands find without options."""
