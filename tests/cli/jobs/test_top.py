"""`trainer top`."""

from __future__ import annotations

import anyio
import pytest
from rich.console import Console
from typer.testing import CliRunner

from tests.cli.conftest import screen, text_of, train_job
from trainer.cli.app import app
from trainer.cli.jobs.top import Top
from trainer.kube.objects import Object
from trainer_kube_testing import FakeClient, ManualClock

LEAVE_ALTERNATE_SCREEN = "\x1b[?1049l"


def training(name: str, seconds: int) -> dict[str, object]:
    """A TrainJob that runs for so long."""
    status = {"estimatedRemainingSeconds": seconds, "estimatedRemainingTimeSummary": f"{seconds} seconds"}
    return train_job(name, state="Running", trainerStatus=status)


def created(time: str, job: Object) -> Object:
    """The TrainJob with such an age."""
    job["metadata"]["creationTimestamp"] = time
    return job


@pytest.mark.usefixtures("cluster")
def test_order(served: FakeClient) -> None:
    """Those that train come first, the next to end on top; then those that wait, and those that have ended last."""
    ended: Object = {"state": "Complete", "conditions": [{"type": "Complete", "status": "True"}]}
    for job in (
        created("2026-01-01T00:00:00Z", train_job("done", **ended)),
        created("2026-01-02T00:00:00Z", train_job("done-later", **ended)),
        train_job("strange", state="Odd\x1b[2J"),
        train_job("waits", state="Pending"),
        train_job("silent", state="Running"),
        training("long", 5000),
        training("short", 30),
    ):
        served.add(job)

    first, blank, header, *lines = CliRunner().invoke(app, "top").stdout.splitlines()

    assert first == "7 TrainJobs: 3 Running, 1 Pending, 1 Odd\\x1b[2J, 2 Complete"
    assert (blank, header.split()[:3]) == ("", ["NAMESPACE", "NAME", "STATE"])
    assert [line.split()[1] for line in lines] == ["short", "long", "silent", "waits", "strange", "done-later", "done"]
    other = CliRunner().invoke(app, "top -n team").stdout.splitlines()
    assert other[0] == "0 TrainJobs"


async def last_screen(client: FakeClient, clock: ManualClock, console: Console) -> list[str]:
    """What stands on the screen after a change and a second, and after what begins it."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Top(console, clock, "default").run, client)
        await clock.advance(0)
        client.add(train_job("job-0", state="Failed", conditions=[{"type": "Failed", "status": "True"}]))
        await clock.advance(2)
        before_end = text_of(console)
        tasks.cancel_scope.cancel()
    assert LEAVE_ALTERNATE_SCREEN in text_of(console)
    return before_end.rpartition("\x1b[H")[2].splitlines()


async def test_whole_screen(client: FakeClient, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """The screen is never larger than the terminal, says what it leaves out, and goes when the command ends."""
    monkeypatch.setenv("TERM", "xterm")
    for number in range(30):
        reported = {"trainMetrics": {"training_loss": "0.234712"}, "lastUpdatedTime": "2025-01-01T00:00:00Z"}
        silence = {"estimatedRemainingTimeSummary": "no report since 00:00 UTC", "progressPercentage": 45}
        client.add(train_job(f"job-{number}", state="Running", trainerStatus=reported | silence))
    console = screen(terminal=True)
    console.size = (80, 12)

    lines = [line.rstrip() for line in await last_screen(client, clock, console)]

    assert lines[0] == "30 TrainJobs: 29 Running, 1 Failed"
    assert len(lines) == 12
    assert lines[11] == "and 22 more"
    assert max(map(len, lines)) <= 80
    assert all("training_loss 0.2347" in line for line in lines[3:11])
    assert not any(line.startswith("job-0 ") for line in lines)
