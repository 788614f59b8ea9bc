"""The sweep that `trainer.sweep` returns, for scripts and notebooks."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from html import escape
from typing import Self, TypeVar

from rich.console import Console

from trainer.api.metric_curve import number_of
from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.cli.console import output, printable
from trainer.cli.current_cluster import ConnectedCluster
from trainer.cli.errors import GoneError
from trainer.cli.jobs.find import find_object, list_train_jobs
from trainer.cli.run.submitted_job import on_cluster
from trainer.cli.run.sweep_api import SweepFailedError, SweepStatus, SweepTrial
from trainer.kube.clock import SystemClock, move_on_after
from trainer.kube.objects import Object, name_of, namespace_of, uid_of
from trainer.kube.rest.connection import ConnectionOptions
from trainer_sweeps.api.optimizationjob import State, TrialState
from trainer_sweeps.commands.changes import delete_sweep, set_suspend
from trainer_sweeps.commands.follow import follow_to_end
from trainer_sweeps.commands.parameters import typed
from trainer_sweeps.commands.show import SEE
from trainer_sweeps.commands.view import SweepView, trials_of, word_of
from trainer_sweeps.trials.trial import Trial

_Answer = TypeVar("_Answer")


class TrackedSweep:
    """See `trainer.cli.run.sweep_api.SubmittedSweep`."""

    def __init__(self, connection: ConnectionOptions, sweep: Object) -> None:
        self._connection = connection
        self._sweep = sweep

    @property
    def name(self) -> str:
        """Its name."""
        return name_of(self._sweep)

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return namespace_of(self._sweep)

    def status(self) -> SweepStatus:
        """See `SubmittedSweep`."""
        view = self._call(self._view)
        return SweepStatus(
            state=view.state,
            message=view.message,
            trials=view.total,
            running=view.count(TrialState.RUNNING),
            succeeded=view.count(TrialState.SUCCEEDED),
            failed=view.count(TrialState.FAILED),
            pruned=view.count(TrialState.PRUNED),
            remaining_seconds=view.remaining_seconds,
        )

    def trials(self) -> list[SweepTrial]:
        """See `SubmittedSweep`."""
        return [_trial(each.trial) for each in self._call(self._view).trials]

    def best(self) -> SweepTrial | None:
        """See `SubmittedSweep`."""
        found = self._call(self._view).best
        return None if found is None else _trial(found)

    def wait(self, timeout: float | None = None, *, follow: bool = False) -> Self:
        """See `SubmittedSweep`."""

        async def end(cluster: ConnectedCluster) -> None:
            clock, view = SystemClock(), None
            sweep = await self._find(cluster)
            console = output() if follow else Console(quiet=True, force_jupyter=False, force_interactive=False)
            async with move_on_after(clock, timeout) as scope:
                view = await follow_to_end(cluster, sweep, console, clock)
            if scope.cancelled_caught:
                raise TimeoutError(f"sweep {self.name} has not ended after {timeout:g} s: it is {word_of(sweep)}")
            if view is None:
                raise GoneError(f"sweep {self.name} was deleted before it has ended")
            self._sweep = view.obj
            if view.state != State.COMPLETE:
                raise SweepFailedError(f"sweep {self.name} has failed: {printable(view.message)}")

        self._call(end)
        return self

    def suspend(self) -> None:
        """See `SubmittedSweep`."""
        self._set_suspend(suspend=True)

    def resume(self) -> None:
        """See `SubmittedSweep`."""
        self._set_suspend(suspend=False)

    def delete(self) -> None:
        """See `SubmittedSweep`."""

        async def delete(cluster: ConnectedCluster) -> None:
            await delete_sweep(cluster, await self._find(cluster))

        self._call(delete)

    def _set_suspend(self, *, suspend: bool) -> None:
        async def change(cluster: ConnectedCluster) -> None:
            await set_suspend(cluster, await self._find(cluster), suspend=suspend)

        self._call(change)

    async def _view(self, cluster: ConnectedCluster) -> SweepView:
        sweep = await self._find(cluster)
        jobs = await list_train_jobs(cluster.client, trials_of(self.name, self.namespace))
        return SweepView.of(sweep, jobs, SystemClock().now())

    async def _find(self, cluster: ConnectedCluster) -> Object:
        resource = cluster.served.resource(OPTIMIZATION_JOBS)
        sweep = await find_object(cluster.client, self.name, self.namespace, resource, see=SEE)
        if uid_of(sweep) != uid_of(self._sweep):
            raise GoneError(f"sweep {self.name} was deleted, and there is another one of its name")
        self._sweep = sweep
        return sweep

    def _call(self, work: Callable[[ConnectedCluster], Awaitable[_Answer]]) -> _Answer:
        return on_cluster(self._connection, work)

    def __repr__(self) -> str:
        """With the state that was seen last, without a request."""
        return f"SubmittedSweep(name={self.name!r}, namespace={self.namespace!r}, state={word_of(self._sweep)!r})"

    def _repr_html_(self) -> str:
        """For notebooks: the state that was seen last, without a request."""
        name, namespace, state = map(escape, (self.name, self.namespace, word_of(self._sweep)))
        return f"<div><strong>{name}</strong> in {namespace}: {state}</div>"


def _trial(trial: Trial) -> SweepTrial:
    number = number_of(trial.value) if trial.value is not None else math.nan
    return SweepTrial(
        number=trial.number,
        name=trial.name,
        state=str(trial.state.value),
        parameters={name: typed(text) for name, text in trial.assignment.items()},
        value=number if math.isfinite(number) else None,
        message=trial.message or "",
        started=trial.started,
        ended=trial.ended,
    )
