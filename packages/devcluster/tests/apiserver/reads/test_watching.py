"""Watches: which events a client sees, and when they end."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from packages.devcluster.tests.apiserver.builders import CONFIG_MAP, TARGET, put
from trainer.kube.errors import ApiError
from trainer.kube.objects import Object, name_of
from trainer_devcluster.apiserver.backend import Backend
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceRegistry
from trainer_devcluster.apiserver.reads.watching import SLICE_CHANGES, ServedWatch
from trainer_devcluster.apiserver.storage.storage import INITIAL_REVISION, Storage
from trainer_devcluster.apiserver.wire.params import ListParameters, list_parameters
from trainer_kube_testing.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def backend(tmp_path: Path, clock: ManualClock) -> Backend:
    return Backend(Storage(history=20), ResourceRegistry([CONFIG_MAP]), clock, tmp_path, "")


def parameters(**query: Any) -> ListParameters:
    return list_parameters({"watch": "1", **{name: str(value) for name, value in query.items()}})


def brief(events: list[tuple[str, Object]]) -> list[str]:
    return [f"{kind} {name_of(obj)}".strip() for kind, obj in events]


async def test_version_of_the_future_times_out(backend: Backend, clock: ManualClock) -> None:
    """A version that is not reached within three seconds is answered with 504."""
    watch = ServedWatch(backend, TARGET, parameters(resourceVersion=1000))
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(clock.advance, 4)
            with pytest.raises(ApiError) as caught:
                await watch.start()
    assert (caught.value.code, caught.value.status_reason) == (504, "Timeout")


@pytest.mark.parametrize("replaced", [True, False])
async def test_a_watch_ends_with_its_definition(tmp_path: Path, clock: ManualClock, replaced: bool) -> None:
    """When a resource is no longer served, or differently, its watches tell what happened before and end."""
    storage = Storage()
    registry = ResourceRegistry([CONFIG_MAP], when_changed=storage.wake)
    backend = Backend(storage, registry, clock, tmp_path, "")
    watch = ServedWatch(backend, TARGET, parameters())
    await watch.start()
    seen: list[str] = []
    with anyio.fail_after(5):
        async with aclosing(watch.events()) as batches:
            async for batch in batches:
                seen += brief(batch)
                if not seen:
                    put(storage, "a")
                    if replaced:
                        registry.add(replace(CONFIG_MAP))
                    else:
                        registry.remove(CONFIG_MAP)
    assert seen == ["ADDED a"]


async def test_a_watcher_far_behind_takes_many_changes_in_slices(backend: Backend, clock: ManualClock) -> None:
    """A batch has a limit, however much has happened, so that a slow reader does not hold on to the past."""
    storage = Storage(history=10_000)
    backend = replace(backend, storage=storage)
    for value in range(SLICE_CHANGES * 2 + 1):
        put(storage, "a", str(value))
    watch = ServedWatch(backend, TARGET, parameters(resourceVersion=INITIAL_REVISION))
    await watch.start()
    sizes: list[int] = []
    async with aclosing(watch.events()) as batches:
        async for batch in batches:
            sizes.append(len(batch))
            if sum(sizes) == SLICE_CHANGES * 2 + 1:
                break
    assert sizes == [0, SLICE_CHANGES, SLICE_CHANGES, 1]
