"""Mishaps at random."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from packages.kube_testing.tests.conftest import Follow
from tests.kube.conftest import Background
from tests.kube.objects import pod
from trainer.kube.cache.informer import Informer
from trainer.kube.client import WatchOptions
from trainer.kube.errors import GoneError, KubeError, TransportError
from trainer.kube.objects import name_of
from trainer.kube.resource import PODS
from trainer_kube_testing import FakeClient, ManualClock, eventually, settle
from trainer_kube_testing.faults import LOST_ANSWER
from trainer_kube_testing.watches import Mishap


async def outcomes(seed: int, rate: float) -> list[str]:
    """What comes of fifty creations."""
    client = FakeClient()
    client.faults.chaos(Random(seed), rate)
    answers = []
    for number in range(50):
        try:
            await client.create(PODS, pod(f"p{number}"))
            answers.append("created")
        except KubeError as error:
            answers.append(f"{type(error).__name__} {client.find(PODS, f'p{number}', 'ns') is not None}")
    return answers


async def test_same_seed_same_run() -> None:
    """A failure that chaos has found can be repeated with its seed."""
    assert await outcomes(1, 0.3) == await outcomes(1, 0.3)
    assert await outcomes(1, 0.3) != await outcomes(2, 0.3)


async def test_rate() -> None:
    """The rate is the probability of a mishap: never at 0, always at 1."""
    assert await outcomes(1, 0.0) == ["created"] * 50
    assert "created" not in await outcomes(1, 1.0)


async def test_writes_fail_before_and_after_they_are_carried_out() -> None:
    """Some answers are lost, some requests are refused, and all is counted."""
    failures = Counter(await outcomes(1, 0.3))
    assert failures["TransportError True"]
    assert failures["TooManyRequestsError False"]
    assert failures["InternalError False"]


@pytest.mark.parametrize(
    ("mishap", "reported", "has_ended", "error"),
    [
        pytest.param(Mishap.CLOSE, [], True, None, id="close"),
        pytest.param(Mishap.BREAK, [], True, TransportError, id="break"),
        pytest.param(Mishap.EXPIRE, [], True, GoneError, id="expire"),
        pytest.param(Mishap.SILENCE, [], False, None, id="silence"),
        pytest.param(Mishap.DUPLICATE, ["ADDED a", "ADDED a"], False, None, id="duplicate"),
    ],
)
@pytest.mark.parametrize("version", ["", "0"], ids=["initial", "change"])
async def test_mishaps_of_watches(
    follow: Follow,
    mishap: Mishap,
    reported: list[str],
    has_ended: bool,
    error: type[KubeError] | None,
    version: str,
) -> None:
    """Each mishap replaces one event, an initial one as well as a change."""
    client = FakeClient()
    if not version:
        client.add(pod("a"))
    client.faults.delivery.next_mishap = lambda: mishap
    watch = follow(client, options=WatchOptions(version))
    await settle()
    if version:
        client.add(pod("a"))
        await settle()
    assert watch.seen == reported
    assert watch.has_ended == has_ended
    assert type(watch.error) is (error or type(None))


@pytest.mark.parametrize("seed", range(3))
async def test_a_cache_survives(seed: int, clock: ManualClock, background: Background) -> None:
    """However requests and watches fail, a cache equals the server in the end, and everything did go wrong."""
    random = Random(seed)
    client = FakeClient(clock=clock)
    client.faults.chaos(random, 0.2)
    informer = Informer(client, PODS, clock=clock)
    background(informer.run())
    for rounds in range(3000):
        if rounds >= 300 and set(Mishap) < set(client.faults.injected):
            break
        name = f"p{random.randrange(20)}"
        if client.find(PODS, name, "ns") is not None and random.random() < 0.5:
            client.remove(PODS, name, "ns")
        else:
            client.add(pod(name, labels={"x": str(random.random())}))
        await clock.advance(random.choice((0, 0, 1, 30)))
    client.faults.calm()
    await eventually(
        lambda: sorted(informer.lister.list(), key=name_of) == client.objects(PODS),
        clock=clock,
        within=300,
        what="the cache equals the server",
    )
    assert set(Mishap) < set(client.faults.injected)
    assert LOST_ANSWER not in client.faults.injected
