"""`trainer get`."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import anyio
import pytest
import yaml
from rich.console import Console
from typer.testing import CliRunner

from tests.cli.conftest import finished, screen, text_of, train_job
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.app import app
from trainer.cli.console import GetFormat
from trainer.cli.jobs.details import details
from trainer.cli.jobs.get import Report
from trainer.kube.clock import timestamp
from trainer.kube.errors import ForbiddenError, ServiceUnavailableError
from trainer.kube.objects import Object
from trainer_kube_testing import FakeClient, ManualClock


def aged(clock: ManualClock, seconds: int, job: Object) -> Object:
    """The job as if it had been made so long ago."""
    created = timestamp(clock.now() - timedelta(seconds=seconds))
    return {**job, "metadata": {**job["metadata"], "creationTimestamp": created}}


def condition(clock: ManualClock, kind: str, reason: str, message: str, status: str = "True") -> dict[str, str]:
    since = timestamp(clock.now() - timedelta(seconds=90))
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}


def reported(clock: ManualClock, seconds_ago: int = 12, **fields: Any) -> dict[str, Any]:
    updated = timestamp(clock.now() - timedelta(seconds=seconds_ago))
    return {"lastUpdatedTime": updated, **fields}


def kep_example(clock: ManualClock, seconds_ago: int = 12) -> dict[str, Any]:
    """The trainerStatus of the KEP."""
    return reported(
        clock,
        seconds_ago,
        progressPercentage=45,
        estimatedRemainingSeconds=795649,
        estimatedRemainingTimeSummary="9 days 5 hours",
        currentStep=4500,
        totalSteps=10000,
        currentEpoch=2,
        totalEpochs=5,
        trainMetrics={"loss": "0.2347", "learning_rate": "0.0001", "grad_norm": "1.234"},
        evalMetrics={"eval_loss": "0.2451", "eval_accuracy": "0.8912", "eval_perplexity": "1.277"},
        checkpoint={"step": 4400, "time": timestamp(clock.now() - timedelta(seconds=250)), "path": "step-4400"},
    )


@pytest.fixture
def jobs(client: FakeClient, clock: ManualClock) -> None:
    """Some TrainJobs in several states."""
    estimate = reported(
        clock,
        progressPercentage=7,
        estimatedRemainingSeconds=2700,
        estimatedRemainingTimeSummary="about 45 minutes",
        currentEpoch=1,
    )
    client.add(aged(clock, 780, train_job("an-example", state="Running", trainerStatus=kep_example(clock))))
    client.add(aged(clock, 840, train_job("estimated", state="Running", trainerStatus=estimate)))
    client.add(aged(clock, 3000, train_job("ended", **finished("Complete", "Done", ""), trainerStatus=estimate)))
    client.add(aged(clock, 5, train_job("new")))
    other = train_job("elsewhere", state="Suspended", trainerStatus=estimate)
    client.add(aged(clock, 5, {**other, "metadata": {**other["metadata"], "namespace": "team"}}))


async def shown(client: FakeClient, clock: ManualClock, job: Object) -> list[str]:
    """The lines of `trainer get demo` for this TrainJob."""
    client.add(job)
    console = screen()
    await Report(GetFormat.TABLE, console, clock, name="demo", namespace="default").show(client)
    return text_of(console).splitlines()


NARROW = """\
NAME        STATE      PROGRESS         ETA   STEP        METRICS      AGE
an-example  Running    ████▌░░░░░  45%  9d5h  4500/10000  loss 0.2347  13m
estimated   Running    ▋░░░░░░░░░   7%  ~45m  epoch 1                  14m
new         Submitted                                                  5s
ended       Complete   ▋░░░░░░░░░   7%        epoch 1                  50m
"""
BROAD = """\
NAME        STATE      PROGRESS         ETA   STEP        METRICS                                              AGE
an-example  Running    ████▌░░░░░  45%  9d5h  4500/10000  loss 0.2347  eval_accuracy 0.8912  eval_loss 0.2451  13m
"""


@pytest.mark.parametrize(
    ("width", "terminal", "beginning"),
    [
        pytest.param(80, True, NARROW, id="80 columns"),
        pytest.param(120, True, BROAD, id="as many metrics as fit"),
        pytest.param(20, False, BROAD, id="files have no width"),
    ],
)
@pytest.mark.usefixtures("jobs")
async def test_table(client: FakeClient, clock: ManualClock, width: int, terminal: bool, beginning: str) -> None:
    """The table has a line for each job, with as many of the most interesting metrics as fit."""
    console = screen(terminal=terminal, width=width)

    assert await Report(GetFormat.TABLE, console, clock, namespace="default").show(client) == 0

    assert text_of(console).startswith(beginning)


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("options", "names", "remark"),
    [
        pytest.param("", ["b", "a", "d", "c"], "", id="what runs first, then the newest"),
        pytest.param("--state failed --state RUNNING", ["a", "c"], "", id="states"),
        pytest.param("-l team=vision", ["b", "d"], "", id="labels"),
        pytest.param("-l team=vision --state Stalled", ["b"], "", id="both"),
        pytest.param("--limit 3", ["b", "a", "d"], "note: there is 1 more\n", id="limit"),
        pytest.param("--limit 4", ["b", "a", "d", "c"], "", id="all within the limit"),
        pytest.param("--state Suspended", [], "note: there are no such TrainJobs in namespace default\n", id="none"),
    ],
)
def test_choice(served: FakeClient, clock: ManualClock, options: str, names: list[str], remark: str) -> None:
    """Labels, states and a number choose what is shown."""
    for number, (name, state) in enumerate({"c": "Failed", "a": "Running", "b": "Stalled", "d": "Pending"}.items()):
        job = aged(clock, 100 - number, train_job(name, state=state))
        job["metadata"]["labels"] = {"team": "vision" if name in "bd" else "audio"}
        served.add(job)

    table = CliRunner().invoke(app, f"get {options}")
    by_name = CliRunner().invoke(app, f"get {options} -o name")

    assert (table.exit_code, by_name.exit_code) == (0, 0)
    assert [line.split()[0] for line in table.stdout.splitlines()[1:]] == names
    assert [line.rpartition("/")[2] for line in by_name.stdout.splitlines()] == names
    assert table.stderr == remark


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        pytest.param("--state running,failed", "--state: there is no state running,failed: they are ", id="state"),
        pytest.param("-l a==b==c", "--selector: ", id="selector"),
        pytest.param("--limit 0", "'--limit'", id="limit"),
        pytest.param("--watch --limit 1", "--limit cannot be combined with --watch", id="watch"),
        pytest.param("demo --limit 1", "cannot be combined with a NAME", id="name"),
        pytest.param("--history -l a=b", "cannot be combined with a NAME or with --history", id="history"),
    ],
)
def test_wrong_choice(options: str, complaint: str) -> None:
    """What cannot be chosen is refused, with the option."""
    result = CliRunner().invoke(app, f"get {options}")

    assert result.exit_code == 2
    assert complaint in result.stderr


@pytest.mark.usefixtures("jobs")
async def test_wide_table(client: FakeClient, clock: ManualClock) -> None:
    """In a file the wide table has all metrics, however long its lines become."""
    console = screen(width=80)

    await Report(GetFormat.WIDE, console, clock, namespace="default").show(client)

    header, first, *_ = text_of(console).splitlines()
    assert " ".join(header.split()) == "NAME STATE PROGRESS ETA STEP EPOCH METRICS UPDATED CHECKPOINT NODES RUNTIME AGE"
    assert re.split(r"  +", first.replace("░  45", "░ 45")) == [
        *("an-example", "Running", "████▌░░░░░ 45%", "9d5h", "4500/10000", "2/5"),
        *("loss 0.2347", "eval_accuracy 0.8912", "eval_loss 0.2451", "eval_perplexity 1.277", "grad_norm 1.234"),
        *("learning_rate 0.0001", "12s ago", "4400, 4m10s ago", "plain", "13m"),
    ]


@pytest.mark.usefixtures("jobs")
async def test_details(client: FakeClient, clock: ManualClock) -> None:
    """One job comes with all that it reports."""
    console = screen(terminal=True)

    await Report(GetFormat.TABLE, console, clock, name="an-example", namespace="default").show(client)

    assert text_of(console).splitlines()[2:] == [
        "",
        "Progress      45 %, step 4500 of 10000, epoch 2 of 5, 9 days 5 hours left",
        "              updated 12 s ago",
        "              last checkpoint step 4400, 4 min ago; 100 steps would be lost now",
        "Train metrics loss           0.2347",
        "              grad_norm      1.234",
        "              learning_rate  0.0001",
        "Eval metrics  eval_loss        0.2451",
        "              eval_accuracy    0.8912",
        "              eval_perplexity  1.277",
    ]


def test_details_of_one_that_is_gone(clock: ManualClock) -> None:
    """What was deleted while it ran can lose nothing more."""
    job = train_job("demo", state="Running", trainerStatus=kep_example(clock))
    assert [f"{line}" for line in details(job, clock.now(), is_gone=True)][2].strip() == (
        "last checkpoint step 4400, 4 min ago"
    )


async def test_steps(client: FakeClient, clock: ManualClock) -> None:
    """While data is fetched the line shows that step, and the details list all."""
    steps = {
        "dataInitializerStatus": {"state": "Complete", "lastUpdatedTime": "2026-01-02T10:00:00Z"},
        "modelInitializerStatus": {
            "state": "Running",
            "progressPercentage": 45,
            "estimatedRemainingSeconds": 120,
            "estimatedRemainingTimeSummary": "2 minutes",
        },
    }
    client.add(aged(clock, 5, train_job("fetching", state="Running", **steps)))
    console = screen(terminal=True)

    await Report(GetFormat.TABLE, console, clock, name="fetching", namespace="default").show(client)

    table, details = text_of(console).split("\n\n")
    assert table.splitlines()[1].split() == [
        "fetching",
        "Running",
        "████▌░░░░░",
        "45%",
        "2m",
        "model-initializer",
        "5s",
    ]
    assert details.splitlines() == [
        "Progress      none reported yet",
        "Steps         dataset-initializer: Complete",
        "              model-initializer: Running, 45 %, 2 minutes left",
    ]


async def test_restarts(client: FakeClient, clock: ManualClock) -> None:
    """They are counted by cause."""
    counts = {"disruptions": 2, "failures": 1, "maxRestarts": 3}
    client.add(train_job("demo", state="Running", restarts=counts))
    console = screen()
    await Report(GetFormat.TABLE, console, clock, name="demo", namespace="default").show(client)
    assert "Restarts      2 disruptions, 1 failure of 3" in text_of(console).splitlines()


async def test_long_messages(client: FakeClient, clock: ManualClock) -> None:
    """On a terminal a long reason is broken between words, beside its label, and in a file it is one line."""
    said = condition(clock, "Pending", "Unschedulable", "no node has 8 of nvidia.com/gpu: " + "3 have 4, " * 10)
    client.add(train_job("demo", state="Pending", conditions=[said]))
    on_screen, in_file = screen(terminal=True, width=100), screen(width=100)
    for console in (on_screen, in_file):
        await Report(GetFormat.TABLE, console, clock, name="demo", namespace="default").show(client)

    lines = text_of(on_screen).splitlines()
    assert max(map(len, lines)) <= 100
    assert [" ".join(" ".join(lines[3:]).split())] == [" ".join(text_of(in_file).splitlines()[3].split())]
    assert all(line.startswith(" " * 14) for line in lines[4:])


COUNTS = {"name": "node", "ready": 1, "active": 2, "succeeded": 0, "failed": 1, "suspended": 0}


@pytest.mark.parametrize(
    ("kind", "reason", "message", "status", "state", "lines"),
    [
        pytest.param(
            "Failed",
            "FailedJobs",
            "pod x: container trainer exited with code 3\nlast lines of its log:\n  File \x1b[31mx\nValueError",
            "True",
            "Failed",
            [
                "Conditions    Failed (FailedJobs, 1 min 30 s ago): pod x: container trainer exited with code 3",
                "                last lines of its log:",
                r"                  File \x1b[31mx",
                "                ValueError",
                "Jobs          node: 3 Jobs, 2 active, 1 failed, 1 of 3 ready",
            ],
            id="failed",
        ),
        pytest.param(
            "Created",
            "JobsBuildFailed",
            "no runtime x",
            "False",
            "Blocked",
            [
                "Conditions    not Created (JobsBuildFailed, 1 min 30 s ago): no runtime x",
                "Jobs          node: 3 Jobs, 2 active, 1 failed, 1 of 3 ready",
            ],
            id="blocked",
        ),
    ],
)
async def test_conditions(
    client: FakeClient,
    clock: ManualClock,
    kind: str,
    reason: str,
    message: str,
    status: str,
    state: str,
    lines: list[str],
) -> None:
    """The details say why a job waits or has failed, and nothing about conditions that everybody expects."""
    said = condition(clock, kind, reason, message, status)
    job = train_job("demo", state=state, conditions=[said], jobsStatus=[COUNTS])
    assert (await shown(client, clock, job))[3:] == lines


@pytest.mark.parametrize(
    ("state", "seconds", "summary", "eta", "line"),
    [
        pytest.param(
            "Running",
            720,
            "no report since 10:30 UTC",
            "no report for 12m",
            "updated 12 min 00 s ago: no report for 12 minutes, much longer than usual",
            id="silent",
        ),
        pytest.param("Running", 720, "2 hours", "2 hours", "updated 12 min 00 s ago", id="usual"),
        pytest.param("Complete", 720, "no report since 10:30 UTC", "", "updated 12 min 00 s ago", id="ended"),
        pytest.param("Running", -30, "2 hours", "2 hours", "updated 0 s ago", id="clocks-differ"),
    ],
)
async def test_silence(
    client: FakeClient, clock: ManualClock, state: str, seconds: int, summary: str, eta: str, line: str
) -> None:
    """A training that reports nothing for much longer than usual shows that in place of its remaining time."""
    fields = {"progressPercentage": 1, "estimatedRemainingTimeSummary": summary}
    lines = await shown(client, clock, train_job("demo", state=state, trainerStatus=reported(clock, seconds, **fields)))
    assert eta in lines[1]
    assert ("no report" in lines[1]) is eta.startswith("no report")
    assert lines[4].strip() == line


async def test_metrics_cannot_command_the_terminal(client: FakeClient, clock: ManualClock) -> None:
    """Names and values of metrics are printed without control characters and markup."""
    metrics = {"\x1b]0;owned\x07": "1\x1b[2J", "[bold]loss": "2"}
    client.add(train_job("demo", state="Running", trainerStatus=reported(clock, trainMetrics=metrics)))
    for form in (GetFormat.TABLE, GetFormat.WIDE):
        console = screen()
        await Report(form, console, clock, name="demo", namespace="default").show(client)

        assert "\x1b" not in text_of(console)
        assert "[bold]loss" in text_of(console)
        assert r"\x1b]0;owned\x07" in text_of(console)


@asynccontextmanager
async def watching(
    client: FakeClient, clock: ManualClock, console: Console, form: GetFormat = GetFormat.TABLE, name: str | None = None
) -> AsyncIterator[list[int]]:
    """Watches in the background; afterwards the list holds the exit code, if the watch has ended by itself."""
    codes: list[int] = []

    async def watch() -> None:
        report = Report(form, console, clock, name=name, namespace="default", is_watch=True)
        codes.append(await report.watch(client))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        await clock.advance(0)
        yield codes
        await clock.advance(1)
        tasks.cancel_scope.cancel()


async def test_watch_prints_changes(client: FakeClient, clock: ManualClock) -> None:
    """Without a terminal a watch prints a line for each change that the line shows, over ends of the watch."""
    client.add(aged(clock, 5, train_job("b", state="Created")))
    client.add(aged(clock, 5, train_job("a", state="Created")))
    console = screen()
    async with watching(client, clock, console):
        client.add(aged(clock, 5, train_job("b", state="Running")))
        await clock.advance(1)
        client.add(aged(clock, 5, train_job("b", state="Running", observedGeneration=3)))
        await clock.advance(1)
        client.faults.drop_watches(ServiceUnavailableError(503, "restarting"))
        client.add(aged(clock, 5, train_job("a", state="Suspended")))
        await clock.advance(30)

    assert len({line.rindex(" ") for line in text_of(console).splitlines()}) == 1
    assert [line.split()[:2] for line in text_of(console).splitlines()] == [
        ["NAME", "STATE"],
        ["a", "Created"],
        ["b", "Created"],
        ["b", "Running"],
        ["a", "Suspended"],
    ]


@pytest.mark.parametrize(
    ("form", "lines"),
    [
        pytest.param(GetFormat.JSON, ["Created", "Running", "Running"], id="json"),
        pytest.param(GetFormat.YAML, ["Created", "Running", "Running"], id="yaml"),
    ],
)
async def test_watch_for_programs(client: FakeClient, clock: ManualClock, form: GetFormat, lines: list[str]) -> None:
    """Programs get the whole object with each change: a line of JSON, or a document of YAML."""
    client.add(train_job("a", state="Created"))
    console = screen()
    async with watching(client, clock, console, form):
        client.add(train_job("a", state="Running"))
        await clock.advance(1)
        client.add(train_job("a", state="Running", observedGeneration=3))
        await clock.advance(1)

    text = text_of(console)
    if form is GetFormat.JSON:
        assert [json.loads(line)["status"]["state"] for line in text.splitlines()] == lines
    else:
        assert [document["status"]["state"] for document in yaml.safe_load_all(text)] == lines


@pytest.mark.parametrize(
    ("status", "code"),
    [
        pytest.param(finished("Complete", "Done", ""), 0, id="complete"),
        pytest.param(finished("Failed", "FailedJobs", ""), 1, id="failed"),
        pytest.param(None, 1, id="deleted"),
    ],
)
@pytest.mark.parametrize("terminal", [False, True])
async def test_watch_of_one_job_ends_with_it(
    client: FakeClient,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    terminal: bool,
    status: dict[str, Any] | None,
    code: int,
) -> None:
    """The watch of one job ends when the job ends, with the exit code of `trainer run`."""
    monkeypatch.setenv("TERM", "xterm")
    client.add(train_job("a", state="Running"))
    console = screen(terminal=terminal)
    async with watching(client, clock, console, name="a") as codes:
        await clock.advance(2)
        assert not codes
        if status is None:
            client.remove(TRAIN_JOBS, "a", "default")
        else:
            client.add(train_job("a", **status))

    assert codes == [code]
    assert "Running" in text_of(console)


@pytest.mark.parametrize("terminal", [False, True])
async def test_watch_of_a_job_that_was_just_deleted(
    client: FakeClient, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    """When the job is deleted between the first look at it and the watch, the watch ends as well."""
    monkeypatch.setenv("TERM", "xterm")
    client.add(train_job("a", state="Running"))
    listed = client.get

    async def get_and_delete(*args: Any) -> Object:
        job = await listed(*args)
        client.remove(TRAIN_JOBS, "a", "default")
        return job

    monkeypatch.setattr(client, "get", get_and_delete)
    async with watching(client, clock, screen(terminal=terminal), name="a") as codes:
        await clock.advance(1)

    assert codes == [1]


async def test_live_table(client: FakeClient, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal the table is drawn again when something has changed, in the order of names, and ages tick."""
    monkeypatch.setenv("TERM", "xterm")
    client.add(aged(clock, 5, train_job("b", state="Created")))
    console = screen(terminal=True)
    async with watching(client, clock, console):
        client.add(aged(clock, 5, train_job("a", state="Running")))
        await clock.advance(3)

    last = text_of(console).rpartition("NAME")[2]
    assert last.index("a ") < last.index("b ")
    assert "9s" in last


async def test_watch_tells_what_keeps_it(
    client: FakeClient, clock: ManualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    """A watch that is refused for some time says so once, and goes on trying."""
    client.add(train_job("a", state="Created"))
    report = Report(GetFormat.TABLE, screen(), clock, namespace="default", is_watch=True)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(report.watch, client)
        client.faults.fail(ForbiddenError(403, "trainjobs is forbidden: cannot watch"), verb="watch", times=100)
        await clock.advance(60)
        tasks.cancel_scope.cancel()

    assert capsys.readouterr().err.count("trainjobs is forbidden: cannot watch") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        pytest.param(
            "get nope", 1, "there is no TrainJob nope in namespace default: there are: a, b", id="no such job"
        ),
        pytest.param(
            "get nope -n empty",
            1,
            "there is no TrainJob nope in namespace empty: there are none in it (see: trainer get -A)",
            id="empty namespace",
        ),
        pytest.param(
            "get a -A", 2, "--all-namespaces cannot be combined with a NAME or with --namespace", id="name and -A"
        ),
        pytest.param("get -o xml", 2, "'--output'", id="unknown form"),
    ],
)
def test_bad_questions(served: FakeClient, cluster: None, arguments: str, code: int, complaint: str) -> None:
    """What cannot be answered gets one clear line on standard error."""
    for name in ("a", "b"):
        served.add(train_job(name))

    result = CliRunner().invoke(app, arguments)

    assert result.exit_code == code
    assert result.stderr.startswith("error: ")
    assert complaint in result.stderr
    assert result.stderr.count("\n") == 1
    assert not result.stdout


def test_command_line(served: FakeClient, cluster: None) -> None:
    """The command prints the table, objects without managedFields, and names."""
    job = train_job("a", state="Running")
    served.add({**job, "metadata": {**job["metadata"], "managedFields": [{"manager": "x"}]}})
    invoke = CliRunner().invoke

    assert invoke(app, "get").stdout.splitlines()[1].split()[:2] == ["a", "Running"]
    assert "managedFields" not in invoke(app, "get -A -o yaml").stdout
    assert [job["metadata"]["name"] for job in json.loads(invoke(app, "get -o json").stdout)["items"]] == ["a"]
    assert yaml.safe_load(invoke(app, "get a -o yaml").stdout)["kind"] == "TrainJob"
    assert invoke(app, "get -A -o name").stdout == "trainjob.trainer.kubeflow.org/a\n"
    empty = invoke(app, "get -n empty")
    assert (empty.exit_code, empty.stdout) == (0, "")
    assert empty.stderr == "note: there are no TrainJobs in namespace empty\n"


def test_cluster_without_trainjobs(served: FakeClient, cluster: None) -> None:
    """A cluster that has no TrainJobs is reported with the remedy."""
    served.withdraw(TRAIN_JOBS)
    for arguments in ("get", "get a", "logs a", "metrics a"):
        result = CliRunner().invoke(app, arguments)

        assert result.exit_code == 1
        assert "trainer crds | kubectl apply" in result.stderr


def counted(**counts: int) -> Object:
    """The counts of a replicated Job."""
    return {"name": "node", "ready": 0, "active": 0, "succeeded": 0, "failed": 0, "suspended": 0} | counts


@pytest.mark.parametrize(
    ("counts", "nodes", "line"),
    [
        pytest.param(counted(active=1, ready=1), None, "node: 2 nodes, all ready", id="ready"),
        pytest.param(counted(), None, "node: no Jobs now", id="none"),
        pytest.param(counted(active=2, ready=1), None, "node: 2 Jobs, 2 active, 1 of 2 ready", id="several Jobs"),
        pytest.param(
            counted(active=1, ready=1) | {"name": "dataset-initializer"},
            None,
            "dataset-initializer: all ready",
            id="not the nodes",
        ),
        pytest.param(counted(active=1, ready=1), 1, "node: 1 node, all ready", id="fewer nodes of an elastic training"),
    ],
)
async def test_jobs(client: FakeClient, clock: ManualClock, counts: Object, nodes: int | None, line: str) -> None:
    """One Job has all nodes, so that people read how many there are, and how these are doing."""
    job = train_job("demo", state="Running", jobsStatus=[counts], scale={"nodes": nodes})
    assert (await shown(client, clock, job | {"spec": job["spec"] | {"trainer": {"numNodes": 2}}}))[-1] == (
        f"Jobs          {line}"
    )


@pytest.mark.parametrize(
    ("kind", "status", "message", "line"),
    [
        pytest.param("Created", "True", "Succeeded to create Jobs", "", id="created"),
        pytest.param(
            "Created",
            "True",
            "Succeeded to create Jobs; the cluster has rejected a change: no",
            "Conditions    Created (Because): Succeeded to create Jobs; the cluster has rejected a change: no",
            id="a later change is not applied",
        ),
        pytest.param("Suspended", "False", "TrainJob is resumed", "", id="resumed"),
    ],
)
async def test_conditions_that_are_news(
    client: FakeClient, clock: ManualClock, kind: str, status: str, message: str, line: str
) -> None:
    """Where the Jobs are not as the TrainJob asks for, its condition is shown."""
    said = {"type": kind, "status": status, "reason": "Because", "message": message}
    lines = await shown(client, clock, train_job("demo", state="Running", conditions=[said]))
    assert [each for each in lines if "Conditions" in each] == [line] * bool(line)


@pytest.mark.parametrize(
    ("revision", "shown"),
    [
        pytest.param("0123456789abcdef", "commit 0123456789abcdef", id="commit"),
        pytest.param("0123456789abcdef-dirty", "commit 0123456789abcdef, with local changes", id="dirty"),
    ],
)
async def test_code(client: FakeClient, clock: ManualClock, revision: str, shown: str) -> None:
    """The revision of the code is among the details of a job."""
    job = train_job("demo", state="Complete")
    job["metadata"]["annotations"] = {"trainer.kubeflow.org/git-revision": revision}
    client.add(job)
    console = screen(terminal=True)

    await Report(GetFormat.TABLE, console, clock, name="demo", namespace="default").show(client)

    assert f"Code          {shown}" in text_of(console).splitlines()
