"""How much each parameter has to do with the value of the objective."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from typing import Final

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.metric_curve import number_of
from trainer.kube.objects import Object
from trainer_sweeps.api.optimizationjob import EndedTrial, OptimizationJobSpec, TrialState
from trainer_sweeps.search.history import Observation, PastTrial, observations, tamed
from trainer_sweeps.search.space import AlgorithmUnavailableError, space_of
from trainer_sweeps.search.surrogate import study_of

_FEWEST: Final = 5
"""Trials below which there is nothing to say."""


def importances(spec: Object, trials: Sequence[Object]) -> dict[str, float] | None:
    """The share of each parameter in the variance of the objective, by fANOVA (Hutter et al. 2014); the greatest first.

    It blocks, for half a second of processor time with 20 parameters and 100 trials, and a second with 100 parameters;
    the first call loads scikit-learn besides. The same trials give the same shares.

    Args:
        spec: of the OptimizationJob.
        trials: as in its `status.trials`; those that succeeded count.

    Returns:
        Shares that sum to 1; nothing where there are too few trials, or their values do not differ; None where
        scikit-learn is not installed.
    """
    if importlib.util.find_spec("sklearn") is None:
        return None
    try:
        sweep = OptimizationJobSpec.from_object(spec)
        space = {name: dimension for name, dimension in space_of(sweep.parameters).items() if dimension.size != 1}
    except (InvalidObjectError, AlgorithmUnavailableError):
        return {}
    succeeded = [trial for trial in _past(sweep, trials) if trial.state is TrialState.SUCCEEDED]
    learned = observations(space, sweep.objectives[0].direction, succeeded)
    if not space or len(learned) < _FEWEST:
        return {}
    return _shares([*space], tamed(learned))


def _past(sweep: OptimizationJobSpec, trials: Sequence[Object]) -> Iterator[PastTrial]:
    for trial in trials:
        try:
            ended = EndedTrial.from_object(trial)
        except InvalidObjectError:
            continue
        names = (parameter.name for parameter in sweep.parameters)
        assignment = dict(zip(names, ended.parameter_values, strict=False))
        yield PastTrial(ended.number, TrialState(ended.state), assignment, number_of(ended.value or ""))


def _shares(names: Sequence[str], learned: Sequence[Observation]) -> dict[str, float]:
    """The places are what the forest sees: a value is as wide as it is likely, and choices cost one column each."""
    from optuna.distributions import BaseDistribution, FloatDistribution  # noqa: PLC0415 - slow to load, and needed by pages alone
    from optuna.importance import FanovaImportanceEvaluator, get_param_importances  # noqa: PLC0415
    from optuna.trial import create_trial  # noqa: PLC0415

    distributions: dict[str, BaseDistribution] = {name: FloatDistribution(0, 1) for name in names}
    study = study_of(
        create_trial(value=one.cost, params=dict(zip(names, one.places, strict=True)), distributions=distributions)
        for one in learned
    )
    try:
        shares = get_param_importances(study, evaluator=FanovaImportanceEvaluator(seed=0))
    except RuntimeError:  # no variance
        return {}
    return {name: float(share) for name, share in shares.items()}
