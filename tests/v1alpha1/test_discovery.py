"""Which version of TrainJobs the manager works with."""

from __future__ import annotations

from dataclasses import dataclass, field

import anyio
import pytest
from structlog.testing import capture_logs

from trainer.kube.errors import ConfigurationError, KubeError, NotFoundError, TransportError
from trainer.kube.objects import Object
from trainer.v1alpha1.client import V1Alpha1Client
from trainer.v1alpha1.discovery import V2ALPHA1, Served, ServedVersionChangedError, Version, find_served, watch_served
from trainer_kube_testing.client import FakeClient
from trainer_kube_testing.clock import ManualClock

GROUP = "GET /apis/trainer.kubeflow.org"
SCHEMAS = "GET /openapi/v3/apis/trainer.kubeflow.org/v1alpha1"


@dataclass
class Discovery:
    """An API server that is asked for a group and its schemas."""

    answer: list[str] | KubeError
    is_extended: bool = True
    asked: list[str] = field(default_factory=list)

    async def request(self, method: str, path: str) -> Object:
        """The group or its schemas, or why they are not to be had."""
        self.asked.append(f"{method} {path}")
        if isinstance(self.answer, KubeError):
            raise self.answer
        if path.startswith("/openapi"):
            return {"components": {"schemas": {"other": {}, "train-job": self._train_job()}}}
        group = path.removeprefix("/apis/")
        versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in self.answer]
        return {"kind": "APIGroup", "apiVersion": "v1", "name": group, "versions": versions}

    def _train_job(self) -> Object:
        fields: Object = {"conditions": {}} | ({"furtherConditions": {}} if self.is_extended else {})
        return {
            "x-kubernetes-group-version-kind": [{"kind": "TrainJob"}],
            "properties": {"status": {"properties": fields}},
        }


@pytest.mark.parametrize(
    ("answer", "pinned", "served"),
    [
        pytest.param(["v2alpha1"], None, V2ALPHA1, id="ours"),
        pytest.param(["v1alpha1", "v2alpha1"], None, V2ALPHA1, id="both"),
        pytest.param(["v1alpha1"], None, Served("v1alpha1"), id="that of Kubeflow Trainer (Go)"),
        pytest.param(["v1alpha1"], "v1alpha1", Served("v1alpha1"), id="as pinned"),
        pytest.param(["v1alpha1", "v2alpha1"], "v1alpha1", Served("v1alpha1"), id="one of two is pinned"),
        pytest.param([], None, V2ALPHA1, id="none"),
        pytest.param(NotFoundError(404, "not found"), None, V2ALPHA1, id="nothing is installed yet"),
        pytest.param(NotFoundError(404, "not found"), "v1alpha1", Served("v1alpha1"), id="pinned, and nothing yet"),
        pytest.param(TransportError("connection refused"), None, V2ALPHA1, id="no answer"),
    ],
)
async def test_start(answer: list[str] | KubeError, pinned: Version | None, served: Served) -> None:
    """What is pinned comes first, then v2alpha1, then v1alpha1."""
    assert await find_served(Discovery(answer), pinned) == served


@pytest.mark.parametrize("is_extended", [True, False])
async def test_optional_fields(is_extended: bool) -> None:
    """The schema tells the CRDs of config/v1alpha1 from upstream's; it is read for v1alpha1 only."""
    discovery = Discovery(["v1alpha1"], is_extended=is_extended)
    assert await find_served(discovery) == Served("v1alpha1", is_extended=is_extended)
    assert discovery.asked == [GROUP, SCHEMAS]
    discovery = Discovery(["v2alpha1"])
    await find_served(discovery)
    assert discovery.asked == [GROUP]


async def test_two_versions() -> None:
    """A warning says that both are served, and which one holds."""
    with capture_logs() as logs:
        await find_served(Discovery(["v2alpha1", "v1alpha1"]))
    assert [(each["log_level"], each["served"]) for each in logs] == [("warning", ["v1alpha1", "v2alpha1"])]


@pytest.mark.parametrize(
    ("versions", "pinned", "message"),
    [
        pytest.param(["v3"], None, "as v3, and this manager works with v2alpha1 or v1alpha1", id="unknown"),
        pytest.param(["v1alpha1"], "v2alpha1", "controller.apiVersion is v2alpha1, .* as v1alpha1: apply", id="pinned"),
    ],
)
async def test_unfit_definitions(versions: list[str], pinned: Version | None, message: str) -> None:
    """The start fails with one line that names what is served, and the remedy."""
    with pytest.raises(ConfigurationError, match=message) as raised:
        await find_served(Discovery(versions), pinned)
    assert "\n" not in str(raised.value)


def test_clients() -> None:
    """Only v1alpha1 needs another client."""
    client = FakeClient()
    assert V2ALPHA1.client(client) is client
    assert isinstance(Served("v1alpha1").client(client), V1Alpha1Client)


@pytest.mark.parametrize(
    ("served", "later"),
    [
        pytest.param(V2ALPHA1, Discovery(["v1alpha1"]), id="another version"),
        pytest.param(Served("v1alpha1"), Discovery(["v2alpha1"]), id="back"),
        pytest.param(Served("v1alpha1"), Discovery(["v1alpha1"], is_extended=False), id="other optional fields"),
    ],
)
async def test_change(served: Served, later: Discovery) -> None:
    """A change of what is served ends the process, since informers and plugins depend on it."""
    clock = ManualClock()
    raised: list[str] = []

    async def watched() -> None:
        with pytest.raises(ServedVersionChangedError) as error:
            await watch_served(later, served, clock)
        raised.append(str(error.value))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watched)
        await clock.wait_for_sleepers(1)
        await clock.advance(60)
    assert len(raised) == 1


@pytest.mark.parametrize(
    "later",
    [
        pytest.param(Discovery(["v2alpha1", "v1alpha1"]), id="one more"),
        pytest.param(Discovery([]), id="CRDs that are deleted"),
        pytest.param(Discovery(TransportError("connection refused")), id="no answer"),
    ],
)
async def test_no_change(later: Discovery) -> None:
    """The manager goes on, and asks again after a minute."""
    clock = ManualClock()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch_served, later, V2ALPHA1, clock)
        for _ in range(3):
            await clock.wait_for_sleepers(1)
            await clock.advance(60)
        tasks.cancel_scope.cancel()
    assert len(later.asked) == 3
