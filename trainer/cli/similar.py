"""What was most likely meant by a name that is not there."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from trainer.framework.runtimes.alternatives import alternatives
from trainer.kube.logs.escaping import visible

_LOOKED_AT = 2000
"""Files of a folder."""


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """`: did you mean train?`, to be appended to an error; "" where none of the names is much alike."""
    similar = alternatives(name, names).similar
    return _question(similar) if similar else ""


def did_you_mean_file(path: Path) -> str:
    """The same of a file that is not there: another one in its folder, with the path to it."""
    try:
        names = [each.name for each in islice(path.parent.iterdir(), _LOOKED_AT)]
    except OSError:
        return ""
    similar = alternatives(path.name, names).similar
    return _question(str(path.with_name(similar))) if similar else ""


def _question(meant: str) -> str:
    return f": did you mean {visible(meant)}?"
