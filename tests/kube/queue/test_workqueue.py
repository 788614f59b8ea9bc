"""Work queue."""

from __future__ import annotations

import asyncio
from collections import Counter, deque

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.kube.metrics import Metrics
from trainer.kube.queue.workqueue import LOW_PRIORITY, ShutDown, WorkQueue
from trainer_kube_testing import ManualClock, settle


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def queue(clock: ManualClock, metrics: Metrics) -> WorkQueue[str]:
    return WorkQueue("test", clock=clock, metrics=metrics)


def sample(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"workqueue_{name}", {"name": "test", "controller": "test"} | labels)


async def take(queue: WorkQueue[str], count: int) -> list[str]:
    keys = []
    for _ in range(count):
        keys.append(await queue.get())
        queue.done(keys[-1])
    return keys


async def is_empty(queue: WorkQueue[str]) -> bool:
    """Whether a getter would wait."""
    got: list[str] = []

    async def getter() -> None:
        got.append(await queue.get())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(getter)
        await settle()
        tasks.cancel_scope.cancel()
    return not got


@pytest.mark.parametrize(
    ("added", "order"),
    [
        pytest.param([("a",), ("b",), ("c",)], "abc", id="in-order-of-arrival"),
        pytest.param([("a",), ("b",), ("a",)], "ab", id="each-key-once"),
        pytest.param([("a", LOW_PRIORITY), ("b",), ("c", 5)], "cba", id="higher-priority-first"),
        pytest.param([("a", LOW_PRIORITY), ("b", LOW_PRIORITY), ("b",)], "ba", id="adding-again-raises"),
        pytest.param([("a",), ("b",), ("a", LOW_PRIORITY)], "ab", id="adding-again-never-lowers"),
        pytest.param([("a", LOW_PRIORITY), ("b",), ("a",)], "ba", id="raised-to-the-end-of-the-new-priority"),
    ],
)
async def test_order(queue: WorkQueue[str], added: list[tuple[str, int]], order: str) -> None:
    """By priority, then in order of arrival; a key has the highest priority that it was added with."""
    for each in added:
        queue.add(*each)
    assert len(queue) == len(order)
    assert await take(queue, len(order)) == list(order)
    assert len(queue) == 0


async def test_priority_of_delays(queue: WorkQueue[str]) -> None:
    """A delayed add can raise that of a ready key, and an immediate add does not lower that of a delayed one."""
    queue.add("a", LOW_PRIORITY)
    queue.add("b", LOW_PRIORITY)
    queue.add_after("b", 5, 1)
    queue.add_after("c", 10, 5)
    queue.add("c", LOW_PRIORITY)
    assert await take(queue, 3) == ["c", "b", "a"]


async def test_key_in_process_is_not_handed_out_again_until_done(queue: WorkQueue[str], clock: ManualClock) -> None:
    """A change during processing leads to one more round, after the present one."""
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("a")
    got: list[str] = []

    async def second_worker() -> None:
        got.append(await queue.get())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(second_worker)
        await settle()
        assert got == []
        queue.done("a")
    assert got == ["a"]
    queue.done("a")
    assert len(queue) == 0


async def test_delayed_key_becomes_ready_at_its_time(queue: WorkQueue[str], clock: ManualClock) -> None:
    """A waiting getter is woken when the delay has passed, not before."""
    queue.add_after("a", 10)
    got: list[str] = []

    async def worker() -> None:
        got.append(await queue.get())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker)
        await clock.advance(9.9)
        assert got == []
        await clock.advance(0.2)
    assert got == ["a"]


async def test_waiting_getter_learns_of_an_earlier_delay(queue: WorkQueue[str], clock: ManualClock) -> None:
    """A delay added while a getter already waits for a later one wakes it in time."""
    got: list[str] = []

    async def worker() -> None:
        got.extend(await take(queue, 2))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker)
        queue.add_after("late", 100)
        await settle()
        queue.add_after("soon", 1)
        await clock.advance(2)
        assert got == []
        assert len(queue) == 0
        await clock.advance(100)
    assert got == ["soon", "late"]


async def test_idle_worker_takes_over_the_timer_of_a_busy_one(queue: WorkQueue[str], clock: ManualClock) -> None:
    """However many keys come in between, a worker that is left idle keeps the time of a delayed key."""
    started: list[str] = []
    never = anyio.Event()

    async def worker() -> None:
        while True:
            started.append(await queue.get())
            await never.wait()

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(worker)
        await settle()
        queue.add_after("delayed", 5)
        for key in "abc":
            await settle()
            queue.add(key)
        await clock.advance(6)
        assert started == ["a", "b", "c", "delayed"]
        tasks.cancel_scope.cancel()


async def test_timer_of_a_cancelled_getter_is_taken_over(queue: WorkQueue[str], clock: ManualClock) -> None:
    """When the getter that keeps the time of a delayed key is cancelled, another one does."""
    got: list[str] = []

    async def worker(scope: anyio.CancelScope) -> None:
        with scope:
            got.append(await queue.get())

    async with anyio.create_task_group() as tasks:
        scopes = [anyio.CancelScope(), anyio.CancelScope()]
        for scope in scopes:
            tasks.start_soon(worker, scope)
            await settle()
        queue.add_after("a", 5)
        await settle()
        scopes[0].cancel()
        await clock.advance(6)
    assert got == ["a"]


@pytest.mark.parametrize(
    ("first", "second", "due"),
    [pytest.param(10, 5, 5, id="earlier-wins"), pytest.param(5, 10, 5, id="later-ignored")],
)
async def test_the_earlier_of_two_delays_counts(
    queue: WorkQueue[str], clock: ManualClock, first: float, second: float, due: float
) -> None:
    """Delaying a delayed key can only bring it forward."""
    queue.add_after("a", first)
    queue.add_after("a", second)
    await clock.advance(due)
    assert await take(queue, 1) == ["a"]
    await clock.advance(100)
    assert await is_empty(queue)


async def test_immediate_add_replaces_a_delay(queue: WorkQueue[str], clock: ManualClock) -> None:
    """A key that is added while it waits is processed at once, and once."""
    queue.add_after("a", 10)
    queue.add("a")
    assert await take(queue, 1) == ["a"]
    await clock.advance(20)
    assert await is_empty(queue)


async def test_delay_of_a_key_in_process_starts_a_round_later(queue: WorkQueue[str], clock: ManualClock) -> None:
    """Asking for a later round while the key is processed does not repeat it at once."""
    queue.add("a")
    key = await queue.get()
    queue.add_after(key, 3)
    queue.done(key)
    assert len(queue) == 0
    await clock.advance(3)
    assert await take(queue, 1) == ["a"]


async def fail(queue: WorkQueue[str], key: str) -> None:
    """One round with the key that ends with a failure."""
    assert await queue.get() == key
    queue.add_rate_limited(key)
    queue.done(key)


async def wait_of_retry(queue: WorkQueue[str], clock: ManualClock, key: str) -> float:
    """Seconds from a failed round with this key until it is handed out again."""
    queue.add(key)
    await fail(queue, key)
    started = clock.monotonic()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fail, queue, key)
        await settle()
        await clock.advance(clock.sleeping[0])
    return clock.monotonic() - started


async def test_backoff_doubles_up_to_its_limit_and_is_forgotten(queue: WorkQueue[str], clock: ManualClock) -> None:
    """Rate-limited adds of one key wait 5 ms, 10 ms, ... 1000 s; `forget` starts over; other keys are not affected."""
    waits = [await wait_of_retry(queue, clock, "a") for _ in range(10)]
    assert waits[:2] == pytest.approx([0.005, 0.02])
    assert waits[-1] == pytest.approx(1000)
    assert queue.failures("a") == 20
    assert await wait_of_retry(queue, clock, "b") == pytest.approx(0.005)
    queue.forget("a")
    assert queue.failures("a") == 0
    assert await wait_of_retry(queue, clock, "a") == pytest.approx(0.005)


async def test_queue_forgets_keys_that_are_over(queue: WorkQueue[str]) -> None:
    """Without `forget` too, nothing is kept of a key that is done and not to be looked at again."""
    queue.add("a")
    await fail(queue, "a")
    assert queue.failures("a") == 1
    queue.add("a")
    assert await queue.get() == "a"
    assert queue.failures("a") == 1
    queue.done("a")
    assert queue.failures("a") == 0


async def test_ten_thousand_failing_keys_do_not_delay_a_healthy_one(queue: WorkQueue[str], clock: ManualClock) -> None:
    """There is no bucket that all keys draw from: the others wait for themselves alone."""
    failing = [f"failing-{number}" for number in range(10_000)]
    for _ in range(3):
        for key in failing:
            queue.add(key)
        for key in failing:
            await fail(queue, key)
    queue.add("healthy")
    assert await take(queue, 1) == ["healthy"]
    queue.add_rate_limited("healthy")
    await clock.advance(0.005)
    assert await take(queue, 1) == ["healthy"]
    await clock.advance(0.015)
    assert len(await take(queue, 10_000)) == 10_000


async def test_delay_does_not_repeat_a_round_that_is_due_anyway(queue: WorkQueue[str], clock: ManualClock) -> None:
    """A delay asked for while the key is to be processed again at once adds nothing."""
    queue.add("a")
    key = await queue.get()
    queue.add(key)
    queue.add_after(key, 3)
    queue.done(key)
    assert await take(queue, 1) == ["a"]
    await clock.advance(10)
    assert await is_empty(queue)


@pytest.mark.parametrize(
    "priorities", [pytest.param((5, LOW_PRIORITY), id="falling"), pytest.param((LOW_PRIORITY, 5), id="rising")]
)
async def test_priority_of_changes_during_processing_adds_up(
    queue: WorkQueue[str], priorities: tuple[int, int]
) -> None:
    """The next round has the highest priority that was asked for meanwhile."""
    queue.add("a")
    key = await queue.get()
    for priority in priorities:
        queue.add(key, priority)
    queue.add("b", 1)
    queue.done(key)
    assert await take(queue, 2) == ["a", "b"]


async def test_shut_down_drains_and_then_ends_workers(queue: WorkQueue[str]) -> None:
    """Ready keys are still handed out; delayed and new ones are not."""
    queue.add("a")
    queue.add_after("b", 1)
    queue.shut_down()
    queue.add("c")
    queue.add_after("d", 1)
    assert await take(queue, 1) == ["a"]
    with pytest.raises(ShutDown):
        await queue.get()


async def test_shut_down_wakes_waiting_workers(queue: WorkQueue[str]) -> None:
    """Workers that wait for a key end as well."""
    ended = []

    async def worker() -> None:
        with pytest.raises(ShutDown):
            await queue.get()
        ended.append(True)

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(worker)
        await settle()
        queue.shut_down()
    assert len(ended) == 3


async def test_key_marked_during_shutdown_is_processed(queue: WorkQueue[str]) -> None:
    """A change that came before the shutdown is not lost because its key was in process."""
    queue.add("a")
    key = await queue.get()
    queue.add("a")
    queue.shut_down()
    queue.done(key)
    assert await take(queue, 1) == ["a"]


@pytest.mark.parametrize("native", [pytest.param(True, id="task"), pytest.param(False, id="scope")])
async def test_cancelled_getter_passes_its_wake_up_on(queue: WorkQueue[str], native: bool) -> None:
    """A key is not stranded when the getter that was woken for it is cancelled in the same turn."""
    got: list[str] = []

    async def second() -> None:
        got.append(await queue.get())

    async with anyio.create_task_group() as tasks:
        scope = anyio.CancelScope()

        async def first() -> None:
            with scope:
                key = await queue.get()
                queue.add(key)
                queue.done(key)

        cancelled = asyncio.create_task(first())
        await settle()
        tasks.start_soon(second)
        await settle()
        queue.add("a")
        if native:
            cancelled.cancel()
        else:
            scope.cancel()
    assert got == ["a"]
    await asyncio.wait([cancelled])


async def test_one_waiting_getter_keeps_the_time_for_all(queue: WorkQueue[str], clock: ManualClock) -> None:
    """However many workers are idle, a delayed key costs one timer and wakes as many as are needed."""
    got: list[str] = []

    async def worker() -> None:
        got.extend(await take(queue, 1))

    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(worker)
        await settle()
        for number in range(10):
            queue.add_after(f"key-{number}", 10 - number)
            await settle()
        assert clock.sleeping == [1]
        await clock.advance(5)
        assert len(got) == 5
        assert len(clock.sleeping) == 1
        await clock.advance(5)
    assert len(got) == 10


async def test_getters_give_way_to_other_tasks(queue: WorkQueue[str]) -> None:
    """Work that never waits does not starve what else runs on the event loop."""
    turns = 0
    is_over = False

    async def other() -> None:
        nonlocal turns
        while not is_over:
            turns += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        for number in range(10_000):
            queue.add(str(number))
        await take(queue, 10_000)
        is_over = True
    assert turns >= 5


async def test_shut_down_now_hands_out_nothing_more(queue: WorkQueue[str]) -> None:
    """What is ready, delayed, or marked while it is processed, is dropped."""
    queue.add("a")
    key = await queue.get()
    queue.add("a")
    queue.add("b")
    queue.add_after("c", 1)
    queue.shut_down_now()
    queue.done(key)
    assert len(queue) == 0
    with pytest.raises(ShutDown, match="'test'"):
        await queue.get()


async def test_drain_waits_for_what_is_ready_and_processing(queue: WorkQueue[str], clock: ManualClock) -> None:
    """It returns when the last key, a change during the shutdown included, is done."""
    for key in "abc":
        queue.add(key)
    done: list[str] = []

    async def worker() -> None:
        while True:
            try:
                key = await queue.get()
            except ShutDown:
                return
            await clock.sleep(1)
            done.append(key)
            queue.done(key)

    async def drain() -> None:
        await queue.drain()
        done.append("drained")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker)
        await settle()
        queue.add("a")
        tasks.start_soon(drain)
        await settle()
        await clock.advance(10)
    assert done == ["a", "b", "c", "a", "drained"]


async def test_draining_an_idle_queue_returns_at_once(queue: WorkQueue[str]) -> None:
    """Draining an idle queue returns at once, each time."""
    await queue.drain()
    await queue.drain()


async def test_metrics_follow_a_key(queue: WorkQueue[str], clock: ManualClock, metrics: Metrics) -> None:
    """Adds, waiting, work and retries are counted under the names of controller-runtime, from 0 on."""
    assert sample(metrics, "adds_total") == 0
    assert sample(metrics, "depth", priority="0") == 0
    queue.add("a")
    queue.add("a")
    queue.add("b", LOW_PRIORITY)
    assert sample(metrics, "adds_total") == 2
    assert sample(metrics, "depth", priority="0") == 1
    assert sample(metrics, "depth", priority="-100") == 1
    await clock.advance(3)
    key = await queue.get()
    assert sample(metrics, "queue_duration_seconds_sum") == 3
    await clock.advance(4)
    assert await queue.get() == "b"
    await clock.advance(1)
    queue.add("b")
    assert sample(metrics, "unfinished_work_seconds") == 6
    assert sample(metrics, "longest_running_processor_seconds") == 5
    assert sample(metrics, "depth", priority="-100") == 1
    queue.add_rate_limited(key)
    queue.done(key)
    assert sample(metrics, "work_duration_seconds_sum") == 5
    assert sample(metrics, "retries_total") == 1
    assert sample(metrics, "longest_running_processor_seconds") == 1
    queue.done("b")
    assert sample(metrics, "unfinished_work_seconds") == 0
    assert sample(metrics, "longest_running_processor_seconds") == 0
    await clock.advance(1)
    assert await take(queue, 2) == ["a", "b"]
    assert sample(metrics, "adds_total") == 4
    assert sample(metrics, "depth", priority="0") == 0
    assert sample(metrics, "depth", priority="-100") == 0


def test_label_priority_has_a_limited_number_of_values(queue: WorkQueue[str], metrics: Metrics) -> None:
    """Priorities beyond the first 25 seen are counted together."""
    for priority in range(40):
        queue.add(str(priority), priority)
    [family] = [family for family in metrics.registry.collect() if family.name == "workqueue_depth"]
    depths = {entry.labels["priority"]: entry.value for entry in family.samples}
    assert len(depths) == 26
    assert depths["exceeded_cardinality_limit"] == 15
    assert sum(depths.values()) == 40


operations = st.lists(
    st.tuples(
        st.sampled_from(["add", "add_after", "add_rate_limited", "advance", "replace"]),
        st.sampled_from("abc"),
        st.integers(1, 5),
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(operations, st.integers(1, 3))
async def test_no_key_runs_twice_at_once_and_no_change_is_lost(
    script: list[tuple[str, str, int]], workers: int
) -> None:
    """Whatever is added when, each key has one worker at a time and a round that starts after its last add.

    Also if workers are cancelled, as they wait or in the middle of a round, and others take their place.
    """
    clock = ManualClock()
    queue: WorkQueue[str] = WorkQueue("test", clock=clock, metrics=Metrics())
    running: Counter[str] = Counter()
    unseen: set[str] = set()

    async def work(scope: anyio.CancelScope) -> None:
        with scope:
            while True:
                key = await queue.get()
                running[key] += 1
                assert running[key] == 1
                unseen.discard(key)
                try:
                    await clock.sleep(2)
                finally:
                    running[key] -= 1
                    queue.done(key)

    async with anyio.create_task_group() as tasks:
        scopes = deque(anyio.CancelScope() for _ in range(workers))
        for scope in scopes:
            tasks.start_soon(work, scope)
        for operation, key, number in script:
            if operation == "advance":
                await clock.advance(number)
                continue
            if operation == "replace":
                scopes.popleft().cancel()
                scopes.append(anyio.CancelScope())
                tasks.start_soon(work, scopes[-1])
                continue
            unseen.add(key)
            if operation == "add":
                queue.add(key, number)
            elif operation == "add_after":
                queue.add_after(key, number)
            else:
                queue.add_rate_limited(key)
            if number == 1:
                await settle()
        await clock.advance(1000)
        assert unseen == set()
        assert len(queue) == 0
        tasks.cancel_scope.cancel()
