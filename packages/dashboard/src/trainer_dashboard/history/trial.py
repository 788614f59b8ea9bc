"""Which trial of which sweep a TrainJob is, and its parameters as they are kept: bounded, and without secrets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from trainer.api.optimization import ASSIGNMENT, OPTIMIZATION_JOBS, TRIAL_LABEL
from trainer.kube.logs.redaction import REDACTED
from trainer.kube.logs.secret_words import is_secret
from trainer.kube.objects import Object, annotations_of, controller_of, labels_of, objects_in
from trainer_dashboard.recipe.secret_forms import clean_text

_MOST: Final = 100
"""Parameters, as many as a sweep may have."""
_LONGEST: Final = 64
"""Characters of a name or a value, as many as they may have."""
_NAME: Final = 256
_LONGEST_NUMBER: Final = 9


def trial_columns(job: Object) -> dict[str, Any]:
    """The columns by which a TrainJob is a trial of the OptimizationJob that controls it; None each for another one."""
    if not is_trial(job):
        return dict.fromkeys(("sweep_uid", "sweep", "trial", "assignment"))
    owner, number = controller_of(job) or {}, labels_of(job).get(TRIAL_LABEL, "")
    return {
        "sweep_uid": _text(str(owner.get("uid") or ""), _NAME),
        "sweep": _text(str(owner.get("name") or ""), _NAME),
        "trial": int(number) if number.isdecimal() and len(number) <= _LONGEST_NUMBER else None,
        "assignment": msgspec.json.encode(assignment_of(job)).decode(),
    }


def is_trial(job: Object) -> bool:
    """Whether an OptimizationJob controls it."""
    owner = controller_of(job) or {}
    group = str(owner.get("apiVersion")).partition("/")[0]
    return (group, owner.get("kind")) == (OPTIMIZATION_JOBS.group, OPTIMIZATION_JOBS.kind)


def assignment_of(job: Object) -> dict[str, str]:
    """The values by name, in the order of the sweep; empty for a TrainJob that is no trial."""
    try:
        return assignment_in(msgspec.json.decode(annotations_of(job).get(ASSIGNMENT, "")))
    except (msgspec.DecodeError, RecursionError):
        return {}


def assignment_in(pairs: object) -> dict[str, str]:
    """The same of a list of objects with `name` and `value`, such as the parameters of a result."""
    named = ((str(each.get("name") or ""), str(each.get("value") or "")) for each in objects_in(pairs)[:_MOST])
    return _without_secrets(named)


def _without_secrets(values: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Names and values as they are shown."""
    return {
        _text(name): REDACTED if is_secret(name[:_LONGEST], value[:_LONGEST]) else _text(value)
        for name, value in values
    }


def in_words(assignment: dict[str, str]) -> str:
    """All in one line, such as `lr=0.01, bs=32`."""
    return ", ".join(f"{name}={value}" for name, value in assignment.items())


def _text(text: str, limit: int = _LONGEST) -> str:
    return clean_text(text[:limit].replace("\0", "").encode(errors="replace").decode())
