"""Names of trials."""

from __future__ import annotations

import re
from typing import Final

_NUMBER: Final = re.compile(r"[1-9][0-9]{0,2}", re.ASCII)


def trial_name(sweep: str, number: int) -> str:
    """The name of the TrainJob of a trial, so that none is made twice.

    Args:
        sweep: name of the OptimizationJob.
        number: of the trial, from 1.
    """
    return f"{sweep}-trial-{number}"


def trial_number(name: str, sweep: str) -> int | None:
    """The number of the trial whose TrainJob has this name; None if it is none of the sweep's."""
    number = name.removeprefix(f"{sweep}-trial-")
    return int(number) if number != name and _NUMBER.fullmatch(number) else None
