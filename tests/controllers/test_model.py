"""A model of a cluster in which everything happens at random: whatever came to pass, in the end all is as it should be.

The test plays users, the JobSet controller, the garbage collector and the network. What the server has stored in all
that time is replayed afterwards, so that a wrong state that was corrected later is found as well.
"""

from __future__ import annotations

import heapq
import random as global_random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any, TypeAlias

import anyio
import anyio.lowlevel
import pytest

from tests.configurations import bare
from tests.framework.samples import replicated_job, runtime_object, train_job_object
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.framework.status.status import has_ended
from trainer.kube.errors import ApiError, ShutdownError
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import (
    Object,
    ObjectKey,
    controller_of,
    find_condition,
    is_condition_true,
    key_of,
    name_of,
    namespace_of,
    uid_of,
)
from trainer.kube.resource import CONFIG_MAPS, SECRETS, Resource
from trainer.manager import build_manager
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient, ManualClock, settle, statuses

KEYS = [ObjectKey("default", "a"), ObjectKey("default", "b"), ObjectKey("team", "a"), ObjectKey("team", "c")]
CHILDREN = (JOBSETS, CONFIG_MAPS, SECRETS)
ENDS = ("Completed", "Failed")
COUNTED = {
    "created": "trainer_trainjobs_created_total",
    "Complete": "trainer_trainjobs_completed_total",
    "Failed": "trainer_trainjobs_failed_total",
    "made": "trainer_trainjob_time_to_jobset_seconds_count",
}
TO_THE_END = 100.0
"""Seconds after which every retry has had its turn, every deadline is over and every watch was opened anew."""

Step: TypeAlias = tuple[str, int, Any]
"""What happens, to which of `KEYS`, and how."""


def runtimes(image: str) -> Iterator[Object]:
    """A runtime for most, and one whose TrainJobs get a generated Secret."""
    yield runtime_object(replicated_job("node", {"name": "trainer", "image": image}))
    obj = runtime_object(
        replicated_job("node"), replicated_job("launcher"), policy={"numNodes": 2, "mpi": {"numProcPerNode": 1}}
    )
    yield obj | {"metadata": {"name": "mpi"}}


class World:
    """A cluster; the manager runs in `managed`, and may be replaced at any time."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        resources = (TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES, JOBSETS)
        self.client = FakeClient(*runtimes("first"), resources=resources, clock=self.clock)
        self.others = self.client.peer()
        self.managers: list[Manager] = []
        self.is_exact = True
        """Whether those who count could learn what has been stored: nobody was killed while he wrote."""
        self.loses_answers = False
        self._tasks: anyio.abc.TaskGroup | None = None
        self._running: anyio.CancelScope | None = None

    @asynccontextmanager
    async def managed(self) -> AsyncIterator[None]:
        """Run managers, one after the other."""
        async with anyio.create_task_group() as self._tasks:
            await self.start()
            yield
            self._tasks.cancel_scope.cancel()

    async def start(self) -> None:
        """A new process, once that before has ended, however it did."""
        assert self._tasks is not None
        if self._running is not None:
            # What it was about to do, it does no more.
            self.client.faults.partition()
            self._running.cancel()
            self.client = self.others.peer()
            await settle()
        few = {"groupKindConcurrency": {"TrainJob.trainer.kubeflow.org": 2}, "gracefulShutdownTimeout": "0s"}
        manager = build_manager(self.client, bare(controller=few), clock=self.clock)
        self.managers.append(manager)
        self._running = anyio.CancelScope()
        self._tasks.start_soon(self._run, manager, self._running)
        await settle()

    async def _run(self, manager: Manager, scope: anyio.CancelScope) -> None:
        with scope, suppress(ShutdownError):
            await manager.run()

    async def play(self, step: str, number: int, value: Any) -> None:
        """Play one event; nothing happens if its object does not exist."""
        key = KEYS[number % len(KEYS)]
        with suppress(ApiError):
            match step:
                case "create":
                    obj = train_job_object(key.name, **value)
                    await self.others.create(TRAIN_JOBS, obj | {"metadata": key._asdict()})
                case "change":
                    await self.others.patch(TRAIN_JOBS, key.name, {"spec": value}, key.namespace)
                case "delete":
                    # Of what is gone at the next look nobody can tell what became of the last write.
                    self.is_exact = self.is_exact and not (value == TRAIN_JOBS and self.loses_answers)
                    await self.others.delete(value, value_name(value, key), key.namespace)
                case "jobset":
                    self.work(key, value)
                case "foreign":
                    await self.others.create(JOBSETS, {"metadata": key._asdict(), "spec": {"replicatedJobs": []}})
                case "runtimes":
                    for obj in runtimes(value):
                        self.others.add(obj)
                case "no runtimes":
                    for obj in runtimes(""):
                        await self.others.delete(CLUSTER_TRAINING_RUNTIMES, name_of(obj))
                case _:
                    await self.disturb(step, value)

    async def disturb(self, step: str, value: Any) -> None:
        """What befalls the manager itself, or its connections."""
        faults = self.client.faults
        match step:
            case "wait":
                await self.clock.advance(value)
            case "settle":
                await settle()
            case "collect":
                self.collect()
            case "refuse":
                verb, resource, error = value
                faults.fail(error(), verb=verb, resource=resource)
            case "lose answer":
                self.loses_answers = True
                faults.lose_answer(verb="apply", resource=value)
            case "hold":
                faults.hold(verb="apply", resource=value)
            case "hold watches":
                faults.hold_watches(value)
            case "release":
                faults.release()
            case "break watches":
                if value:
                    self.client.compact()
                faults.drop_watches(statuses.expired() if value else None)
            case "restart":
                # Who is killed while a write is under way does not count it.
                self.is_exact = self.is_exact and value
                if value:
                    faults.release()
                    await self.clock.advance(5)
                await self.start()
            case _:
                raise AssertionError(f"there is no step {step}")

    def work(self, key: ObjectKey, wanted: str) -> None:
        """The JobSet controller looks at a JobSet, and it is to run or to end if it can."""
        jobset = self.others.find(JOBSETS, key.name, key.namespace)
        if jobset is None or not (controller_of(jobset) or {}).get("uid"):
            return
        status: dict[str, Any] = dict(jobset.get("status") or {})
        if status.get("terminalState"):
            return
        is_suspended = bool(jobset["spec"].get("suspend"))
        counts = {"ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": int(is_suspended)}
        was_ready = any(job["ready"] for job in status.get("replicatedJobsStatus") or [])
        if not is_suspended and (wanted == "Running" or (wanted == "" and was_ready)):
            counts |= {"ready": 1, "active": 1}
        status["replicatedJobsStatus"] = [{"name": "node"} | counts]
        status["restarts"] = 0
        if wanted in ENDS and not is_suspended:
            reason = "AllJobsCompleted" if wanted == "Completed" else "FailedJobs"
            status["terminalState"] = wanted
            status["conditions"] = [{"type": wanted, "status": "True", "reason": reason, "message": "so it went"}]
        self.others.add(jobset | {"status": status})

    def collect(self) -> None:
        """The garbage collector removes what has lost its owner."""
        living = {uid_of(obj) for obj in self.others.objects(TRAIN_JOBS)}
        for resource in CHILDREN:
            for obj in self.others.objects(resource):
                owner = controller_of(obj)
                is_waiting = "foregroundDeletion" in obj["metadata"].get("finalizers", ())
                if is_waiting or (owner is not None and owner["uid"] not in living):
                    self.others.remove(resource, name_of(obj), namespace_of(obj))

    async def calm_down(self) -> None:
        """Nothing goes wrong any more, and everybody does what is left to do."""
        self.client.faults.clear()
        for obj in runtimes("last"):
            # Whoever changes a runtime has all its TrainJobs looked at, also those that nobody would look at otherwise.
            if self.others.find(CLUSTER_TRAINING_RUNTIMES, name_of(obj)) is None:
                self.others.add(obj)
        for obj in self.others.objects(JOBSETS):
            if controller_of(obj) is None:
                self.others.remove(JOBSETS, name_of(obj), namespace_of(obj))
        await settle()
        for _ in range(2):
            self.collect()
            await self.clock.advance(TO_THE_END)
            # Also where no JobSet has a word to say that would have its TrainJob looked at.
            assert all("status" in train_job for train_job in self.others.objects(TRAIN_JOBS)), "each has its status"
            for jobset in self.others.objects(JOBSETS):
                self.work(key_of(jobset), "")
            await settle()
        self.collect()
        await settle()
        for jobset in self.others.objects(JOBSETS):
            self.work(key_of(jobset), "")
        await settle()

    def children(self, resource: Resource, uid: str) -> list[Object]:
        """The objects that a TrainJob controls."""
        return [obj for obj in self.others.objects(resource) if (controller_of(obj) or {}).get("uid") == uid]

    def counted(self) -> Counter[str]:
        """The sums of all series of each metric, over all processes that there were."""
        sums: Counter[str] = Counter()
        for manager in self.managers:
            for family in manager.metrics.registry.collect():
                for sample in family.samples:
                    sums[sample.name] += int(sample.value)
        return sums

    def population(self) -> Counter[tuple[str, str]]:
        """The gauge of the process that runs, by namespace and state."""
        shown: Counter[tuple[str, str]] = Counter()
        for family in self.managers[-1].metrics.registry.collect():
            for sample in family.samples:
                if sample.name == "trainer_trainjobs":
                    shown[sample.labels["namespace"], sample.labels["state"]] += int(sample.value)
        return shown


def value_name(resource: Resource, key: ObjectKey) -> str:
    """The name of the object of that kind that belongs to the TrainJob."""
    return f"{key.name}-runtime-snapshot" if resource == CONFIG_MAPS else key.name


class Replay:
    """Checks what the server has stored, in its order, and counts what happened to each TrainJob."""

    def __init__(self, world: World) -> None:
        storage = world.others.fake_server.storage
        self.counts: Counter[str] = Counter()
        self._jobs: dict[str, Object] = {}
        self._ended: dict[str, set[str]] = {}
        self._run: set[str] = set()
        histories = (storage.collection(resource).history for resource in (TRAIN_JOBS, JOBSETS))
        for change in heapq.merge(*histories, key=lambda each: each.version):
            before = None if change.before is None else change.before.obj
            after = None if change.after is None else change.after.obj
            if change.sent.obj["kind"] == "TrainJob":
                if before is not None and after is not None and uid_of(before) != uid_of(after):
                    before = None
                self._see_job(before, after, uid_of(change.sent.obj))
            elif after is not None:
                self._see_jobset(before, after)

    def _see_job(self, before: Object | None, after: Object | None, uid: str) -> None:
        if after is None:
            del self._jobs[uid]
            return
        self._jobs[uid] = after
        old, new = (before or {}).get("status") or {}, after.get("status") or {}
        if before is not None and has_ended(before):
            assert new["conditions"] == old["conditions"], "what has ended is as it was"
            assert new["state"] == old["state"]
            return
        self.counts["created"] += not old.get("conditions") and bool(new.get("conditions"))
        for end, state in (("Completed", "Complete"), ("Failed", "Failed")):
            if is_condition_true(after, state):
                self.counts[state] += 1
                reason = (find_condition(after, state) or {})["reason"]
                assert reason == "DeadlineExceeded" or end in self._ended.get(uid, set()), "it ends as its JobSet does"
        if _is_made(after) and (not _is_made(before) or _is_resumed(before, after)):
            self.counts["made"] += 1

    def _see_jobset(self, before: Object | None, after: Object) -> None:
        owner = controller_of(after)
        if owner is None:
            return
        uid = owner["uid"]
        if not after["spec"].get("suspend"):
            self._run.add(uid_of(after))
        if "foregroundDeletion" in after["metadata"].get("finalizers", ()):
            assert uid_of(after) not in self._run, "what has run is not made again"
        if end := (after.get("status") or {}).get("terminalState"):
            self._ended.setdefault(uid, set()).add(end)
        if before is None:
            train_job = self._jobs.get(uid)
            assert train_job is None or not has_ended(train_job), "what has ended is never built again"
            assert owner["name"] == name_of(after)


def _is_made(train_job: Object | None) -> bool:
    return train_job is not None and is_condition_true(train_job, "Created")


def _is_resumed(before: Object | None, after: Object) -> bool:
    return before is not None and is_condition_true(before, "Suspended") and not is_condition_true(after, "Suspended")


def check(world: World) -> None:
    """What holds of a cluster in which nothing happens any more."""
    jobs = {uid_of(obj): obj for obj in world.others.objects(TRAIN_JOBS)}
    for uid, train_job in jobs.items():
        check_train_job(world, train_job, uid)
    for resource in CHILDREN:
        for obj in world.others.objects(resource):
            assert (controller_of(obj) or {}).get("uid") in jobs, "nothing is left of what is gone"
    assert world.population() == Counter((namespace_of(obj), obj["status"]["state"]) for obj in jobs.values())
    happened, sums = Replay(world).counts, world.counted()
    counted = {name: sums[metric] for name, metric in COUNTED.items()}
    assert all(counted[name] <= happened[name] for name in COUNTED), (counted, happened)
    for name in COUNTED if world.is_exact else ():
        # A TrainJob that is resumed before it is known that its creation was reported has waited for its JobSet once.
        assert counted[name] == happened[name] or (name == "made" and world.loses_answers), (counted, happened)


def check_train_job(world: World, train_job: Object, uid: str) -> None:
    """Its state is what its JobSet says, and it has what it needs."""
    key, spec, status = key_of(train_job), train_job["spec"], train_job["status"]
    jobsets = world.children(JOBSETS, uid)
    assert status["observedGeneration"] == train_job["metadata"]["generation"], key
    if has_ended(train_job):
        assert status["state"] in {"Complete", "Failed"}
        assert "ttlSecondsAfterFinished" not in spec, "its time is over"
        return
    (jobset,) = jobsets
    assert key_of(jobset) == key
    assert bool(jobset["spec"].get("suspend")) == bool(spec.get("suspend")), key
    assert is_condition_true(train_job, "Created"), (key, status)
    assert len(world.children(CONFIG_MAPS, uid)) >= 1
    if spec["runtimeRef"]["name"] == "mpi":
        assert len(world.children(SECRETS, uid)) == 1, key
    if "startTime" not in status:
        (job, *_) = jobset["spec"]["replicatedJobs"]
        nodes = (spec.get("trainer") or {}).get("numNodes") or (2 if spec["runtimeRef"]["name"] == "mpi" else 1)
        assert job["template"]["spec"]["parallelism"] == nodes, "what has not started follows its TrainJob"
    if spec.get("suspend"):
        assert status["state"] == "Suspended", key
    else:
        assert "activeDeadlineSeconds" not in spec, (key, status, world.clock.now())
        counts = (jobset.get("status") or {}).get("replicatedJobsStatus") or []
        states = {"Running"} if any(job["ready"] for job in counts) else {"Running", "Created"}
        assert status["state"] in states, (key, status)
        assert status.get("jobsStatus", []) == counts, key


async def scenario(steps: list[Step]) -> None:
    """Everything happens, then nothing more; the manager has nothing to do, and neither has another one."""
    world = World()
    async with world.managed():
        for step in steps:
            await world.play(*step)
        await world.calm_down()
        check(world)
        world.client.requests.clear()
        await world.clock.advance(TO_THE_END)
        assert [each for each in world.client.requests if each.verb not in {"list", "watch"}] == []
        await world.start()
        await world.clock.advance(1)
        requests = [each for each in world.client.requests if each.verb not in {"list", "watch"} and not each.dry_run]
        # The caches of a new process hold no snapshots, which are needed where the runtime has changed since.
        assert all((each.verb, each.resource) == ("get", CONFIG_MAPS) for each in requests)
        assert len(requests) <= len(world.others.objects(TRAIN_JOBS))
        check(world)


ERRORS = (
    statuses.too_many_requests,
    statuses.internal_error,
    statuses.unavailable,
    statuses.timeout,
    lambda: statuses.conflict(JOBSETS, "a", "try again"),
)
WEIGHTS = {
    "create": 5,
    "change": 4,
    "jobset": 6,
    "delete": 2,
    "settle": 8,
    "wait": 2,
    "foreign": 1,
    "runtimes": 1,
    "no runtimes": 1,
    "collect": 1,
    "refuse": 2,
    "lose answer": 1,
    "hold": 2,
    "hold watches": 2,
    "release": 1,
    "break watches": 2,
    "restart": 1,
}
"""How often each step comes."""


def spec(random: Random) -> Object:
    """What somebody submits."""
    fields: dict[str, Any] = {"runtimeRef": {"name": random.choice(["blueprint", "blueprint", "mpi"])}}
    if random.random() < 0.5:
        fields["suspend"] = random.random() < 0.5
    if random.random() < 0.3:
        fields["ttlSecondsAfterFinished"] = random.choice([0, 30])
    if random.random() < 0.3:
        fields["activeDeadlineSeconds"] = random.choice([1, 60])
    return fields


def value_of(step: str, random: Random) -> Any:
    """How a step is done."""
    match step:
        case "create":
            return spec(random)
        case "change":
            suspend, labels = {"suspend": random.random() < 0.5}, {"labels": {random.choice("xy"): random.choice("12")}}
            size = {"trainer": {"numNodes": random.choice([1, 2, 3])}}
            image = {"trainer": {"image": random.choice(["one", "two"])}}
            return random.choice([suspend, suspend, labels, image, size])
        case "jobset":
            return random.choice(["", "Running", *ENDS])
        case "delete":
            return random.choice([TRAIN_JOBS, TRAIN_JOBS, JOBSETS, CONFIG_MAPS])
        case "runtimes":
            return random.choice(["first", "second"])
        case "wait":
            return random.choice([0.01, 1, 31, 400])
        case "refuse":
            resource = random.choice([JOBSETS, TRAIN_JOBS, CONFIG_MAPS, SECRETS])
            return random.choice(["apply", "create", "get", "delete"]), resource, random.choice(ERRORS)
        case "lose answer" | "hold" | "hold watches":
            return random.choice([JOBSETS, TRAIN_JOBS])
        case "break watches" | "restart":
            return random.random() < 0.5
    return None


def steps_of(seed: int) -> list[Step]:
    """A story; some things never happen in it, so that others come more often."""
    random = Random(seed)
    never = random.sample(sorted(WEIGHTS.keys() - {"create", "settle"}), random.randrange(8))
    kinds = {step: weight for step, weight in WEIGHTS.items() if step not in never}
    chosen = random.choices(list(kinds), list(kinds.values()), k=random.randrange(20, 60))
    return [(step, random.randrange(len(KEYS)), value_of(step, random)) for step in chosen]


@pytest.mark.parametrize("seed", range(10))
async def test_everything_is_right_in_the_end(seed: int) -> None:
    """Each state is that of its JobSet, nothing is double or left over, all is counted once, no request is left."""
    # Pauses are drawn from the generator of the process.
    global_random.seed(seed)
    await scenario(steps_of(seed))


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(
            [
                ("hold watches", 0, JOBSETS),
                ("create", 0, {"runtimeRef": {"name": "blueprint"}}),
                ("settle", 0, None),
                ("delete", 0, JOBSETS),
                ("break watches", 0, True),
                ("wait", 0, 31),
                ("release", 0, None),
            ],
            id="jobset-that-no-watch-has-shown",
        ),
        pytest.param(
            [
                ("hold", 0, JOBSETS),
                *[("create", number, {"runtimeRef": {"name": "blueprint"}}) for number in range(4)],
                ("settle", 0, None),
                ("release", 0, None),
            ],
            id="statuses-that-wait",
        ),
        pytest.param(
            [
                ("lose answer", 0, TRAIN_JOBS),
                ("create", 0, {"runtimeRef": {"name": "blueprint"}}),
                ("settle", 0, None),
            ],
            id="status-whose-answer-is-lost",
        ),
    ],
)
async def test_what_chance_has_found(steps: list[Step]) -> None:
    """Stories that once ended otherwise."""
    await scenario(steps)
