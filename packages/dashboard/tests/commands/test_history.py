"""The history on the command line."""

from __future__ import annotations

import csv
import io
import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import Connection, update
from typer.testing import CliRunner, Result

from packages.dashboard.tests.history.conftest import jobset, owned, train_job
from tests.cli.conftest import screen, text_of
from trainer.cli.app import app
from trainer.cli.processes.state_directory import StateDirectory
from trainer.kube.cache.cached_object import CachedObject
from trainer.plugins import coscheduling
from trainer.progress.curves import Curves
from trainer.progress.samples import MetricId
from trainer_dashboard.commands.recorded_history import RecordedHistory
from trainer_dashboard.history.content import compressed
from trainer_dashboard.history.database import Database
from trainer_dashboard.history.forgetting import forget_older
from trainer_dashboard.history.records import (
    MetricProgress,
    NewSamples,
    Training,
    prepared,
    save_events,
    save_samples,
    save_trainings,
)
from trainer_dashboard.history.schema import LOG_TAILS, TRAININGS
from trainer_dashboard.history.statements import put

DELETED = 1767229200.0
CODE = {"demo": {"one": "0123456789", "two": "0123456789"}, "other": {"one": "0123456789", "two": "abcdef0123"}}
"""Digests of code that `trainer run` has sent."""


def training(name: str, uid: str, rate: str, image: str, kind: str) -> Training:
    variables = [{"name": "RATE", "value": rate}, {"name": "SAME", "value": "1"}]
    words = ["--seed", rate, "--amp"] if name == "demo" else ["--seed", rate]
    trainer = {"numNodes": 2, "image": image, "env": variables, "args": words}
    code = [{"name": volume, "configMap": {"name": f"{name}-code-{digest}"}} for volume, digest in CODE[name].items()]
    overrides = [{"targetJobs": [{"name": "node"}], "volumes": code}]
    job = train_job(name, uid=uid, namespace="team", trainer=trainer, podSpecOverrides=overrides)
    condition = {"type": kind, "status": "True", "reason": "Ended", "message": "=over\x1b[31m"}
    condition["lastTransitionTime"] = "2026-01-01T00:10:00Z"
    progress = {"trainMetrics": {"loss": "0.5"}}
    job["status"] = {"startTime": "2026-01-01T00:01:00Z", "conditions": [condition], "trainerStatus": progress}
    objects = [CachedObject.of(each) for each in (job, jobset(job))]
    rendered = [owned(job, coscheduling.POD_GROUPS, name, spec={"minMember": 2})]
    return Training(objects[0], objects[1], None, "kubectl-create", DELETED, related=rendered)


def fill(connection: Connection) -> None:
    trainings = [
        training("demo", "11111111-a", "0.1", "example.com/a:1", "Complete"),
        training("other", "22222222-b", "0.2", "example.com/a:2", "Failed"),
    ]
    save_trainings(connection, [*map(prepared, trainings)], cluster="cluster", now=0)
    curves = Curves()
    for step in range(1, 4):
        curves.add(MetricId(is_eval=False, name="loss"), 1767225600.25 + step, step, 1 / step)
    progress = MetricProgress(1, "p", "node", "", 1)
    parameters = {"seed": "7", "depth": "2"}
    save_samples(connection, [NewSamples("11111111-a", [(1, curves.drain())], progress, parameters=parameters)])
    event = {"uid": "11111111-a", "event": "e", "last": "2026-01-01T00:00:05", "type": "Warning", "reason": "BackOff"}
    save_events(connection, [event | {"object": "Pod demo-node-0", "message": "back-off"}])
    lines = ["2026-01-01T00:00:01.5Z first", "2026-01-01T00:00:02.5Z last \x1b[31m"]
    tails = [
        {
            "node": f"node-{index}",
            "container": "node",
            "pod": "p",
            "run": "r",
            "is_training": True,
            "is_primary": not index,
        }
        for index in range(2)
    ]
    put(connection, LOG_TAILS, [each | {"uid": "11111111-a", "content": compressed(lines)} for each in tails])


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who has recorded two trainings, and has no cluster."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    database = Database(f"sqlite:///{tmp_path}/trainer/history.db")
    database.migrate()
    database.write(fill)
    database.close()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


TABLE = """\
UID       NAMESPACE  NAME   STATE     CREATED (UTC)     TOOK  NODES  RUNTIME  METRICS   BY
22222222  team       other  Failed    2026-01-01 00:00  9m    2      plain    loss 0.5  kubectl-create
11111111  team       demo   Complete  2026-01-01 00:00  9m    2      plain    loss 0.5  kubectl-create
"""


@pytest.mark.parametrize(
    "arguments", ["history", "history list", "get --history", "get --history -n team", "history list --runtime plain"]
)
def test_list(recorded: None, arguments: str) -> None:
    """Trainings are listed, the newest first, without a cluster."""
    result = run(*arguments.split())
    assert (result.exit_code, result.stdout) == (0, TABLE)


NARROW = """\
UID       NAMESPACE  NAME   STATE     CREATED (UTC)     TOOK  METRICS
22222222  team       other  Failed    2026-01-01 00:00  9m    loss 0.5
11111111  team       demo   Complete  2026-01-01 00:00  9m    loss 0.5
"""


def test_list_on_a_terminal(recorded: None) -> None:
    """On a terminal as many columns are shown as fit."""
    console = screen(terminal=True, width=70)
    RecordedHistory().print_list(console, "team", "", None)
    assert text_of(console) == NARROW


def with_second_cluster(directory: Path) -> StateDirectory:
    """The recorded cluster is that of `trainer up`, which does not run; another one has recorded a training as well."""
    state = StateDirectory.of_user()
    state.data.mkdir()
    state.identity_file.write_text("cluster")
    database = Database(f"sqlite:///{directory}/trainer/history.db")
    newer = prepared(training("demo", "33333333-c", "0.3", "example.com/a:3", "Failed"))
    database.write(partial(save_trainings, trainings=[newer], cluster="f" * 36, now=0))
    database.close()
    return state


def test_clusters(recorded: None, tmp_path: Path) -> None:
    """Trainings of another cluster are never taken for those of this one; a list of all tells them apart.

    This one need not run.
    """
    with_second_cluster(tmp_path)
    assert run("get", "--history").stdout == TABLE
    assert "11111111" in run("get", "demo", "--history").stdout
    assert run("metrics", "demo", "--history", "-o", "csv").stdout.count("\n") == 4
    every = run("history").stdout.splitlines()
    assert [line.split()[-1] for line in every] == ["CLUSTER", "f" * 36, "trainer-dev", "trainer-dev"]


def test_deleted_cluster(recorded: None, tmp_path: Path) -> None:
    """`trainer down --delete` deletes what was recorded of its cluster, and nothing of others."""
    with_second_cluster(tmp_path)
    result = run("down", "--delete")
    assert result.stdout.endswith("history of 2 trainings deleted\nobjects, volumes and logs deleted\n")
    rest = run("history").stdout.splitlines()
    assert [line.split()[0] for line in rest] == ["UID", "33333333"]
    assert run("history", "show", "11111111").exit_code == 1
    assert run("get", "--history", "-n", "elsewhere").stderr == "note: the history has no training\n"
    assert not list((tmp_path / "trainer").glob("*.db.*.lock"))
    assert "history of" not in run("down", "--delete").stdout


def test_history_that_cannot_be_deleted(recorded: None, tmp_path: Path) -> None:
    """A cluster is deleted all the same where the history cannot be used, which is said."""
    state = with_second_cluster(tmp_path)
    (tmp_path / "trainer" / "history.db").write_text("no database")
    result = run("down", "--delete")
    assert result.exit_code == 0
    assert "warning: the history of the cluster stays: " in result.stderr
    assert not state.data.exists()


def test_list_of_some(recorded: None) -> None:
    """Filters select, limits say that there is more, and JSON has all columns."""
    failed = json.loads(run("history", "list", "--state", "Failed", "-o", "json").stdout)
    assert [each["name"] for each in failed] == ["other"]
    assert failed[0]["deleted"] == "2026-01-01T01:00:00+00:00"
    limited = run("history", "list", "--limit", "1")
    assert limited.stdout.count("\n") == 2
    assert "there are more: --limit 10" in limited.stderr


def test_details(recorded: None) -> None:
    """One training has its conditions, image and events, without control characters of others."""
    result = run("get", "demo", "--history")
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    for text in ("Complete (Ended", "example.com/a:1", "2026-01-01 01:00", "Pod demo-node-0 BackOff: back-off"):
        assert text in result.stdout
    assert run("history", "show", "11111111").stdout == result.stdout
    assert json.loads(run("get", "demo", "--history", "-o", "json").stdout)["metadata"]["name"] == "demo"


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
def test_times(recorded: None, zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Times are those of UTC wherever their reader is, and say so."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        table, details = run("history").stdout, run("history", "show", "demo").stdout
        compared, metrics = run("compare", "demo", "other").stdout, run("metrics", "demo", "--history").stderr
    finally:
        monkeypatch.undo()
        time.tzset()
    assert table == TABLE
    assert "Deleted       2026-01-01 01:00 UTC\n" in details
    assert "2026-01-01T00:00:05Z" in details
    assert "of 2026-01-01 00:00 UTC" in compared
    assert "is gone since 2026-01-01 01:00 UTC" in metrics


def test_objects(recorded: None) -> None:
    """All that was rendered is printed as YAML that is read again, and no control character of others."""
    result = run("history", "objects", "team/demo")
    assert result.exit_code == 0
    assert [obj["kind"] for obj in yaml.safe_load_all(result.stdout)] == ["TrainJob", "JobSet", "PodGroup"]
    assert "\x1b" not in result.stdout


def test_forgotten(recorded: None, tmp_path: Path) -> None:
    """Of a training whose details were forgotten the row is shown, and when they went."""
    database = Database(f"sqlite:///{tmp_path}/trainer/history.db")
    database.write(lambda connection: connection.execute(update(TRAININGS).values(deleted=None)))
    database.write(partial(forget_older, cluster="cluster", moment=DELETED, now=DELETED, limit=10))
    database.close()
    assert run("history").stdout == TABLE
    details = run("get", "demo", "--history").stdout
    assert "Forgotten     all but this, 2026-01-01 01:00 UTC\n" in details
    assert "BackOff" not in details
    nothing = run("history", "objects", "demo")
    assert (nothing.exit_code, nothing.stdout) == (1, "")
    assert "has no objects of TrainJob team/demo any more" in nothing.stderr


def test_metrics(recorded: None) -> None:
    """The samples are printed as those of a log are."""
    result = run("metrics", "demo", "--history", "-o", "csv")
    assert result.exit_code == 0
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [(row["time"], row["step"], row["value"]) for row in rows[:2]] == [
        ("2026-01-01T00:00:01.25Z", "1", "1"),
        ("2026-01-01T00:00:02.25Z", "2", "0.5"),
    ]
    assert "is gone since 2026-01-01 01:00 UTC" in result.stderr
    assert "last 0.3333" in run("metrics", "demo", "--history").stdout
    none = run("metrics", "other", "--history")
    assert (none.exit_code, none.stderr.count("\n")) == (1, 1)
    assert "no metrics of TrainJob other" in none.stderr


def test_epochs(recorded: None, tmp_path: Path) -> None:
    """A training that counts epochs alone keeps them."""
    curves = Curves()
    for epoch in (1, 2):
        curves.add(MetricId(is_eval=False, name="loss"), 1767225600 + epoch, -1, 1 / epoch, epoch)
    news = NewSamples("22222222-b", [(1, curves.drain())], MetricProgress(1, "p", "node", "", 1))
    database = Database(f"sqlite:///{tmp_path}/trainer/history.db")
    database.write(partial(save_samples, news=[news]))
    database.close()
    for arguments in (("metrics", "other", "--history", "-o", "csv"), ("history", "export", "--table", "metrics")):
        rows = list(csv.DictReader(io.StringIO(run(*arguments).stdout)))[:2]
        assert [(row["step"], float(row["epoch"]), float(row["value"])) for row in rows] == [("", 1, 1), ("", 2, 0.5)]


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        pytest.param([], ["first", "last "], id="first node"),
        pytest.param(["--tail", "1"], ["last "], id="tail"),
        pytest.param(["--timestamps", "--tail", "1"], ["2026-01-01T00:00:02.5Z last "], id="timestamps"),
        pytest.param(["--node", "1", "--tail", "1"], ["last "], id="node"),
        pytest.param(["--all", "--tail", "1"], [f"node-{i} | last " for i in range(2)], id="all nodes"),
        pytest.param(["--since", "1h"], [], id="since"),
    ],
)
def test_logs(recorded: None, options: list[str], shown: list[str]) -> None:
    """The last lines are printed as those of the cluster are."""
    result = run("logs", "demo", "--history", *options)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines() == shown


def test_compare(recorded: None) -> None:
    """What differs is shown, and what is equal is not."""
    shown = run("compare", "demo", "other").stdout
    cells = [line.split() for line in shown.splitlines()]
    assert ["trainer.env[RATE].value", "0.1", "0.2"] in cells
    assert ["trainer.image", "example.com/a:1", "example.com/a:2"] in cells
    assert ["state", "Complete", "Failed"] in cells
    differences = cells[cells.index(["Parameters"]) + 1 :][:3]
    assert differences == [["seed", "0.1", "0.2"], ["amp", "set", "-"], ["depth", "2", "-"]]
    assert "SAME" not in shown
    assert [line[0] for line in cells if "configMap" in "".join(line)] == [
        "podSpecOverrides[0].volumes[two].configMap.name"
    ]
    found = json.loads(run("compare", "11111111", "team/other", "-o", "json").stdout)
    assert found["metrics"] == [{"field": "loss", "left": "0.333333", "right": "0.5"}]


def test_export(recorded: None, tmp_path: Path) -> None:
    """CSV and Parquet have the same rows, and a spreadsheet takes no text for a formula."""
    rows = list(csv.DictReader(io.StringIO(run("history", "export").stdout)))
    assert [(row["name"], row["seconds"], row["message"]) for row in rows] == [
        ("other", "540.0", "'=over\x1b[31m"),
        ("demo", "540.0", "'=over\x1b[31m"),
    ]
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    for table, number in (("trainings", 2), ("metrics", 3)):
        file = tmp_path / f"{table}.parquet"
        result = run("history", "export", "--format", "parquet", "--table", table, "-f", str(file))
        assert result.exit_code == 0, result.stderr
        found: list[dict[str, Any]] = parquet.read_table(file).to_pylist()
        assert len(found) == number
        assert {each["uid"] for each in found} <= {"11111111-a", "22222222-b"}


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        pytest.param("=1", "'=1", id="whole"),
        pytest.param("x;=1", "x;'=1", id="semicolon"),
        pytest.param("x\n +1", "x\n '+1", id="line"),
        pytest.param("\uff1d1", "'\uff1d1", id="wide"),
        pytest.param("2026-01-01; a=-1", "2026-01-01; a=-1", id="harmless"),
    ],
)
def test_formula(recorded: None, tmp_path: Path, text: str, cell: str) -> None:
    """No text is a formula, whatever a spreadsheet takes for the end of a cell."""
    database = Database(f"sqlite:///{tmp_path}/trainer/history.db")
    database.write(lambda connection: connection.execute(update(TRAININGS).values(message=text)))
    database.close()
    rows = csv.DictReader(io.StringIO(run("history", "export").stdout))
    assert {row["message"] for row in rows} == {cell}


@pytest.mark.parametrize(
    ("arguments", "complaint", "code"),
    [
        pytest.param("get nothing --history", "the history has no training nothing", 1, id="unknown"),
        pytest.param("get --history -w", "--history cannot be combined with --watch", 2, id="watch"),
        pytest.param("logs demo --history -f", "--history cannot be combined with --follow", 2, id="follow"),
        pytest.param("logs demo --history --node 7", "has only these: node-0/node, node-1/node", 1, id="node"),
        pytest.param("history export --format parquet", "--file: name the file", 2, id="file"),
        pytest.param("history list --database mysql://a", "must be sqlite:////absolute/path", 2, id="database"),
        pytest.param("history list --since soon", "--since: soon is not a duration", 2, id="duration"),
        pytest.param("history record --retain soon", "--retain: soon is not a duration", 2, id="retention"),
        pytest.param("history record --retain-size lots", "--retain-size: lots", 2, id="size"),
        pytest.param("history record --notify-url hunter2", "must begin with https://", 2, id="webhook"),
        pytest.param("history record --notify-url-file nope", "cannot read nope", 2, id="file of webhook"),
        pytest.param("history record --notify-on failed", "--notify-on needs a webhook", 2, id="no webhook"),
    ],
)
def test_bad_input(recorded: None, arguments: str, complaint: str, code: int) -> None:
    """Bad input is one line that names the option and the remedy, and no secret."""
    result = run(*arguments.split())
    assert result.exit_code == code
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert complaint in result.stderr
    assert "hunter2" not in result.stderr


def test_no_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a database the commands say how to get one."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    result = run("history")
    assert result.exit_code == 1
    assert "`trainer history record` writes it" in result.stderr
    assert not list(tmp_path.iterdir())
