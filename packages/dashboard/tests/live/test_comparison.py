"""The metrics of several TrainJobs in one stream."""

from __future__ import annotations

from typing import Any

import pytest

from packages.dashboard.tests.conftest import UserClient, node_pod, train_job, visiting
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.errors import ForbiddenError
from trainer.kube.logs.redaction import REDACTED

TAG = b"[trainer.kubeflow.org/v2alpha1/trainjob/trainerStatus]"


async def test_comparison(client: UserClient) -> None:
    """Each TrainJob comes with its number, state, parameters and curves; one that is not there is gone."""
    for name, loss in (("one", 2), ("two", 3)):
        job = train_job(name, state="Running")
        job["spec"]["trainer"] = {"args": ["--seed", str(loss)]}
        client.add(job)
        client.add(node_pod(name))
        log = client.log(f"{name}-node-0-0-abcde", "default", "node")
        log.write(b'%b {"parameters": {"seed": "7", "lr": "0.1", "api_key": "hidden"}}\n' % TAG)
        log.write(b'%b {"currentStep": 1, "trainMetrics": {"loss": %d}}\n' % (TAG, loss))
    path = "/api/metrics?job=default/one&job=default/two&job=default/none"
    async with visiting(client) as visitor, visitor.stream(path) as events:
        states: dict[int, str] = {}
        values: dict[int, list[float]] = {}
        gone: list[int] = []
        parameters: dict[int, list[list[str]]] = {}
        while len(states) < 2 or len(values) < 2 or not gone or any(len(each) < 3 for each in parameters.values()):
            event = await events.next("job", "recipe", "metrics", "gone")
            if "state" in event:
                states[event["source"]] = event["state"]
            elif "recipe" in event:
                parameters[event["source"]] = event["recipe"]["parameters"]
            elif "series" in event:
                for series in event["series"]:
                    values.setdefault(event["source"], []).extend(series["values"])
            else:
                gone.append(event["source"])
        assert (states, values, gone) == ({0: "Running", 1: "Running"}, {0: [2], 1: [3]}, [2])
        rest = [["lr", "0.1"], ["api_key", REDACTED]]
        assert parameters == {0: [["seed", "2"], *rest], 1: [["seed", "3"], *rest]}
        log.write(b'%b {"currentStep": 2, "trainMetrics": {"loss": 1}}\n' % TAG)
        news: Any = await events.next("metrics")
        assert (news["source"], news["series"][0]["values"]) == (1, [1])
        change = {"metadata": {"annotations": {"example.com/git-revision": "v2"}}}
        await client.patch(TRAIN_JOBS, "two", change, "default")
        changed: Any = await events.next("recipe")
        assert (changed["source"], changed["recipe"]["revision"]) == (1, "v2")
        client.remove(TRAIN_JOBS, "one", "default")
        assert await events.next("gone") == {"source": 0}


async def test_metrics_that_cannot_be_read(client: UserClient) -> None:
    """The TrainJob whose log may not be read says so, and costs the others nothing."""
    client.faults.fail(ForbiddenError(403, "pods/log is forbidden"), verb="log", times=None)
    client.add(train_job())
    client.add(node_pod("demo"))
    async with visiting(client) as visitor, visitor.stream("/api/metrics?job=default/demo") as events:
        trouble = await events.next("trouble")
        while not trouble["text"]:
            trouble = await events.next("trouble")
        assert trouble == {"source": 0, "text": "pods/log is forbidden"}


@pytest.mark.parametrize(
    "query",
    [
        "",
        "job=demo",
        "job=default/",
        "job=default/a/b",
        "job=../secrets/x",
        "job=default/a&job=default/a",
        "&".join(f"job=default/{number}" for number in range(51)),
    ],
)
async def test_wrong_jobs(client: UserClient, query: str) -> None:
    """Only names of TrainJobs, each once and not too many, are compared."""
    async with visiting(client) as visitor:
        status, content = await visitor.json(f"/api/metrics?{query}")
        assert (status, content["error"]) == (400, "job must be NAMESPACE/NAME, 1 to 50 times, each another")
