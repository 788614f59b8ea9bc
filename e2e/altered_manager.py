"""A program of the tests: the manager on a machine whose clock is wrong, as a later build would have it, or in a hurry.

`python altered_manager.py [--clock-offset SECONDS] [--build NAME] [--certificate-poll SECONDS] manager ARGUMENTS...`
"""

from __future__ import annotations

import argparse
from datetime import datetime, timedelta
from unittest.mock import patch

from trainer.api.trainjob import TrainJob
from trainer.cli.app import app
from trainer.framework import RuntimeInfo
from trainer.kube.clock import SystemClock
from trainer.kube.objects import Object
from trainer.kube.serving import rotation
from trainer.plugins.jobset import builder, plugin

BUILD = "BUILD"
"""Environment variable that a later build gives to all containers."""


def shift_clock(seconds: float) -> None:
    """Have the clock of this process tell another time; what it measures stays right."""
    tell = SystemClock.now

    def now(clock: SystemClock) -> datetime:
        return tell(clock) + timedelta(seconds=seconds)

    patch.object(SystemClock, "now", now).start()


def change_build(name: str) -> None:
    """Have all JobSets built with one more variable and one more label, as after a change of a default."""

    def build_jobset(info: RuntimeInfo, train_job: TrainJob) -> Object:
        jobset = builder.build_jobset(info, train_job)
        jobset["metadata"].setdefault("labels", {})[BUILD.lower()] = name
        for job in jobset["spec"]["replicatedJobs"]:
            for container in job["template"]["spec"]["template"]["spec"]["containers"]:
                container.setdefault("env", []).append({"name": BUILD, "value": name})
        return jobset

    patch.object(plugin, "build_jobset", build_jobset).start()


def poll_certificates(seconds: float) -> None:
    """Have it look at the Secret with its certificates so often, and not once a minute."""
    patch.object(rotation, "POLL_SECONDS", seconds).start()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--clock-offset", type=float, default=0)
    parser.add_argument("--build", default="")
    parser.add_argument("--certificate-poll", type=float, default=0)
    own, rest = parser.parse_known_args()
    if own.clock_offset:
        shift_clock(own.clock_offset)
    if own.build:
        change_build(own.build)
    if own.certificate_poll:
        poll_certificates(own.certificate_poll)
    app(rest, prog_name="trainer")


if __name__ == "__main__":
    main()
