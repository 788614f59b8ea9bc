"""Fixtures of the kubelet's tests."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from packages.devcluster.tests.kubelet.fakes import OpenRunner, PodRunner
from trainer.kube.clock import Clock
from trainer_devcluster.kubelet.errors import PodNetworkError
from trainer_devcluster.kubelet.network.probe import open_pod_network
from trainer_devcluster.kubelet.options import PodNetworkMode


@pytest.fixture
def open_runner(tmp_path: Path) -> OpenRunner:
    """Opens a pod network and runs pods on it; skips where the machine does not allow it, which root's always does."""
    return partial(_open_runner, tmp_path)


@asynccontextmanager
async def _open_runner(data_dir: Path, mode: str, clock: Clock | None = None) -> AsyncIterator[PodRunner]:
    async with AsyncExitStack() as stack:
        try:
            chosen = await stack.enter_async_context(open_pod_network(PodNetworkMode(mode), data_dir))
        except PodNetworkError as error:
            if os.geteuid() == 0:
                raise
            pytest.skip(str(error))
        yield PodRunner(chosen.network, data_dir, clock)
