"""A manager that serves OptimizationJobs on a fake API server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any, Literal

import anyio
import msgspec

from packages.sweeps.tests.jobs import curve_text, sweep_object
from trainer.api.metric_curve import CURVE
from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.client import Client, ObjectRequest, Verb
from trainer.kube.clock import timestamp
from trainer.kube.errors import ShutdownError
from trainer.kube.manager.manager import Manager, ManagerOptions
from trainer.kube.objects import Object, annotations_of, name_of, resource_version_of, set_condition
from trainer.kube.resource import EVENTS, Resource
from trainer.v1alpha1.client import SERVED
from trainer.v1alpha1.discovery import Served
from trainer_kube_testing import FakeClient, ManualClock, RecordedRequest, settle
from trainer_sweeps.api.optimizationjob import OptimizationJobSpec
from trainer_sweeps.controllers.choice import Choice
from trainer_sweeps.controllers.controller import JOINED
from trainer_sweeps.controllers.metrics import SweepSeries
from trainer_sweeps.controllers.serving import serve_sweeps
from trainer_sweeps.search.history import PastTrial

Version = Literal["v1alpha1", "v2alpha1"]
WORKLOADS = Resource("kueue.x-k8s.io", "v1beta2", "workloads", "Workload")


def suggest(spec: OptimizationJobSpec, seed: int, history: Sequence[PastTrial], number: int) -> Mapping[str, str]:
    """A random search: nothing but seed and number counts."""
    drawn = Random(f"{seed} {number}")
    return {"lr": f"{drawn.random():.3f}", "optimizer": drawn.choice(["sgd", "adam"])}


def parameters(number: int) -> Mapping[str, str]:
    """The parameters of a trial of the sweep of the samples."""
    return suggest(OptimizationJobSpec.from_object(sweep_object()["spec"]), 7, [], number)


def prune_reason(spec: OptimizationJobSpec, trial: PastTrial, others: Sequence[PastTrial]) -> str | None:
    """Whatever has reported more than 10 is hopeless."""
    return "more than 10" if trial.points and trial.points[-1][1] > 10 else None


class ForgetfulClient(FakeClient):
    """A server with the definition of Kubeflow Trainer (Go), which drops what it does not know of a status."""

    async def send(self, request: ObjectRequest) -> Object | None:
        """See `Client.send`."""
        if request.subresource == "status" and request.resource.plural == OPTIMIZATION_JOBS.plural:
            assert request.verb is not Verb.APPLY, "fields that are not declared in the schema are refused"
            patch: Any = request.body
            change = patch[-1]
            status = {name: value for name, value in change["value"].items() if name in {"conditions", "result"}}
            if "result" in status:
                status["result"] = {name: value for name, value in status["result"].items() if name != "value"}
            change["value"] = status
        return await super().send(request)


class Cluster:
    """A fake API server; tests play the user, and the controller of TrainJobs."""

    def __init__(self, version: Version = "v2alpha1", *, keeps: bool = True, served: bool = True) -> None:
        self.version: Version = version
        self.clock = ManualClock()
        self.sweeps = msgspec.structs.replace(OPTIMIZATION_JOBS, version=version)
        self.train_jobs = SERVED[TRAIN_JOBS] if version == "v1alpha1" else TRAIN_JOBS
        resources = [self.train_jobs, WORKLOADS, *([self.sweeps] if served else [])]
        make = FakeClient if keeps else ForgetfulClient
        self.client: FakeClient = make(resources=resources, clock=self.clock)
        self.user = self.client.peer()
        self.managers: list[Manager] = []
        self.suggest = suggest
        self._tasks: anyio.abc.TaskGroup | None = None
        self._running: anyio.CancelScope | None = None

    @asynccontextmanager
    async def managed(self) -> AsyncIterator[None]:
        """Run managers, one after the other; the first has done all it can when the body starts."""
        async with anyio.create_task_group() as self._tasks:
            await self.start()
            yield
            self._tasks.cancel_scope.cancel()

    async def start(self) -> None:
        """A new process; that before is killed, and what it was about to do it does no more."""
        assert self._tasks is not None
        if self._running is not None:
            self.client.faults.partition()
            self._running.cancel()
            self.client = type(self.client)(fake_server=self.client.fake_server)
            await settle()
        client: Client = Served(self.version, is_extended=False).client(self.client)
        manager = Manager(client, clock=self.clock, options=ManagerOptions(graceful_shutdown_timeout=0))
        choice = Choice(self.clock, manager.metrics.series(SweepSeries), self.suggest, prune_reason)
        serve_sweeps(manager, version=self.version, choice=choice)
        self.managers.append(manager)
        self._running = anyio.CancelScope()
        self._tasks.start_soon(self._run, manager, self._running)
        await settle()

    async def _run(self, manager: Manager, scope: anyio.CancelScope) -> None:
        with scope, suppress(ShutdownError):
            await manager.run()

    async def put(self, *objects: Object) -> None:
        """Somebody else writes objects, and the manager does all that follows."""
        for obj in objects:
            self.user.add(obj)
        await settle()

    async def change(self, **spec: Any) -> None:
        """The user changes the spec of the sweep."""
        await self.user.patch(self.sweeps, name_of(self.sweep), {"spec": spec}, "default")
        await settle()

    async def pass_time(self, seconds: float) -> None:
        """Time passes."""
        await self.clock.advance(seconds)
        await settle()

    async def report(self, number: int, *points: tuple[int, str], is_final: bool = False) -> None:
        """The manager writes the curve of a trial."""
        trial = self.trial(number)
        curve = {CURVE: curve_text(*points, is_final=is_final)}
        metadata = trial["metadata"] | {"annotations": annotations_of(trial) | curve}
        await self.put(trial | {"metadata": metadata})
        if not is_final:
            await self.pass_time(JOINED)

    async def end(self, number: int, value: str | None = "1", *, message: str = "") -> None:
        """A trial completes with a value, or fails without one."""
        if value is not None:
            await self.report(number, (1, value), is_final=True)
        await self.conclude(number, "Complete" if value is not None else "Failed", message)

    async def conclude(self, number: int, type_: str, message: str = "") -> None:
        """The TrainJob of a trial ends."""
        trial = self.trial(number)
        condition = {"type": type_, "status": "True", "reason": "Ended", "message": message}
        present = (trial.get("status") or {}).get("conditions") or []
        conditions = set_condition(present, condition, timestamp(self.clock.now()))
        await self.put(trial | {"status": {"conditions": conditions}})

    async def suspend(self, number: int, *, suspend: bool = True) -> None:
        """The user suspends or resumes one trial by hand."""
        await self.user.patch(self.train_jobs, f"demo-trial-{number}", {"spec": {"suspend": suspend}}, "default")
        await settle()

    async def delete(self, number: int) -> None:
        """The user deletes the TrainJob of a trial."""
        await self.user.delete(self.train_jobs, f"demo-trial-{number}", "default")
        await settle()

    def trial(self, number: int, sweep: str = "demo") -> Object:
        """The TrainJob of a trial."""
        found = self.user.find(self.train_jobs, f"{sweep}-trial-{number}", "default")
        assert found is not None, f"there is no trial {number}"
        return found

    @property
    def trials(self) -> list[str]:
        """Names of the TrainJobs."""
        return [name_of(each) for each in self.user.objects(self.train_jobs)]

    @property
    def suspended(self) -> list[str]:
        """Names of the TrainJobs that are suspended."""
        return [name_of(each) for each in self.user.objects(self.train_jobs) if each["spec"].get("suspend")]

    @property
    def sweep(self) -> Object:
        """The only OptimizationJob."""
        (obj,) = self.user.objects(self.sweeps)
        return obj

    @property
    def status(self) -> Object:
        """Its status."""
        return self.sweep.get("status") or {}

    @property
    def conditions(self) -> dict[str, tuple[str, str]]:
        """Status and reason of its conditions."""
        found = self.status.get("conditions") or []
        return {each["type"]: (each["status"], each["reason"]) for each in found}

    @property
    def events(self) -> list[tuple[str, str, str]]:
        """Type, reason and message of the events about OptimizationJobs, oldest first."""
        events = sorted(self.user.objects(EVENTS), key=lambda event: int(resource_version_of(event)))
        return [
            (event["type"], event["reason"], event["message"])
            for event in events
            if event["involvedObject"]["kind"] == OPTIMIZATION_JOBS.kind
        ]

    @property
    def requests(self) -> list[RecordedRequest]:
        """What the manager of the moment has asked, without its caches and events."""
        own = (each for each in self.client.requests if each.resource != EVENTS)
        return [each for each in own if each.verb != "watch" and not (each.verb == "list" and not each.namespace)]

    def counted(self, name: str, **labels: str) -> float:
        """A counter of the metrics, over all managers that there were."""
        values = (manager.metrics.registry.get_sample_value(name, labels) for manager in self.managers)
        return sum(value or 0 for value in values)
