"""Each trial of a sweep ends once, and never too many run at once, whatever happens to managers, answers and trials."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

import pytest
import yaml

from e2e import audit
from e2e.balancer import balanced
from e2e.cluster import Cluster
from e2e.manager import Manager
from e2e.sweeps.sweep import assignment_of, curve_of, ended, optimization_job, status_of, trials_of
from e2e.waiting import until
from trainer_sweeps.api.optimizationjob import OptimizationJobSpec
from trainer_sweeps.search.suggestion import suggestion

pytestmark = pytest.mark.timeout(480)

TRIAL = """
x = float(os.environ["KUBEFLOW_TRAINER_OPT_X"])
for step in range(1, 4):
    say(currentStep=step, totalSteps=3, evalMetrics={"val_loss": (x - 3) ** 2 + 1 / step})
    time.sleep(0.1)
"""
SPACE = {"x": {"uniform": {"min": "-5", "max": "5"}}}
TRIALS, PARALLEL, KILLS, SEED = 60, 4, 10, 3
"""More trials than end between so many kills: at each one, all that run may end."""
CLIENT_CLOSED_REQUEST = 499
"""How the dev cluster logs that nobody has waited for an answer."""
LOST = 0.05
"""Share of the answers of the API server that the manager does not get."""


@pytest.fixture(scope="module")
def manager_kubeconfig(session_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """By a way on which answers are lost, where the API server is on this machine."""
    document = yaml.safe_load(session_cluster.manager_kubeconfig.read_text())
    (entry,) = document["clusters"]
    url = urlsplit(entry["cluster"]["server"])
    if not session_cluster.is_local or url.port is None:
        yield session_cluster.manager_kubeconfig
        return
    with balanced([url.port]) as way:
        random = Random(SEED)
        way.loses = lambda: random.random() < LOST
        entry["cluster"]["server"] = f"https://127.0.0.1:{way.port}"
        file = tmp_path_factory.mktemp("way") / "kubeconfig"
        file.touch(mode=0o600)
        file.write_text(yaml.safe_dump(document))
        yield file


@dataclass(frozen=True, slots=True, order=True)
class Change:
    """A creation, patch or deletion of a TrainJob, which may have come to nothing if its answer was not awaited."""

    moment: str
    verb: str
    name: str
    is_answered: bool


def changes_of_trials(log: Path, namespace: str) -> list[Change]:
    """What an audit log says about the trials, in order."""
    found: list[Change] = []
    with log.open("rb") as lines:
        for line in lines:
            if namespace.encode() not in line or not line.endswith(b"\n"):
                continue
            event = json.loads(line)
            target, code = event.get("objectRef") or {}, (event.get("responseStatus") or {}).get("code", 0)
            is_trial = (target.get("namespace"), target.get("resource")) == (namespace, "trainjobs")
            if is_trial and "subresource" not in target and event["verb"] in {"create", "patch", "delete"}:
                change = Change(event["requestReceivedTimestamp"], event["verb"], target.get("name", ""), code < 400)
                found += [change] if code < 400 or code == CLIENT_CLOSED_REQUEST else []
    return sorted(found)


def most_at_once(changes: Sequence[Change]) -> int:
    """The most trials that there were between their creation and their last change, which makes their curve whole."""
    active, most = set[str](), 0
    last = {change.name: change for change in changes}
    for change in changes:
        if change.verb == "create":
            active.add(change.name)
            most = max(most, len(active))
        elif change.verb == "delete" or change is last[change.name]:
            active.discard(change.name)
    return most


def ended_numbers(cluster: Cluster) -> set[int]:
    return {each["number"] for each in status_of(cluster, "search").get("trials") or []}


def delete(cluster: Cluster, number: int) -> None:
    cluster.kubectl("delete", "trainjob", f"search-trial-{number}", "--timeout=60s")


def test_kills_lost_answers_and_deletions(cluster: Cluster, manager: Manager) -> None:
    """Each trial has ended once, with the parameters of an undisturbed sweep, and never more ran than may at once."""
    algorithm = {"random": {"seed": SEED}}
    sweep = optimization_job("search", TRIAL, SPACE, trials=TRIALS, parallel=PARALLEL, searchAlgorithm=algorithm)
    cluster.apply(sweep)
    until(lambda: ended_numbers(cluster), "a trial has ended")
    gone = min(ended_numbers(cluster))
    delete(cluster, gone)
    again = 0
    for kill in range(KILLS):
        manager.send(signal.SIGKILL)
        manager.wait()
        if kill in {2, 5}:  # nobody sees these deletions
            running = sorted(set(trials_of(cluster, "search")) - ended_numbers(cluster))
            if running:
                delete(cluster, running[-1])
                again += 1
        before = ended_numbers(cluster)
        assert len(before) < TRIALS
        manager.start(ready="started manager")
        until(lambda before=before: ended_numbers(cluster) - before, "another trial has ended")  # type: ignore[misc]
    status = ended(cluster, "search", timeout=360)
    numbers = list(range(1, TRIALS + 1))
    assert [each["number"] for each in status["trials"]] == numbers
    assert status["trialCounts"] == {"running": 0, "succeeded": TRIALS, "failed": 0, "pruned": 0}
    trials = trials_of(cluster, "search")
    assert sorted(trials) == [number for number in numbers if number != gone]
    kept = {each["number"]: float(each["value"]) for each in status["trials"]}
    assert {number: curve_of(trial)[-1][1] for number, trial in trials.items()} == {
        number: kept[number] for number in trials
    }
    assert float(status["result"]["value"]) == min(kept.values())
    spec = OptimizationJobSpec.from_object(sweep["spec"])
    assert {number: assignment_of(trial) for number, trial in trials.items()} == {
        number: suggestion(spec, SEED, [], number) for number in trials
    }
    if (log := audit.log_of_run()) is not None:
        changes = changes_of_trials(log, cluster.namespace)
        assert sum(change.verb == "create" and change.is_answered for change in changes) <= TRIALS + again
        ended_before = (f"search-trial-{gone}", "delete")
        assert 1 < most_at_once([each for each in changes if (each.name, each.verb) != ended_before]) <= PARALLEL
