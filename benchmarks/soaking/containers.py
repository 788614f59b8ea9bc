"""What the containers of fake pods print: the progress of a training, in the files where the cluster reads logs."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import anyio
from anyio.to_thread import run_sync

from benchmarks.soaking.trainings import CONTAINER, Trainings
from trainer.kube.objects import Object
from trainer.progress.report import TAG
from trainer_devcluster.log_paths import log_path

_PERIOD: Final = 1.0
_STEPS: Final = 100


class Containers:
    """Writes a line a second for each pod that runs, and removes what pods have written that are gone."""

    def __init__(self, data: Path, trainings: Trainings) -> None:
        self._data, self._trainings = data, trainings
        self.lines: Counter[str] = Counter()
        """That were written, by the uid of pods."""
        self.total = 0

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            pods = dict(self._trainings.running)
            await run_sync(self._write, pods)
            await anyio.sleep(_PERIOD)

    def _write(self, pods: Mapping[str, Object]) -> None:
        for uid in [uid for uid in self.lines if uid not in pods]:
            del self.lines[uid]
            shutil.rmtree(self._data / "pods" / uid, ignore_errors=True)
        for uid, pod in pods.items():
            self.lines[uid] += 1
            self.total += 1
            statuses = (pod.get("status") or {}).get("containerStatuses") or [{}]
            path = log_path(self._data, uid, CONTAINER, int(statuses[0].get("restartCount") or 0))
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a") as log:
                log.write(_entries(self.lines[uid]))


def _entries(number: int) -> str:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
    step = min(number * 10, _STEPS)
    message = {
        "progressPercentage": step,
        "currentStep": step,
        "totalSteps": _STEPS,
        "trainMetrics": {"loss": round(1 / number, 4), "learning_rate": 0.001},
    }
    return f"{now} stdout F {TAG} {json.dumps(message)}\n{now} stdout F step {step} of {_STEPS}\n"
