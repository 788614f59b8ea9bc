"""Whose requests count together, and what they may take."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack

import anyio
import anyio.lowlevel
import pytest

from trainer_dashboard.access.parties import REQUESTS_OF_ONE, STREAMS, STREAMS_OF_ONE, Parties, party_of


@pytest.mark.parametrize(
    ("user", "party"),
    [
        pytest.param("jane", "jane", id="user"),
        pytest.param("", "", id="only-user"),
        pytest.param("system:serviceaccount:team:one", "system:serviceaccount:team:*", id="account"),
        pytest.param("system:serviceaccount:team:two", "system:serviceaccount:team:*", id="account-of-same-namespace"),
        pytest.param("system:serviceaccount:other:one", "system:serviceaccount:other:*", id="other-namespace"),
        pytest.param("system:node:one", "system:node:one", id="node"),
    ],
)
def test_party_of(user: str, party: str) -> None:
    """All ServiceAccounts of a namespace are one party, since whoever may create them has any number of names."""
    assert party_of(user) == party


class Streams:
    """Streams of several parties, and those that have given way."""

    def __init__(self) -> None:
        self.parties = Parties()
        self.ended: list[str] = []
        self.stack = ExitStack()

    def open(self, user: str) -> bool:
        """Whether a stream is let in."""

        def end() -> None:
            self.ended.append(user)

        return self.stack.enter_context(self.parties.of(user).streaming(end)) is not None


def test_streams_of_one() -> None:
    """Many accounts of one namespace have as many streams as one user, and closed ones do not count."""
    streams = Streams()
    with streams.stack:
        let_in = [streams.open(f"system:serviceaccount:team:{number}") for number in range(16) for _ in range(64)]
        assert (sum(let_in), streams.open("jane")) == (STREAMS_OF_ONE, True)
    assert streams.open("system:serviceaccount:team:late")
    assert not streams.ended


def test_streams_of_all() -> None:
    """When there are as many as there may be, the party that has most gives way to one that has fewer."""
    streams = Streams()
    with streams.stack:
        for number in range(STREAMS):
            assert streams.open(f"user-{number % (STREAMS // STREAMS_OF_ONE + 1)}")
        assert streams.open("late")
        assert len(streams.ended) == 1
        for _ in range(STREAMS):
            streams.open("late")
        # It has no more than the others then.
        assert len(streams.ended) < STREAMS_OF_ONE
        assert "late" not in streams.ended


def test_many_users() -> None:
    """Where each has one stream, nobody gives way, and the next one is refused."""
    streams = Streams()
    with streams.stack:
        for number in range(STREAMS):
            assert streams.open(f"user-{number}")
        assert not streams.open("late")
    assert not streams.ended


def test_requests_of_one() -> None:
    """A party may wait for so many answers, and another one for its own; whoever is alone for any number."""
    parties = Parties()

    def ask(stack: ExitStack, user: str) -> bool:
        return stack.enter_context(parties.of(user).asking())

    with ExitStack() as stack:
        assert [ask(stack, "jane") for _ in range(REQUESTS_OF_ONE + 1)] == [True] * REQUESTS_OF_ONE + [False]
        assert ask(stack, "joe")
        assert all(ask(stack, "") for _ in range(2 * REQUESTS_OF_ONE))
    assert not parties.requests


async def test_places() -> None:
    """Whoever reads much waits for places of their own, and leaves those of all to others."""
    parties, inside = Parties(), anyio.Event()
    entered: list[str] = []

    async def read(user: str) -> None:
        async with parties.of(user).reading():
            entered.append(user)
            await inside.wait()

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(read, "greedy")
        await anyio.wait_all_tasks_blocked()
        for user in ("a", "b"):
            tasks.start_soon(read, user)
        await anyio.wait_all_tasks_blocked()
        assert entered == ["greedy", "greedy", "a", "b"]
        inside.set()
    assert len(entered) == 22


async def test_turns_of_streams() -> None:
    """In each round of the event loop one stream of a party makes what it sends, and one of another party as well."""
    parties = Parties()
    number = 0
    made: Counter[tuple[int, str]] = Counter()

    async def count() -> None:
        nonlocal number
        while True:
            await anyio.lowlevel.checkpoint()
            number += 1

    async def stream(user: str) -> None:
        with parties.of(user).streaming(lambda: None) as slot:
            assert slot is not None
            for _ in range(3):
                await slot.party.turn()
                made[number, user] += 1

    async with anyio.create_task_group() as counting:
        counting.start_soon(count)
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(stream, "jane")
            tasks.start_soon(stream, "joe")
        counting.cancel_scope.cancel()
    rounds = {user: [each for each, who in made if who == user] for user in ("jane", "joe")}
    assert set(made.values()) == {1}
    assert (len(rounds["jane"]), len(rounds["joe"])) == (60, 3)
    assert max(rounds["joe"]) - min(rounds["joe"]) < 6
    assert not parties.rounds
