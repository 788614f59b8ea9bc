"""CronJobs."""

from __future__ import annotations

from typing import Any

import pytest

from devcluster.tests.apiserver.kinds.context import created
from trainer_devcluster.apiserver.kinds.cron_job import CronJobStrategy

Object = dict[str, Any]


def make_cron_job(name: str = "j", **spec: Any) -> Object:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    job = {"spec": {"template": {"spec": pod}}}
    return {"metadata": {"name": name}, "spec": {"schedule": "*/5 * * * 1-5", "jobTemplate": job} | spec}


def test_defaults() -> None:
    """The specification is filled in; that of the Jobs to come is not."""
    obj, causes = created(CronJobStrategy(), make_cron_job())
    assert causes == []
    assert obj["status"] == {}
    job = obj["spec"].pop("jobTemplate")
    assert set(job["spec"]) == {"template"}
    assert obj["spec"] == {
        "schedule": "*/5 * * * 1-5", "concurrencyPolicy": "Allow", "suspend": False, "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(make_cron_job(schedule=""), "spec.schedule: Required value", id="no schedule"),
        pytest.param(
            make_cron_job(schedule="5 *"),
            'spec.schedule: Invalid value: "5 *": expected exactly 5 fields, found 2: [5 *]',
            id="two fields",
        ),
        pytest.param(
            make_cron_job(schedule="61 * * * *"),
            'spec.schedule: Invalid value: "61 * * * *": end of range (61) above maximum (59): 61',
            id="minute",
        ),
        pytest.param(
            make_cron_job(schedule="a * * * *"),
            'spec.schedule: Invalid value: "a * * * *": failed to parse int from a: strconv.Atoi: parsing "a": invalid '
            "syntax",
            id="no number",
        ),
        pytest.param(
            make_cron_job(schedule="TZ=UTC 0 * * * *"),
            'spec.schedule: Invalid value: "TZ=UTC 0 * * * *": cannot use TZ or CRON_TZ in schedule, use timeZone '
            "field instead",
            id="zone in the schedule",
        ),
        pytest.param(
            make_cron_job(timeZone="Mars/Base"),
            'spec.timeZone: Invalid value: "Mars/Base": unknown time zone Mars/Base',
            id="zone",
        ),
        pytest.param(
            make_cron_job(concurrencyPolicy="Maybe"),
            'spec.concurrencyPolicy: Unsupported value: "Maybe": supported values: "Allow", "Forbid", "Replace"',
            id="policy",
        ),
        pytest.param(
            make_cron_job("a" * 53),
            f'metadata.name: Invalid value: "{"a" * 53}": must be no more than 52 characters',
            id="long name",
        ),
    ],
)
def test_wrong_cron_jobs_are_refused(obj: Object, expected: str) -> None:
    """The cause has the text of the real server."""
    assert [str(cause) for cause in created(CronJobStrategy(), obj)[1]] == [expected]


@pytest.mark.parametrize("schedule", ["@daily", "@every 1h30m", "0 0 1 jan sun", "0-30/5,45 * ? * *"])
def test_schedules(schedule: str) -> None:
    """Names, steps, lists and descriptors are read."""
    assert created(CronJobStrategy(), make_cron_job(schedule=schedule))[1] == []
