"""Which trial of which sweep a TrainJob is, and its parameters as they are kept: bounded, and without secrets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final

import msgspec

from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.kube.logs.redaction import REDACTED
from trainer.kube.logs.secret_words import is_secret
from trainer.kube.objects import Object, controller_of, objects_in
from trainer_dashboard.recipe.secret_forms import clean_text
from trainer_dashboard.sweep.rows import LONGEST, PARAMETERS
from trainer_dashboard.sweep.trials import assignment_of, number_of_trial

_NAME: Final = 256


def trial_columns(job: Object) -> dict[str, Any]:
    """The columns by which a TrainJob is a trial of the OptimizationJob that controls it; None each for another one."""
    if not is_trial(job):
        return dict.fromkeys(("sweep_uid", "sweep", "trial", "assignment"))
    owner = controller_of(job) or {}
    return {
        "sweep_uid": _text(str(owner.get("uid") or ""), _NAME),
        "sweep": _text(str(owner.get("name") or ""), _NAME),
        "trial": number_of_trial(job),
        "assignment": msgspec.json.encode(_without_secrets(assignment_of(job).items())).decode(),
    }


def is_trial(job: Object) -> bool:
    """Whether an OptimizationJob controls it."""
    owner = controller_of(job) or {}
    group = str(owner.get("apiVersion")).partition("/")[0]
    return (group, owner.get("kind")) == (OPTIMIZATION_JOBS.group, OPTIMIZATION_JOBS.kind)


def assignment_in(pairs: object) -> dict[str, str]:
    """Values by name of a list of objects with `name` and `value`, such as the parameters of a result."""
    return _without_secrets((str(each.get("name") or ""), str(each.get("value") or "")) for each in objects_in(pairs))


def _without_secrets(values: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {
        _text(name): REDACTED if is_secret(name[:LONGEST], value[:LONGEST]) else _text(value)
        for name, value in islice(values, PARAMETERS)
    }


def in_words(assignment: Mapping[str, str]) -> str:
    """All in one line, such as `lr=0.01, bs=32`."""
    return ", ".join(f"{name}={value}" for name, value in assignment.items())


def _text(text: str, limit: int = LONGEST) -> str:
    return clean_text(text[:limit].replace("\0", "").encode(errors="replace").decode())
