"""What an Experiment searches for and how: objective, algorithm, early stopping and numbers of trials."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from trainer.api.optimization import MOST_TRIALS
from trainer.kube.field_errors import forbidden, invalid, listed, not_supported
from trainer.kube.objects import Object
from trainer_v1_jobs.katib.experiment import Algorithm, ExperimentSpec, Objective, Setting
from trainer_v1_jobs.katib.findings import Findings

_DEFAULT_PARALLEL: Final = 3
_AGGREGATES: Final = {"min": "Min", "max": "Max", "latest": "Last"}
_ALGORITHMS: Final[Mapping[str, str]] = {
    "random": "random",
    "grid": "grid",
    "tpe": "tpe",
    "multivariate-tpe": "tpe",
    "bayesianoptimization": "gp",
    "cmaes": "cmaEs",
    "sobol": "random",
}
_DIFFERENT: Final = {
    "multivariate-tpe": "becomes tpe, which looks at each parameter by itself",
    "bayesianoptimization": (
        "becomes gp, whose libraries are to be installed beside the manager; tpe needs none of them"
    ),
    "sobol": "becomes random: the values of a trial do not depend on those of the others",
}
_REFUSED: Final = {
    "hyperband": "write random, and add pruneAlgorithm.asha with the eta of hyperband as reductionFactor to the result",
    "pbt": "its trials begin with checkpoints of others, which OptimizationJobs cannot do; write tpe",
    "enas": "an OptimizationJob searches no architectures of neural networks",
    "darts": "an OptimizationJob searches no architectures of neural networks",
}
_SEED: Final = "random_state"
_STARTUP: Final = frozenset({"n_startup_trials", "n_initial_points"})
_ADAPTIVE: Final = frozenset({"tpe", "gp", "cmaEs"})
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_STEPS_DIFFER: Final = (
    "becomes pruneAlgorithm.median, which compares with the median of the others at the same step, as the program "
    "reports it; Katib compared with the mean of their first start_step reports"
)


def objective_of(objective: Objective, findings: Findings) -> Object:
    """The item of `spec.objectives`."""
    path = "spec.objective"
    metric, best = objective.objective_metric_name, "min" if objective.type == "minimize" else "max"
    strategies = {each.name: each.value for each in objective.metric_strategies or []}
    if objective.goal is not None:
        rule = "is left out: all trials run; suspend or delete the OptimizationJob when its result is good enough"
        findings.lose(f"{path}.goal", rule)
    if objective.additional_metric_names:
        rule = "is left out: each TrainJob shows all metrics that it reports, but only the objective keeps its curve"
        findings.lose(f"{path}.additionalMetricNames", rule)
    others = [name for name in strategies if name not in {metric, *(objective.additional_metric_names or [])}]
    if others:
        findings.lose(f"{path}.metricStrategies", f"is left out for {listed(others)}: only the objective has one")
    return {
        "metric": metric,
        "direction": f"{objective.type.capitalize()}",
        "aggregate": _AGGREGATES[strategies.get(metric, best)],
    }


def algorithm_of(algorithm: Algorithm, findings: Findings) -> Object:
    """`spec.searchAlgorithm`; empty where the algorithm is refused."""
    path, name = "spec.algorithm.algorithmName", algorithm.algorithm_name
    if name in _REFUSED:
        findings.refuse(invalid(path, name, f"has no counterpart: {_REFUSED[name]}"))
        return {}
    if name not in _ALGORITHMS:
        findings.refuse(not_supported(path, name, _ALGORITHMS))
        return {}
    if name in _DIFFERENT:
        findings.lose(path, _DIFFERENT[name])
    found = _ALGORITHMS[name]
    fields: Object = {}
    for setting in algorithm.algorithm_settings or []:
        _apply(setting, found, fields, findings)
    return {found: fields}


def _apply(setting: Setting, algorithm: str, fields: Object, findings: Findings) -> None:
    path = f"spec.algorithm.algorithmSettings[{setting.name}]"
    if setting.name == _SEED and algorithm == "grid":
        findings.lose(path, "is left out: the trials of a grid have a fixed order")
    elif setting.name == _SEED:
        fields["seed"] = _integer(setting, path, findings)
    elif setting.name in _STARTUP and algorithm in _ADAPTIVE:
        fields["startupTrials"] = _bounded(setting, 1, MOST_TRIALS, path, findings)
    else:
        findings.lose(path, f"is left out: {algorithm} has no such setting here")


def prune_algorithm_of(stopping: Algorithm | None, findings: Findings) -> Object | None:
    """`spec.pruneAlgorithm`; None where no trial is stopped."""
    if stopping is None:
        return None
    path = "spec.earlyStopping"
    if stopping.algorithm_name != "medianstop":
        findings.refuse(not_supported(f"{path}.algorithmName", stopping.algorithm_name, ["medianstop"]))
        return None
    findings.lose(f"{path}.algorithmName", _STEPS_DIFFER)
    median = {"startupTrials": 3, "warmupSteps": 4}
    for setting in stopping.algorithm_settings or []:
        place = f"{path}.algorithmSettings[{setting.name}]"
        if setting.name == "min_trials_required":
            median["startupTrials"] = _bounded(setting, 1, MOST_TRIALS, place, findings)
        elif setting.name == "start_step":
            median["warmupSteps"] = _bounded(setting, 0, 2**31 - 1, place, findings)
        else:
            findings.lose(place, "is left out: the median has no such setting")
    return {"median": median}


def counts_of(spec: ExperimentSpec, grid_size: int | None, findings: Findings) -> Object:
    """Numbers of trials.

    Args:
        spec: of the Experiment.
        grid_size: the combinations of a grid; None for another algorithm.
        findings: what is lost is added to them.
    """
    wanted, failed = spec.max_trial_count, spec.max_failed_trial_count
    path = "spec.maxTrialCount"
    if spec.max_trial_count is not None:
        _check_most(spec, findings)
    if wanted is None and grid_size is None:
        rule = f"is absent, which was no limit: becomes {MOST_TRIALS}, the most trials of an OptimizationJob"
        findings.lose(path, rule)
    elif (wanted or grid_size or 0) > MOST_TRIALS:
        rule = f"becomes {MOST_TRIALS}, the most trials of an OptimizationJob, instead of {wanted or grid_size}"
        findings.lose(path, rule)
    trials = min(wanted or grid_size or MOST_TRIALS, MOST_TRIALS)
    counts: Object = {"numTrials": trials}
    counts["parallelTrials"] = min(spec.parallel_trial_count or _DEFAULT_PARALLEL, trials)
    if failed is not None:
        # Katib fails with so many failed trials, and with the first one where there may be none.
        counts["maxFailedTrials"] = max(failed - 1, 0)
    return counts


def _check_most(spec: ExperimentSpec, findings: Findings) -> None:
    """The rules of Katib's webhook."""
    most = spec.max_trial_count or 0
    for name, count in (
        ("parallelTrialCount", spec.parallel_trial_count),
        ("maxFailedTrialCount", spec.max_failed_trial_count),
    ):
        if (count or 0) > most:
            findings.refuse(invalid(f"spec.{name}", count, f"must not be greater than maxTrialCount, which is {most}"))


def check_rest(spec: ExperimentSpec, findings: Findings) -> None:
    """What has no counterpart at all."""
    if spec.nas_config is not None:
        rule = "an OptimizationJob searches no architectures of neural networks; write parameters instead"
        findings.refuse(forbidden("spec.nasConfig", rule))
    if spec.resume_policy in {"LongRunning", "FromVolume"}:
        rule = "is left out: an OptimizationJob that has ended stays so; for more trials create another one"
        findings.lose("spec.resumePolicy", rule)


def _integer(setting: Setting, path: str, findings: Findings) -> int:
    text = setting.value.strip()
    if _INTEGER.fullmatch(text):
        return int(text)
    findings.refuse(invalid(path, setting.value, "must be an integer"))
    return 0


def _bounded(setting: Setting, least: int, most: int, path: str, findings: Findings) -> int:
    number = _integer(setting, path, findings)
    if least <= number <= most:
        return number
    kept = min(max(number, least), most)
    findings.lose(path, f"becomes {kept}: it must be from {least} to {most}")
    return kept
