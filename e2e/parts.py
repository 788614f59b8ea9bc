"""A run in parts: sessions of pytest that together are the whole run, at the same time or one after the other.

Each part leaves what it has run in the directory that the environment names, beside the audit log of all.
"""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

VARIABLE = "E2E_RUN"
"""The directory; without it the session is the whole run."""


@dataclass
class Part:
    """What one session has run, or several together."""

    modules: set[str] = field(default_factory=set)
    """Test files of which no test was left out."""
    not_passed: list[str] = field(default_factory=list)
    """Tests that have failed or been skipped, and which of the two."""

    def with_earlier(self) -> Part:
        """This part and those that have ended."""
        named = directory()
        earlier = [json.loads(file.read_text()) for file in (named.glob("*.json") if named else ())]
        return Part(
            self.modules.union(*(each["modules"] for each in earlier)),
            [*chain.from_iterable(each["not_passed"] for each in earlier), *self.not_passed],
        )

    def leave(self) -> None:
        """Leave it for parts that end later."""
        if named := directory():
            content = json.dumps({"modules": sorted(self.modules), "not_passed": self.not_passed})
            (named / f"{uuid.uuid4()}.json").write_text(content)


def directory() -> Path | None:
    """What the parts share; None where there is one part."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None
