"""A model of a cluster in which everything happens to a sweep at random: in the end it has what it was asked for.

The test plays the user, the controller of TrainJobs, the garbage collector and the network, and kills the manager at
any instant. What the server has stored in all that time is replayed afterwards.
"""

from __future__ import annotations

import heapq
import random as global_random
from collections.abc import Callable, Mapping
from contextlib import suppress
from random import Random
from typing import Any, Final, TypeAlias

import pytest

from packages.sweeps.tests.controllers.cluster import Cluster, parameters
from packages.sweeps.tests.jobs import sweep_object
from trainer.api.optimization import PRUNED, TRIAL_LABEL, assignment_of
from trainer.kube.client import DeleteOptions, Propagation
from trainer.kube.errors import ApiError
from trainer.kube.objects import Object, annotations_of, is_being_deleted, is_condition_true, labels_of, name_of, uid_of
from trainer_kube_testing import settle, statuses

TRIALS: Final = 8
PARALLEL: Final = 3
LONG: Final = 2000.0
"""Seconds after which every retry has had its turn, and every watch was opened anew."""

Step: TypeAlias = tuple[str, int, Any]
"""What happens, to which of the trials that run, and how."""

WEIGHTS: Final = {
    "complete": 8,
    "fail": 2,
    "report": 3,
    "hopeless": 2,
    "delete": 2,
    "delete in the foreground": 1,
    "delete what has ended": 1,
    "collect": 2,
    "suspend": 1,
    "resume": 2,
    "suspend one": 1,
    "resume one": 1,
    "settle": 8,
    "wait": 3,
    "refuse": 3,
    "lose answer": 3,
    "hold": 2,
    "hold watches": 2,
    "release": 3,
    "break watches": 1,
    "restart": 3,
}
"""How often each step comes."""

ERRORS: Final[tuple[Callable[[], ApiError], ...]] = (
    statuses.too_many_requests,
    statuses.internal_error,
    statuses.unavailable,
    statuses.timeout,
    lambda: statuses.failure(403, "Forbidden", "exceeded quota"),
)


class World(Cluster):
    """A cluster in which something happens."""

    async def play(self, step: str, number: int, value: Any) -> None:
        """Play one event; nothing happens if there is no trial to which it could."""
        chosen = self.of_running(number)
        with suppress(ApiError):
            match step:
                case "complete" if chosen:
                    await self.end(chosen, value)
                case "fail" if chosen:
                    await self.end(chosen, None)
                case "report" if chosen:
                    await self.report(chosen, (1, value))
                case "hopeless" if chosen:
                    await self.report(chosen, (1, value), (2, "11"))
                case "delete" if chosen:
                    await self.user.delete(self.train_jobs, f"demo-trial-{chosen}", "default")
                case "delete in the foreground" if chosen:
                    options = DeleteOptions(propagation=Propagation.FOREGROUND)
                    await self.user.delete(self.train_jobs, f"demo-trial-{chosen}", "default", options)
                case "suspend one" if chosen:
                    await self.suspend(chosen)
                case "resume one" if chosen:
                    await self.suspend(chosen, suspend=False)
                case "delete what has ended":
                    for trial in self.user.objects(self.train_jobs):
                        if not is_active(trial) and "state" in self.status:
                            await self.user.delete(self.train_jobs, name_of(trial), "default")
                            break
                case "suspend" | "resume" if "state" in self.status:
                    await self.user.patch(self.sweeps, "demo", {"spec": {"suspend": step == "suspend"}}, "default")
                case _:
                    await self.disturb(step, value)

    async def disturb(self, step: str, value: Any) -> None:
        """What befalls the manager itself, or its connections."""
        faults = self.client.faults
        match step:
            case "wait":
                await self.pass_time(value)
            case "settle":
                await settle()
            case "collect":
                self.collect()
            case "refuse":
                verb, error = value
                faults.fail(error(), verb=verb)
            case "lose answer":
                faults.lose_answer(verb=value)
            case "hold":
                verb, answers = value
                faults.hold(verb=verb, answers=answers)
            case "hold watches":
                faults.hold_watches(self.train_jobs if value else self.sweeps)
            case "release":
                faults.release()
            case "break watches":
                if value:
                    self.client.compact()
                faults.drop_watches(statuses.expired() if value else None)
            case "restart":
                await self.start()
            case _:
                pass  # there is no trial to which it could happen

    def of_running(self, number: int) -> int | None:
        """The number of one of the trials that run."""
        found = [int(labels_of(each)[TRIAL_LABEL]) for each in self.user.objects(self.train_jobs) if is_active(each)]
        return found[number % len(found)] if found else None

    def collect(self) -> None:
        """The garbage collector removes what is deleted in the foreground."""
        for trial in self.user.objects(self.train_jobs):
            if is_being_deleted(trial):
                self.user.remove(self.train_jobs, name_of(trial), "default")

    async def calm_down(self) -> None:
        """Nothing goes wrong any more, and all trials come to their end."""
        self.client.faults.clear()
        self.collect()
        if "state" in self.status:
            await self.change(suspend=False)
        await self.pass_time(LONG)
        for _ in range(3 * TRIALS):
            for trial in self.user.objects(self.train_jobs):
                if is_active(trial):
                    await self.end(int(labels_of(trial)[TRIAL_LABEL]), "0.5")
            await self.pass_time(70)


def is_active(trial: Object) -> bool:
    """Whether a trial counts as one that runs."""
    has_ended = any(is_condition_true(trial, each) for each in ("Complete", "Failed"))
    return not has_ended and PRUNED not in annotations_of(trial)


def replay(world: World) -> None:
    """At no moment there were too many trials, and no number was begun again once its end was in the status."""
    active: dict[str, Object] = {}
    recorded: set[int] = set()
    storage = world.user.fake_server.storage
    histories = (storage.collection(resource).history for resource in (world.train_jobs, world.sweeps))
    for change in heapq.merge(*histories, key=lambda each: each.version):
        before, after = (None if each is None else each.obj for each in (change.before, change.after))
        if change.sent.obj["kind"] == "OptimizationJob":
            trials = ((after or {}).get("status") or {}).get("trials") or []
            numbers = {each["number"] for each in trials}
            assert recorded <= numbers, "no end is forgotten"
            recorded = numbers
            continue
        uid = uid_of(change.sent.obj)
        active.pop(uid, None)
        if after is not None and is_active(after):
            active[uid] = after
        assert len(active) <= PARALLEL, sorted(map(name_of, active.values()))
        if before is None and after is not None:
            number = int(labels_of(after)[TRIAL_LABEL])
            assert number not in recorded, f"trial {number} has ended"
            assert 1 <= number <= TRIALS
            check_parameters(number, assignment_of(annotations_of(after)))


def check_parameters(number: int, assignment: Mapping[str, str]) -> None:
    """The same seed gives the same trial, however often it is made."""
    assert assignment == parameters(number)


def check(world: World) -> None:
    """The sweep is complete, and has all its trials."""
    assert world.conditions["Complete"] == ("True", "MaxTrialsReached"), world.status
    if "state" not in world.status:
        return  # the API server keeps no more
    trials = world.status["trials"]
    assert [each["number"] for each in trials] == list(range(1, TRIALS + 1))
    assert world.status["progressPercentage"] == 100
    for each in trials:
        check_parameters(each["number"], dict(zip(("lr", "optimizer"), each["parameterValues"], strict=True)))
    best = min((float(each["value"]), each["number"]) for each in trials if each["state"] == "Succeeded")
    assert world.status["result"]["trainJobName"] == f"demo-trial-{best[1]}"


async def scenario(world: World, steps: list[Step]) -> None:
    """Everything happens, then nothing more; the manager has nothing to do, and neither has another one."""
    spec: dict[str, Any] = {"numTrials": TRIALS, "parallelTrials": PARALLEL, "pruneAlgorithm": {"asha": {}}}
    world.user.add(sweep_object(version=world.version, **spec))
    async with world.managed():
        for step in steps:
            await world.play(*step)
        await world.calm_down()
        check(world)
        replay(world)
        for _ in range(2):
            world.client.requests.clear()
            await world.pass_time(LONG)
            assert [each for each in world.requests if each.verb != "list"] == []
            await world.start()


def value_of(step: str, random: Random) -> Any:
    """How a step is done."""
    match step:
        case "complete" | "report" | "hopeless":
            return f"{random.random():.2f}"
        case "wait":
            return random.choice([0.01, 1, 31, 61, 400])
        case "refuse":
            return random.choice(["create", "patch", "get", "list"]), random.choice(ERRORS)
        case "lose answer":
            return random.choice(["create", "patch"])
        case "hold":
            return random.choice(["create", "patch", "get"]), random.random() < 0.5
        case "hold watches" | "break watches":
            return random.random() < 0.5
    return None


def steps_of(seed: int) -> list[Step]:
    """A story; some things never happen in it, so that others come more often."""
    random = Random(seed)
    never = random.sample(sorted(WEIGHTS.keys() - {"complete", "settle"}), random.randrange(8))
    kinds = {step: weight for step, weight in WEIGHTS.items() if step not in never}
    chosen = random.choices(list(kinds), list(kinds.values()), k=random.randrange(20, 60))
    return [(step, random.randrange(TRIALS), value_of(step, random)) for step in chosen]


@pytest.mark.parametrize("seed", range(30))
async def test_a_sweep_has_all_its_trials_in_the_end(seed: int) -> None:
    """Each trial has ended once, never were there too many, the same seed gave the same ones, no request is left."""
    # Pauses are drawn from the generator of the process.
    global_random.seed(seed)
    worlds = (World(), World("v1alpha1"), World("v1alpha1", keeps=False))
    await scenario(worlds[seed % 3], steps_of(seed))
