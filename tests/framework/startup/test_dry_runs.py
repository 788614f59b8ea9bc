"""When the API server is asked by dry runs, and what counts as a refusal."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.kube.conftest import Background, background, clock
from trainer.framework.plugin_api.extension_points import DryRun
from trainer.framework.startup.dry_runs import DryRuns
from trainer.kube.cache.informer import Informer
from trainer.kube.errors import ForbiddenError, InvalidError, KubeError, TransportError
from trainer.kube.field_errors import FieldError
from trainer.kube.resource import Resource
from trainer_kube_testing import FakeClient, ManualClock, settle, statuses

__all__ = ["background", "clock"]

GANGS = Resource("gang.example.com", "v1", "gangs", "Gang")
DRY_RUNS = {"colour": DryRun({"spec": {"colour": "red"}}), "claims": DryRun({"spec": {"claims": ["x"]}}, "spec.claims")}
POLICY = {"causes": [{"message": "ValidatingAdmissionPolicy 'labels' denied request: no label"}]}


class World:
    """A server of Gangs, and the dry runs of a manager that has just started."""

    def __init__(self, clock: ManualClock, background: Background) -> None:
        self.clock = clock
        self.client = FakeClient(resources=[GANGS], clock=clock)
        self.refusals: dict[tuple[Resource, str], str] = {}
        self.announced = 0
        self.informer = Informer(self.client, GANGS, clock=clock, optional=True)
        self.dry_runs = DryRuns(self.client, self.refusals, "ns", clock)
        self.dry_runs.add(self.informer, DRY_RUNS)
        self.dry_runs.add_listener(self.count)
        self._background = background

    def count(self) -> None:
        """Note that an answer has changed."""
        self.announced += 1

    async def start(self) -> None:
        """Let it ask for the first time."""
        self._background(self.informer.run())
        await self.informer.wait_for_sync()
        self._background(self.dry_runs.run())
        await self.dry_runs.wait_for_sync()

    @property
    def times(self) -> list[float]:
        """When it has asked."""
        return sorted({request.time for request in self.client.requests if request.dry_run})


@pytest.fixture
def world(clock: ManualClock, background: Background) -> World:
    return World(clock, background)


async def test_nothing_is_refused(world: World) -> None:
    """It is asked once."""
    await world.start()
    await world.clock.advance(7200)
    assert (world.times, world.refusals, world.announced) == ([0.0], {}, 0)


async def test_something_is_refused(world: World) -> None:
    """It is asked each five minutes until all is accepted; whoever listens hears of changes only."""
    world.client.close_gate(GANGS, "spec.colour")
    world.client.close_gate(GANGS, "spec.claims", drops=True)
    await world.start()
    assert world.refusals == {
        (GANGS, "colour"): "spec.colour: Forbidden: field is disabled by its feature gate",
        (GANGS, "claims"): "spec.claims is dropped",
    }
    assert world.announced == 2
    await world.clock.advance(900)
    assert (world.times, world.announced) == ([0.0, 300.0, 600.0, 900.0], 2)
    world.client.open_gate(GANGS, "spec.colour")
    world.client.open_gate(GANGS, "spec.claims")
    await world.clock.advance(7200)
    assert (world.times[-1], world.refusals, world.announced) == (1200.0, {}, 4)


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(TransportError("connection reset"), id="no answer"),
        pytest.param(statuses.internal_error(), id="server error"),
        pytest.param(ForbiddenError(403, "exceeded quota"), id="no right"),
        pytest.param(InvalidError(422, "denied request: no label", status={"details": POLICY}), id="policy"),
        pytest.param(statuses.bad_request("admission webhook does not support dry run"), id="webhook"),
    ],
)
async def test_what_says_nothing_of_gates(world: World, error: KubeError) -> None:
    """It is asked again, at pauses that grow to five minutes; until there is an answer, nothing is refused."""
    world.client.close_gate(GANGS, "spec.colour")
    fault = world.client.faults.fail(error, verb="create", resource=GANGS, times=None)
    await world.start()
    await world.clock.advance(1500)
    pauses = [later - earlier for earlier, later in pairwise(world.times)]
    assert pauses[0] < 2
    assert all(250 < pause <= 360 for pause in pauses[-2:])
    assert world.refusals == {}
    fault.end()
    await world.clock.advance(361)
    assert list(world.refusals) == [(GANGS, "colour")]


async def test_an_answer_outlives_failures(world: World) -> None:
    """What was refused is, until the API server says something else."""
    world.client.close_gate(GANGS, "spec.colour")
    await world.start()
    world.client.faults.fail(TransportError("connection reset"), verb="create", times=None)
    await world.clock.advance(700)
    assert (list(world.refusals), world.announced) == ([(GANGS, "colour")], 1)


async def test_a_kind_that_is_withdrawn(world: World) -> None:
    """Its answers are forgotten, and it is asked again when it comes back."""
    world.client.close_gate(GANGS, "spec.colour")
    await world.start()
    world.client.withdraw(GANGS)
    await world.clock.advance(40)
    assert world.refusals == {}
    count = len(world.times)
    await world.clock.advance(600)
    assert len(world.times) == count
    world.client.serve(GANGS)
    await world.clock.advance(40)
    assert list(world.refusals) == [(GANGS, "colour")]


async def test_problem(world: World, background: Background) -> None:
    """It names the kinds of which nothing is known."""
    held = world.client.faults.hold(verb="create")
    starting = background(world.start())
    await settle()
    assert world.dry_runs.problem == "the API server has not answered dry runs of gangs.gang.example.com"
    held.release()
    await starting
    assert world.dry_runs.problem == ""


@pytest.mark.parametrize(
    ("field", "refused"),
    [
        pytest.param("spec.claims[0].name", True, id="within"),
        pytest.param("spec.claims", True, id="itself"),
        pytest.param("spec.claimsPolicy", False, id="another"),
        pytest.param("metadata.labels", False, id="elsewhere"),
    ],
)
async def test_a_refusal_is_about_the_tried_field(world: World, field: str, refused: bool) -> None:
    """What a webhook refuses of the rest of the object says nothing of the gate of the field."""
    error = statuses.invalid(GANGS.kind, GANGS.group, "dry-run", [FieldError(field, "not here")])
    world.client.faults.fail(error, verb="create", resource=GANGS, times=None)
    await world.start()
    assert ((GANGS, "claims") in world.refusals) is refused
