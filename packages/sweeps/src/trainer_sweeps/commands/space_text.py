"""The values of a parameter in the grammar of `--param`."""

from __future__ import annotations

import csv
import io

from trainer_sweeps.api.optimizationjob import Interval, SearchSpace


def space_text(space: SearchSpace) -> str:
    """Such as `log(1e-5,1e-1)`, which `--param` takes; empty for a space that has no values."""
    if space.categorical is not None:
        return f"choice({_joined(space.categorical.choices)})"
    if space.log_uniform is not None:
        return _interval("logint" if space.log_uniform.type == "Int" else "log", space.log_uniform)
    if space.uniform is not None:
        return _interval("int" if space.uniform.type == "Int" else "uniform", space.uniform)
    return ""


def _interval(kind: str, interval: Interval) -> str:
    return f"{kind}({interval.min},{interval.max})"


def _joined(choices: list[str]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="").writerow(choices)
    return buffer.getvalue()
