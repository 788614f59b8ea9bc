"""What a pod without processes is to do, from its annotations."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.kube.objects import annotations_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

RUNS_FOR = "devcluster.trainer/runs-for"
"""How long each run of the containers lasts, as Go writes durations: `300ms`, `2s`, `1h30m`. Without it they end at
once, or never where they would be started again (`restartPolicy: Always`)."""
EXITS_WITH = "devcluster.trainer/exits-with"
"""The exit code of the containers. Default: 0."""

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)", re.ASCII)
_MAX_EXIT_CODE = 255


@dataclass(frozen=True, slots=True)
class Script:
    """What the containers of a pod do."""

    runs_for: float | None
    """Seconds; None: until the pod is deleted."""
    exit_code: int

    @classmethod
    def of(cls, pod: Mapping[str, Any]) -> Script:
        """Read the annotations of a pod.

        Raises:
            ValueError: one of them makes no sense; the message names it.
        """
        annotations = annotations_of(pod)
        seconds: float | None = None
        if (given := annotations.get(RUNS_FOR)) is not None:
            seconds = _duration(given)
        elif (pod["spec"].get("restartPolicy") or "Always") != "Always":
            seconds = 0.0
        return cls(seconds, _exit_code(annotations.get(EXITS_WITH) or "0"))


def _duration(text: str) -> float:
    parts = _PART.findall(text)
    if "".join(number + unit for number, unit in parts) != text or not parts:
        raise ValueError(f"metadata.annotations[{RUNS_FOR}]: {text!r} is not a duration such as 300ms, 2s or 1h30m")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def _exit_code(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) > _MAX_EXIT_CODE:
        raise ValueError(f"metadata.annotations[{EXITS_WITH}]: {text!r} is not an exit code between 0 and 255")
    return int(text)
