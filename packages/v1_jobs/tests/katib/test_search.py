"""Objective, algorithm, early stopping and numbers of trials."""

from __future__ import annotations

from typing import Any

import pytest

from packages.v1_jobs.tests.katib.samples import LR, experiment
from trainer.api.invalid_object import InvalidObjectError
from trainer.kube.objects import Object
from trainer_sweeps.api.optimizationjob import OptimizationJob
from trainer_v1_jobs.katib import convert_experiment

GOAL = "is left out: all trials run; suspend or delete the OptimizationJob when its result is good enough"
MEDIAN = (
    "becomes pruneAlgorithm.median, which compares with the median of the others at the same step, as the program "
    "reports it; Katib compared with the mean of their first start_step reports"
)


def converted(obj: Object) -> tuple[Object, list[str]]:
    """The spec, which is valid, and what is lost."""
    result = convert_experiment(obj)
    OptimizationJob.from_object(result.optimization_job, strict=True)
    return result.optimization_job["spec"], [str(each) for each in result.findings]


def refusals(obj: Object) -> list[str]:
    """Why an Experiment cannot be converted."""
    with pytest.raises(InvalidObjectError) as caught:
        convert_experiment(obj)
    return [str(each) for each in caught.value.errors]


def algorithm(name: str, **settings: str) -> Object:
    """An algorithm with settings."""
    return {
        "algorithmName": name,
        "algorithmSettings": [{"name": each, "value": value} for each, value in settings.items()],
    }


def test_nothing_is_lost() -> None:
    """What both say is said without a comment."""
    spec, lost = converted(experiment(maxFailedTrialCount=2, parallelTrialCount=2, resumePolicy="Never"))

    assert lost == []
    assert spec == {
        "objectives": [{"metric": "loss", "direction": "Minimize", "aggregate": "Min"}],
        "searchAlgorithm": {"random": {}},
        "parameters": [
            {"name": "lr", "searchSpace": {"uniform": {"min": "0.01", "max": "0.1", "type": "Float"}}},
        ],
        "numTrials": 4,
        "parallelTrials": 2,
        "maxFailedTrials": 1,
        "trainJobTemplate": {
            "spec": {
                "runtimeRef": {"kind": "TrainingRuntime", "name": "demo"},
                "trainer": {"numNodes": 1, "image": "train:1", "args": ["$(KUBEFLOW_TRAINER_OPT_LR)"]},
            }
        },
    }


@pytest.mark.parametrize(
    ("changes", "aggregate", "lost"),
    [
        pytest.param({}, "Min", [], id="best of all values by default"),
        pytest.param({"type": "maximize"}, "Max", [], id="the greatest one where it is maximized"),
        pytest.param({"metricStrategies": [{"name": "loss", "value": "latest"}]}, "Last", [], id="latest"),
        pytest.param({"metricStrategies": [{"name": "loss", "value": "max"}]}, "Max", [], id="max"),
        pytest.param({"goal": 0.1}, "Min", [f"spec.objective.goal: {GOAL}"], id="goal"),
        pytest.param({"goal": 1}, "Min", [f"spec.objective.goal: {GOAL}"], id="goal without a fraction"),
        pytest.param(
            {
                "additionalMetricNames": ["accuracy"],
                "metricStrategies": [{"name": "accuracy", "value": "max"}, {"name": "mae", "value": "min"}],
            },
            "Min",
            [
                (
                    "spec.objective.additionalMetricNames: is left out: each TrainJob shows all metrics that it "
                    "reports, but only the objective keeps its curve"
                ),
                "spec.objective.metricStrategies: is left out for mae: only the objective has one",
            ],
            id="further metrics",
        ),
        pytest.param(
            {"objectiveMetricName": "thing"},
            "Min",
            [
                (
                    "spec.objective.objectiveMetricName: is no name that is found in lines such as thing=0.5, which "
                    "Katib read: call report(eval_metrics={'thing': value}), docs/progress.md"
                )
            ],
            id="a name that is not found in lines",
        ),
    ],
)
def test_objectives(changes: dict[str, Any], aggregate: str, lost: list[str]) -> None:
    """Katib takes the best value of a trial unless it is told otherwise."""
    spec, found = converted(experiment(objective={"type": "minimize", "objectiveMetricName": "loss"} | changes))

    assert (spec["objectives"][0]["aggregate"], found) == (aggregate, lost)


@pytest.mark.parametrize(
    ("stated", "expected", "lost"),
    [
        pytest.param(algorithm("random", random_state="5"), {"random": {"seed": 5}}, [], id="random"),
        pytest.param(
            algorithm("random", speed="5"),
            {"random": {}},
            ["spec.algorithm.algorithmSettings[speed]: is left out: random has no such setting here"],
            id="setting",
        ),
        pytest.param(
            algorithm("tpe", random_state="5", n_startup_trials="20"),
            {"tpe": {"seed": 5, "startupTrials": 20}},
            [],
            id="tpe",
        ),
        pytest.param(
            algorithm("tpe", n_startup_trials="0"),
            {"tpe": {"startupTrials": 1}},
            ["spec.algorithm.algorithmSettings[n_startup_trials]: becomes 1: it must be from 1 to 100"],
            id="no startup",
        ),
        pytest.param(
            algorithm("multivariate-tpe"),
            {"tpe": {}},
            ["spec.algorithm.algorithmName: becomes tpe, which looks at each parameter by itself"],
            id="multivariate-tpe",
        ),
        pytest.param(
            algorithm("bayesianoptimization", n_initial_points="3", random_state="1"),
            {"gp": {"seed": 1, "startupTrials": 3}},
            [
                (
                    "spec.algorithm.algorithmName: becomes gp, whose libraries are to be installed beside the manager; "
                    "tpe needs none of them"
                )
            ],
            id="bayesianoptimization",
        ),
        pytest.param(
            algorithm("cmaes", sigma="0.1"),
            {"cmaEs": {}},
            ["spec.algorithm.algorithmSettings[sigma]: is left out: cmaEs has no such setting here"],
            id="cmaes",
        ),
        pytest.param(
            algorithm("sobol"),
            {"random": {}},
            [
                (
                    "spec.algorithm.algorithmName: becomes random: the values of a trial do not depend on those of the "
                    "others"
                )
            ],
            id="sobol",
        ),
    ],
)
def test_algorithms(stated: Object, expected: Object, lost: list[str]) -> None:
    """Each becomes the nearest one, with its seed and startup."""
    spec, found = converted(experiment(algorithm=stated))

    assert (spec["searchAlgorithm"], found) == (expected, lost)


@pytest.mark.parametrize(
    ("settings", "expected", "lost"),
    [
        pytest.param({}, {"startupTrials": 3, "warmupSteps": 4}, [], id="Katib's defaults"),
        pytest.param(
            {"min_trials_required": "7", "start_step": "0", "other": "1"},
            {"startupTrials": 7, "warmupSteps": 0},
            ["spec.earlyStopping.algorithmSettings[other]: is left out: the median has no such setting"],
            id="stated",
        ),
    ],
)
def test_early_stopping(settings: dict[str, str], expected: Object, lost: list[str]) -> None:
    """medianstop becomes pruning by the median, and it is said how that differs."""
    spec, found = converted(experiment(earlyStopping=algorithm("medianstop", **settings)))

    assert spec["pruneAlgorithm"] == {"median": expected}
    assert found == [f"spec.earlyStopping.algorithmName: {MEDIAN}", *lost]


@pytest.mark.parametrize(
    ("counts", "expected", "lost"),
    [
        pytest.param({}, (4, 3, None), [], id="three at once"),
        pytest.param({"parallelTrialCount": 2, "maxTrialCount": 2}, (2, 2, None), [], id="stated"),
        pytest.param({"maxTrialCount": 1}, (1, 1, None), [], id="not more at once than in all"),
        pytest.param({"maxFailedTrialCount": 0}, (4, 3, 0), [], id="the first failure is the last"),
        pytest.param({"maxFailedTrialCount": 1}, (4, 3, 0), [], id="likewise"),
        pytest.param({"maxFailedTrialCount": 3}, (4, 3, 2), [], id="fails with the third"),
        pytest.param(
            {"maxTrialCount": None},
            (100, 3, None),
            ["spec.maxTrialCount: is absent, which was no limit: becomes 100, the most trials of an OptimizationJob"],
            id="no limit",
        ),
        pytest.param(
            {"maxTrialCount": 500, "parallelTrialCount": 200},
            (100, 100, None),
            ["spec.maxTrialCount: becomes 100, the most trials of an OptimizationJob, instead of 500"],
            id="too many",
        ),
    ],
)
def test_counts(counts: dict[str, Any], expected: tuple[int, int, int | None], lost: list[str]) -> None:
    """A count that Katib does not need is chosen, and it is said which."""
    spec, found = converted(experiment(**counts))

    assert (spec["numTrials"], spec["parallelTrials"], spec.get("maxFailedTrials")) == expected
    assert found == lost


def test_size_of_a_grid() -> None:
    """A grid without a count has as many trials as combinations, as with Katib; more than fit are named."""
    steps = {"name": "n", "parameterType": "int", "feasibleSpace": {"min": "1", "max": "20"}}
    choices = {"name": "c", "parameterType": "categorical", "feasibleSpace": {"list": ["a", "b"]}}
    template = {"trialParameters": [{"name": "lr", "reference": "n"}]}
    grid: dict[str, Any] = {"algorithm": algorithm("grid", random_state="1"), "maxTrialCount": None}

    spec, found = converted(experiment(template=template, parameters=[steps, choices], **grid))
    assert spec["numTrials"] == 40
    assert found == [
        "spec.algorithm.algorithmSettings[random_state]: is left out: the trials of a grid have a fixed order"
    ]
    other = steps | {"name": "m"}
    spec, found = converted(experiment(template=template, parameters=[steps, other], **grid))
    assert spec["numTrials"] == 100
    assert "spec.maxTrialCount: becomes 100, the most trials of an OptimizationJob, instead of 400" in found


@pytest.mark.parametrize(
    ("changes", "problems"),
    [
        pytest.param(
            {"algorithm": algorithm("hyperband")},
            [
                (
                    'spec.algorithm.algorithmName: Invalid value: "hyperband": has no counterpart: write random, and '
                    "add pruneAlgorithm.asha with the eta of hyperband as reductionFactor to the result"
                )
            ],
            id="hyperband",
        ),
        pytest.param(
            {"algorithm": algorithm("pbt")},
            [
                (
                    'spec.algorithm.algorithmName: Invalid value: "pbt": has no counterpart: its trials begin with '
                    "checkpoints of others, which OptimizationJobs cannot do; write tpe"
                )
            ],
            id="pbt",
        ),
        pytest.param(
            {"algorithm": algorithm("mine")},
            [
                (
                    'spec.algorithm.algorithmName: Unsupported value: "mine": supported values: "random", "grid", '
                    '"tpe", "multivariate-tpe", "bayesianoptimization", "cmaes", "sobol"'
                )
            ],
            id="unknown algorithm",
        ),
        pytest.param(
            {"algorithm": algorithm("random", random_state="soon")},
            ['spec.algorithm.algorithmSettings[random_state]: Invalid value: "soon": must be an integer'],
            id="seed",
        ),
        pytest.param(
            {"earlyStopping": algorithm("mine")},
            ['spec.earlyStopping.algorithmName: Unsupported value: "mine": supported values: "medianstop"'],
            id="unknown early stopping",
        ),
        pytest.param(
            {"nasConfig": {"graphConfig": {}}, "algorithm": algorithm("darts"), "parameters": None},
            [
                (
                    "spec.nasConfig: Forbidden: an OptimizationJob searches no architectures of neural networks; write "
                    "parameters instead"
                ),
                (
                    'spec.algorithm.algorithmName: Invalid value: "darts": has no counterpart: an OptimizationJob '
                    "searches no architectures of neural networks"
                ),
                "spec.parameters: Required value: there must be one at least",
                (
                    'spec.trialTemplate.trialParameters[lr].reference: Not found: "lr": there is no such parameter in '
                    "spec.parameters"
                ),
            ],
            id="architectures",
        ),
        pytest.param(
            {"parallelTrialCount": 9, "maxFailedTrialCount": 5},
            [
                "spec.parallelTrialCount: Invalid value: 9: must not be greater than maxTrialCount, which is 4",
                "spec.maxFailedTrialCount: Invalid value: 5: must not be greater than maxTrialCount, which is 4",
            ],
            id="counts",
        ),
        pytest.param({"parameters": [LR | {"name": 5}]}, ["..."], id="types"),
        pytest.param({"objective": {"type": "best"}}, ["...", "..."], id="objective"),
    ],
)
def test_refusals(changes: dict[str, Any], problems: list[str]) -> None:
    """What cannot be converted is named with the remedy, all of it at once."""
    found = refusals(experiment(**changes))

    assert len(found) == len(problems)
    assert all(problem in {"...", text} for problem, text in zip(problems, found, strict=True)), found


@pytest.mark.parametrize(
    ("metrics", "lost"),
    [
        pytest.param({}, "", id="default"),
        pytest.param({"collector": {"kind": "StdOut"}}, "", id="stdout"),
        pytest.param(
            {"collector": {"kind": "File"}}, "nobody reads files of pods; print the lines, or call", id="file"
        ),
        pytest.param({"collector": {"kind": "TensorFlowEvent"}}, "add the TrainJobCallback", id="event files"),
        pytest.param({"collector": {"kind": "PrometheusMetric"}}, "nobody asks pods for metrics", id="prometheus"),
        pytest.param({"collector": {"kind": "Custom", "customCollector": {}}}, "pods get no collector", id="custom"),
        pytest.param({"collector": {"kind": "Push"}}, "in place of its report_metrics call", id="push"),
        pytest.param(
            {"source": {"filter": {"metricsFormat": ["(.*)"]}}},
            "lines such as Epoch 3/10 loss=0.5 are read, if their names are usual",
            id="patterns",
        ),
    ],
)
def test_collectors(metrics: Object, lost: str) -> None:
    """Those that nobody needs here are named with what takes their place."""
    _, found = converted(experiment(metricsCollectorSpec=metrics))

    assert len(found) == bool(lost)
    assert all(lost in each and "report(eval_metrics={'loss': value}), docs/progress.md" in each for each in found)


def test_metadata_and_status() -> None:
    """Labels and annotations stay; what others have written is named, and so is a search that has begun."""
    metadata = {
        "name": "demo",
        "labels": {"a": "b"},
        "annotations": {"c": "d"},
        "finalizers": ["update-prometheus-metrics", "mine"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u"}],
    }
    result = convert_experiment(experiment() | {"metadata": metadata, "status": {"trials": 3}})

    kept = {"name": "demo", "labels": {"a": "b"}, "annotations": {"c": "d"}}
    assert result.optimization_job["metadata"] == kept
    assert [str(each) for each in result.findings] == [
        "metadata.finalizers: is left out: who put it there does not know OptimizationJobs",
        "metadata.ownerReferences: is left out: its owner makes Experiments",
        "status: is left out, with all that has run: the OptimizationJob begins with its first trial",
    ]


def test_resumption() -> None:
    """A search that could go on after its end does so no more."""
    rule = "is left out: an OptimizationJob that has ended stays so; for more trials create another one"
    assert converted(experiment(resumePolicy="FromVolume"))[1] == [f"spec.resumePolicy: {rule}"]
