"""Which trial of which sweep a TrainJob is, and its parameters as they are kept: bounded, and without secrets."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

import msgspec

from trainer.api.optimization import (
    ASSIGNMENT,
    LONGEST_TEXT,
    MOST_PARAMETERS,
    OPTIMIZATION_JOBS,
    assignment_of,
    assignment_text,
)
from trainer.kube.logs.redaction import REDACTED
from trainer.kube.logs.secret_words import is_secret, names_secret
from trainer.kube.objects import Object, annotations_of, controller_of, mapping_at, metadata_of, objects_in
from trainer_dashboard.recipe.secret_forms import clean_text
from trainer_dashboard.sweep.trials import number_of_trial

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
        "assignment": msgspec.json.encode(_without_secrets(assignment_of(annotations_of(job)).items())).decode(),
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
        _text(name): REDACTED if is_secret(name[:LONGEST_TEXT], value[:LONGEST_TEXT]) else _text(value)
        for name, value in islice(values, MOST_PARAMETERS)
    }


def trial_without_secrets(job: Object) -> Object:
    """A TrainJob whose parameters, in their annotation, are those that are kept; itself where it is no trial."""
    annotations = annotations_of(job)
    if ASSIGNMENT not in annotations:
        return job
    kept = annotations | {ASSIGNMENT: assignment_text(_without_secrets(assignment_of(annotations).items()))}
    return job | {"metadata": metadata_of(job) | {"annotations": kept}}


def sweep_without_secrets(sweep: Object) -> Object:
    """An OptimizationJob without secrets among the choices of its parameters, and the values that its trials had."""
    spec, status = mapping_at(sweep, "spec"), mapping_at(sweep, "status")
    parameters = objects_in(spec.get("parameters"))
    names = [str(each.get("name") or "") for each in parameters]
    if not any(map(names_secret, names)):
        return sweep  # as nearly always
    for name, parameter in zip(names, parameters, strict=True):
        choices = mapping_at(parameter, "searchSpace", "categorical").get("choices") or []
        choices[:] = [_shown(name, choice) for choice in choices]
    for trial in objects_in(status.get("trials")):
        values = trial.get("parameterValues") or []
        values[:] = [_shown(name, value) for name, value in zip(names, values, strict=False)]
    return sweep


def _shown(name: str, value: object) -> object:
    return REDACTED if isinstance(value, str) and is_secret(name[:LONGEST_TEXT], value[:LONGEST_TEXT]) else value


def _text(text: str, limit: int = LONGEST_TEXT) -> str:
    return clean_text(text[:limit].replace("\0", "").encode(errors="replace").decode())
