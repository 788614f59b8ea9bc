"""Sweeps in the commands of trainer-operator: by KIND NAME and KIND/NAME, and in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from packages.sweeps.tests.commands.samples import condition, sweep, trial
from tests.cli.conftest import train_job
from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.cli.app import app
from trainer.cli.kinds import OF_EXTRAS
from trainer.kube.objects import Object, name_of
from trainer.kubernetes_yaml import dump
from trainer_kube_testing import FakeClient
from trainer_sweeps.commands.kind import OptimizationJobKind


def run(arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_words() -> None:
    """Each word leads to the extra where it is not installed."""
    assert set(OptimizationJobKind().words) == {word for word, extra in OF_EXTRAS.items() if extra == "sweeps"}


NAMED = "optimizationjob.trainer.kubeflow.org/"


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("arguments", "lines", "left"),
    [
        pytest.param("delete sweep a", ["a deleted"], {"b": True, "c": False}, id="kind and name"),
        pytest.param("delete sweep/a optjob/b", ["a deleted", "b deleted"], {"c": False}, id="kind/name"),
        pytest.param("suspend sweeps a b", ["a suspended", "b is suspended already"], {"a": True}, id="suspend"),
        pytest.param(
            "resume sweep/a OptimizationJob/b", ["a is not suspended", "b resumed"], {"b": False}, id="resume"
        ),
    ],
)
def test_changes(served: FakeClient, arguments: str, lines: list[str], left: dict[str, bool]) -> None:
    """A sweep is changed by itself; its controller changes its trials."""
    served.add(sweep("a"))
    served.add(sweep("b", suspend=True))
    served.add(sweep("c"))

    result = run(arguments)

    assert (result.exit_code, result.stdout.splitlines()) == (0, [NAMED + line for line in lines]), result.stderr
    found = {name_of(each): bool(each["spec"].get("suspend")) for each in served.objects(OPTIMIZATION_JOBS)}
    assert found.items() >= left.items()
    assert "a" in found or arguments.startswith("delete")


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("command", ["logs", "attach", "metrics", "exec -- ls"])
def test_commands_about_one_training(served: FakeClient, command: str) -> None:
    """A command that needs a TrainJob says of a sweep that its trials are."""
    served.add(sweep())
    served.add(trial(3))
    word, *others = command.split(maxsplit=1)

    result = run(" ".join([word, "digits", *others]))

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "error: there is no TrainJob digits in namespace default: digits is a sweep, whose trials are TrainJobs such "
        "as digits-trial-3\n"
    )


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        pytest.param("delete sweep", 2, "sweep: the name is missing: write sweep NAME", id="no name"),
        pytest.param("delete sweep/", 2, "sweep/: the name is missing: write sweep/NAME", id="no name behind a slash"),
        pytest.param("delete job/a", 2, "job/a: there is no kind job: write NAME of a TrainJob", id="no such kind"),
        pytest.param(
            "get sweep digit",
            1,
            "there is no OptimizationJob digit in namespace default: did you mean digits? There are: digits, old",
            id="mistyped",
        ),
        pytest.param("get sweep digits old", 2, "show one at a time", id="two"),
        pytest.param("get sweep digits --history", 2, "--history are for TrainJobs", id="history"),
        pytest.param(
            "suspend sweep old", 1, "sweep old cannot be suspended: it has ended, and is Complete", id="ended"
        ),
        pytest.param("delete sweep/digits --checkpoints", 2, "--checkpoints: is for TrainJobs", id="checkpoints"),
        pytest.param("get digits", 1, "none in it (see: trainer get -A); there is sweep/digits", id="hint of get"),
        pytest.param("delete digits", 1, "none in it (see: trainer get -A); there is sweep/digits", id="hint"),
    ],
)
def test_mistakes(served: FakeClient, arguments: str, code: int, complaint: str) -> None:
    """What is wrong is one line with the remedy."""
    served.add(sweep())
    served.add(sweep("old", status={"conditions": [condition("Complete")], "state": "Complete"}))

    result = run(arguments)

    assert (result.exit_code, result.stderr.count("\n")) == (code, 1), result.stderr
    assert complaint in result.stderr


@pytest.mark.usefixtures("cluster")
def test_a_train_job_of_such_a_name(served: FakeClient) -> None:
    """A TrainJob that is called as the kind is named by its own kind."""
    served.add(train_job("sweep"))

    assert run("delete trainjob/sweep").stdout == "trainjob.trainer.kubeflow.org/sweep deleted\n"


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        pytest.param("trainer get sweep ", ["digits", "two"], id="behind the kind"),
        pytest.param("trainer delete sweep/d", ["sweep/digits"], id="behind a slash"),
        pytest.param("trainer explain sw", ["sweep"], id="the kind"),
        pytest.param("trainer suspend ", ["bert"], id="TrainJobs"),
    ],
)
def test_completion(served: FakeClient, line: str, offered: list[str]) -> None:
    """A shell offers the names that belong there."""
    for obj in (sweep(), sweep("two"), train_job("bert")):
        served.add(obj)
    environment = {
        "_TRAINER_COMPLETE": "complete_fish",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "_TYPER_COMPLETE_ARGS": line,
    }

    result = CliRunner().invoke(app, [], prog_name="trainer", env=environment)

    assert [each.partition("\t")[0] for each in result.stdout.split()] == offered


def written(**spec: Any) -> Object:
    """A sweep as its author writes it."""
    made = sweep(**spec)
    return made | {"metadata": {"name": "digits"}}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "sweep.yaml"


@pytest.mark.parametrize(
    ("obj", "code", "lines"),
    [
        pytest.param(written(), 0, ["ok"], id="ok"),
        pytest.param(written(numTrials=0), 1, ["spec.numTrials: Invalid value: 0: must be at least 1"], id="bound"),
        pytest.param(
            written(parameters=[{"name": "lr", "searchSpace": {"uniform": {"min": "2", "max": "1"}}}]),
            1,
            ["spec.parameters[0].searchSpace.uniform"],
            id="bounds",
        ),
        pytest.param(
            written(trainJobTemplate={"spec": {"runtimeRef": {"name": "torch-distribted"}}}),
            1,
            ["spec.trainJobTemplate.spec.runtimeRef", "Did you mean torch-distributed?"],
            id="TrainJob of a trial",
        ),
        pytest.param(
            written(trainJobTemplate={"spec": {"runtimeRef": {"name": "of-my-cluster"}}}),
            0,
            ["warning: spec.trainJobTemplate.spec.runtimeRef.name"],
            id="a runtime that may be in the cluster",
        ),
        pytest.param(
            written(trainJobTemplate={"spec": {"runtimeRef": {"name": "of-my-cluster"}}})
            | {"apiVersion": "trainer.kubeflow.org/v1alpha1"},
            0,
            ["warning: ClusterTrainingRuntime of-my-cluster not found"],
            id="of v1alpha1",
        ),
    ],
)
def test_lint(file: Path, obj: Object, code: int, lines: list[str]) -> None:
    """A sweep is checked as admission does, and so are the TrainJobs of its trials."""
    file.write_text(dump(obj))

    result = run("lint -f sweep.yaml")

    assert result.exit_code == code, result.output
    for line in lines:
        assert line in result.stdout


def test_render(file: Path) -> None:
    """The TrainJob of one trial comes first, with its parameters, then what the manager makes of it."""
    file.write_text(dump(written(searchAlgorithm={"grid": {}}, parameters=[
        {"name": "bs", "searchSpace": {"categorical": {"choices": ["16", "32", "64"]}}}
    ])))  # fmt: skip

    result = run("render -f sweep.yaml --trial 3")

    job, *others = yaml.safe_load_all(result.stdout)
    assert (job["kind"], job["metadata"]["name"]) == ("TrainJob", "digits-trial-3")
    assert {"name": "KUBEFLOW_TRAINER_OPT_BS", "value": "64"} in job["spec"]["trainer"]["env"]
    assert "JobSet" in {other["kind"] for other in others}
    beyond = run("render -f sweep.yaml --trial 4")
    assert (beyond.exit_code, beyond.stderr) == (2, "error: --trial: the sweep has 3 trials: name one from 1 to 3\n")


def test_render_in_the_other_version(file: Path) -> None:
    """A sweep of v1alpha1 has TrainJobs of v1alpha1."""
    file.write_text(dump(written() | {"apiVersion": "trainer.kubeflow.org/v1alpha1"}))

    job, *_ = yaml.safe_load_all(run("render -f sweep.yaml").stdout)

    assert job["apiVersion"] == "trainer.kubeflow.org/v1alpha1"


@pytest.mark.usefixtures("cluster")
def test_names_of_both(served: FakeClient) -> None:
    """Where a TrainJob and a sweep have the same name, it is the TrainJob's."""
    served.add(sweep("same"))
    served.add(train_job("same", state="Complete", conditions=[condition("Complete")]))

    assert "TrainJob same has succeeded" in run("explain same").stdout
    served.add(trial(1))
    assert "OptimizationJob same" in run("explain sweep same").stdout
