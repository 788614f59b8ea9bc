"""Programs on PATH that only write down how they are called."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

_PYTHON = sys.executable
_PROGRAM = """\
#!{python}
import json, os, sys
reply = json.loads({replies!r}).get(os.path.basename(sys.argv[0]), [])
call = [os.path.basename(sys.argv[0]), *sys.argv[1:]]
with open({calls!r}, "a+", encoding="utf-8") as calls:
    calls.write(json.dumps(call) + "\\n")
for words, output, code in reply:
    if words in " ".join(call):
        sys.stdout.write(output)
        sys.exit(code)
"""


@dataclass
class Programs:
    """Stand-ins, which succeed and print nothing unless something else is said."""

    directory: Path
    replies: dict[str, list[tuple[str, str, int]]] = field(default_factory=dict)

    def add(self, *names: str) -> None:
        """Put them on PATH, with the replies that there are."""
        calls = str(self.directory / "calls")
        text = _PROGRAM.format(python=_PYTHON, replies=json.dumps(self.replies), calls=calls)
        for name in names:
            path = self.directory / "bin" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            path.chmod(0o755)

    def reply(self, program: str, words: str, output: str = "", code: int = 0) -> None:
        """Have a program print this, and end so, when it is called with these words in a row; said before add."""
        self.replies.setdefault(program, []).append((words, output, code))

    @property
    def calls(self) -> list[list[str]]:
        """The command lines, in order."""
        path = self.directory / "calls"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    """Nothing but these is on PATH."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return Programs(tmp_path)
