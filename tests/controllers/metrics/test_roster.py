from __future__ import annotations

from trainer.controllers.metrics.roster import Roster
from trainer.kube.objects import ObjectKey


def key(name: str, namespace: str = "team-a") -> ObjectKey:
    return ObjectKey(namespace, name)


def test_the_latest_are_named() -> None:
    """A namespace with thousands of TrainJobs has fifty names, those whose state changed last."""
    roster = Roster()
    for number in range(5000):
        roster.put(key(f"job-{number}"), has_ended=False)
    roster.put(key("job-7"), has_ended=False)
    names = [each.name for each in roster.latest()]
    assert len(names) == 50
    assert names[:2] == ["job-7", "job-4999"]


def test_what_goes_on_comes_first() -> None:
    """TrainJobs that have ended are named where there is room."""
    roster = Roster()
    roster.put(key("ended"), has_ended=False)
    roster.put(key("running"), has_ended=False)
    roster.put(key("ended"), has_ended=True)
    assert [each.name for each in roster.latest()] == ["running", "ended"]
    for number in range(60):
        roster.put(key(f"new-{number}"), has_ended=False)
    assert key("ended") not in roster.latest()


def test_a_namespace_takes_no_names_of_another() -> None:
    """However many it has."""
    roster = Roster()
    for number in range(5000):
        roster.put(key(f"job-{number}"), has_ended=False)
    roster.put(key("mine", "team-b"), has_ended=True)
    assert key("mine", "team-b") in roster.latest()


def test_what_is_gone_is_not_named() -> None:
    """Whether it had ended or not."""
    roster = Roster()
    roster.put(key("a"), has_ended=True)
    roster.put(key("b"), has_ended=False)
    for name in ("a", "b", "never-there"):
        roster.remove(key(name))
    assert roster.latest() == []
