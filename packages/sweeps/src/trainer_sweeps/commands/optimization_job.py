"""The OptimizationJob that `trainer sweep` makes of the TrainJob that `trainer run` would make."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from trainer.api.optimization import MOST_TRIALS, OPTIMIZATION_JOBS, variable_of
from trainer.cli.console import printable
from trainer.cli.documents import Document
from trainer.cli.errors import BadInputError
from trainer.cli.run.script_job import job_name
from trainer.cli.run.sweep_api import Search
from trainer.cli.similar import did_you_mean
from trainer.kube.objects import Object, mapping_at, metadata_of, name_of, namespace_of
from trainer.v1alpha1.discovery import Served
from trainer_sweeps.api.optimizationjob import LONGEST_NAME, Aggregate, Direction
from trainer_sweeps.commands.parameters import SearchedParameter

ALGORITHMS: Final = {"tpe": "tpe", "random": "random", "grid": "grid", "gp": "gp", "cmaes": "cmaEs"}
"""The field of the API for each value of `--algorithm`."""
PRUNING: Final = ("asha", "median")
DIRECTIONS: Final = {"minimize": Direction.MINIMIZE, "maximize": Direction.MAXIMIZE}
AGGREGATES: Final = {each.value.lower(): each for each in Aggregate}
USUAL_TRIALS: Final = 20
_SEEDED: Final = ("tpe", "random", "gp", "cmaes")
_SEQUENTIAL: Final = ("tpe", "gp", "cmaes")
_NAMED: Final[Mapping[str, Collection[str]]] = {
    "direction": DIRECTIONS,
    "aggregate": AGGREGATES,
    "algorithm": ALGORITHMS,
    "prune": PRUNING,
}
_BOUNDS: Final[Mapping[str, tuple[int, int | None]]] = {
    "trials": (1, MOST_TRIALS),
    "parallel": (1, MOST_TRIALS),
    "startup_trials": (1, MOST_TRIALS),
    "warmup": (0, None),
    "interval": (1, None),
    "reduction": (2, 100),
    "max_failed": (0, None),
}
_PLACEHOLDER: Final = re.compile(r"\{\{([A-Za-z_][A-Za-z0-9_.-]*)\}\}|\{([A-Za-z_][A-Za-z0-9_.-]*)\}")


def sweep_name(name: str | None, script: str) -> str:
    """The name of a sweep: the one given, else one that follows from the script and is used by nobody.

    Raises:
        BadInputError: the name given cannot be one.
    """
    found = job_name(name, script)
    if len(found) > LONGEST_NAME:
        raise BadInputError(
            f"--name: {found}: must have at most {LONGEST_NAME} characters, because trials are called NAME-trial-1"
        )
    return found


def search_of(search: Search, parameters: Sequence[SearchedParameter], served: Served) -> Object:
    """The fields of the spec that say what is searched, and how.

    Raises:
        BadInputError: options contradict each other; names them as the command line has them.
    """
    algorithm = search.algorithm or ("tpe" if served.version == "v2alpha1" or served.is_extended else "random")
    trials = search.trials
    if algorithm == "grid":
        size = _grid_size(parameters)
        trials = min(trials or size, size)
    spec: Object = {
        "objectives": [_objective(search)],
        "searchAlgorithm": {ALGORITHMS[algorithm]: _algorithm(search, algorithm)},
        "parameters": [each.to_object() for each in parameters],
        "numTrials": trials or USUAL_TRIALS,
    }
    if search.prune is not None:
        spec["pruneAlgorithm"] = {search.prune: _pruning(search, search.prune)}
    elif given := next(
        (each for each in ("warmup", "interval", "reduction") if getattr(search, each) is not None), None
    ):
        raise BadInputError(f"--{given}: belongs to --prune: add --prune asha, or --prune median")
    if search.parallel is not None:
        if search.parallel > spec["numTrials"]:
            raise BadInputError(f"--parallel: {search.parallel}: there are {spec['numTrials']} trials in all")
        spec["parallelTrials"] = search.parallel
    if search.max_failed is not None:
        spec["maxFailedTrials"] = search.max_failed
    return spec | ({"suspend": True} if search.suspend else {})


def optimization_job(train_job: Object, search: Object, served: Served) -> Document:
    """The OptimizationJob whose trials are copies of a TrainJob, which gives it name, namespace and labels.

    Args:
        train_job: in the version that the cluster serves.
        search: see `search_of`.
        served: by the cluster.

    Raises:
        BadInputError: an argument of the script has a name in braces that no parameter has.
    """
    resource = served.resource(OPTIMIZATION_JOBS)
    metadata = metadata_of(train_job)
    of_trials = {field: metadata[field] for field in ("labels", "annotations") if metadata.get(field)}
    names = [str(parameter["name"]) for parameter in search["parameters"]]
    template: Object = {"spec": with_placeholders(train_job["spec"], names)}
    obj = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": name_of(train_job),
            "namespace": namespace_of(train_job),
            **({"labels": dict(metadata["labels"])} if metadata.get("labels") else {}),
        },
        "spec": search | {"trainJobTemplate": ({"metadata": of_trials} if of_trials else {}) | template},
    }
    return Document(resource, obj)


def with_placeholders(spec: Object, names: Sequence[str]) -> Object:
    """A spec in whose arguments `{lr}` refers to the variable of a parameter, which a container expands.

    Raises:
        BadInputError: no parameter has such a name.
    """
    trainer = mapping_at(spec, "trainer")
    if not trainer.get("args"):
        return spec
    return spec | {"trainer": trainer | {"args": [_with_variables(word, names) for word in trainer["args"]]}}


def _with_variables(word: str, names: Sequence[str]) -> str:
    def variable(found: re.Match[str]) -> str:
        if found[1] is not None:
            return f"{{{found[1]}}}"
        if found[2] not in names:
            raise BadInputError(
                f"ARGS: {printable(word)[:80]}: there is no parameter {found[2]}{did_you_mean(found[2], names)}; "
                f"{{{{{found[2]}}}}} stands for the text itself"
            )
        return f"$({variable_of(found[2])})"

    return _PLACEHOLDER.sub(variable, word)


def _objective(search: Search) -> Object:
    direction = DIRECTIONS[search.direction]
    aggregate = {} if search.aggregate is None else {"aggregate": AGGREGATES[search.aggregate].value}
    return {"metric": search.metric, "direction": direction.value, **aggregate}


def _algorithm(search: Search, algorithm: str) -> Object:
    if search.seed is not None and algorithm not in _SEEDED:
        raise BadInputError(f"--seed: {algorithm} draws nothing: leave it out")
    if search.startup_trials is not None and algorithm not in _SEQUENTIAL:
        raise BadInputError(
            f"--startup-trials: {algorithm} has none: leave it out, or take one of {_listed(_SEQUENTIAL)}"
        )
    seed = {} if search.seed is None else {"seed": search.seed}
    return seed | ({} if search.startup_trials is None else {"startupTrials": search.startup_trials})


def _pruning(search: Search, prune: str) -> Object:
    if prune == "median" and search.reduction is not None:
        raise BadInputError("--reduction: belongs to --prune asha: leave it out")
    if prune == "asha" and search.warmup == 0:
        raise BadInputError("--warmup: must be at least 1 with --prune asha, whose first rung it is")
    given = {"warmupSteps": search.warmup, "intervalSteps": search.interval, "reductionFactor": search.reduction}
    return {field: value for field, value in given.items() if value is not None}


def _grid_size(parameters: Sequence[SearchedParameter]) -> int:
    for each in parameters:
        if not each.choices:
            raise BadInputError(
                f"--algorithm grid: {each.name} is an interval, and a grid has choices: write "
                f"{each.name}=choice(...), or take another algorithm"
            )
    size = math.prod(len(each.choices) for each in parameters)
    return min(size, MOST_TRIALS)


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def check_search(search: Search) -> None:
    """Check what Python has given, where texts can be anything; a command line is checked by its parser.

    Raises:
        BadInputError: a value is none of those that it can be.
    """
    for field, values in _NAMED.items():
        value = getattr(search, field)
        if value is not None and value not in values:
            raise BadInputError(f"{field}: {printable(str(value))[:80]}: must be one of {', '.join(values)}")
    for field, (least, most) in _BOUNDS.items():
        value = getattr(search, field)
        if value is not None and (value < least or (most is not None and value > most)):
            bounds = f"at least {least}" if most is None else f"from {least} to {most}"
            raise BadInputError(f"{field}: {value}: must be {bounds}")
